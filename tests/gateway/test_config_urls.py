"""Base URLs in every common spelling give the right endpoint."""

import pytest

from dragoman.config.urls import BadUrl, endpoint, is_loopback

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/m:streamGenerateContent?alt=sse",
}
GEMINI = "https://generativelanguage.googleapis.com"

ADDRESSES = [
    # with, without and beyond the version: the same endpoint
    *[("anthropic", f"https://api.anthropic.com{end}", "https://api.anthropic.com/v1/messages")
      for end in ("", "/", "/v1", "/v1/", "/v1/messages")],
    *[("openai-chat", f"https://api.openai.com{end}", "https://api.openai.com/v1/chat/completions")
      for end in ("", "/", "/v1", "/v1/", "/v1/chat/completions")],
    *[("openai-responses", f"https://api.openai.com{end}", "https://api.openai.com/v1/responses")
      for end in ("", "/v1", "/v1/responses")],
    *[("gemini", GEMINI + end, f"{GEMINI}/v1beta/models/m:streamGenerateContent?alt=sse")
      for end in ("", "/", "/v1beta", "/v1beta/", "/v1", "/v1beta/models")],
    # below a path
    ("openai-chat", "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
    ("openai-chat", "https://openrouter.ai/api", "https://openrouter.ai/api/v1/chat/completions"),
    ("anthropic", "https://openrouter.ai/api", "https://openrouter.ai/api/v1/messages"),
    ("openai-chat", "https://api.groq.com/openai/v1", "https://api.groq.com/openai/v1/chat/completions"),
    ("openai-chat", "https://api.fireworks.ai/inference/v1/",
     "https://api.fireworks.ai/inference/v1/chat/completions"),
    ("anthropic", "https://api.deepseek.com/anthropic", "https://api.deepseek.com/anthropic/v1/messages"),
    ("anthropic", "https://api.z.ai/api/anthropic", "https://api.z.ai/api/anthropic/v1/messages"),
    ("anthropic", "https://api.minimax.io/anthropic/v1", "https://api.minimax.io/anthropic/v1/messages"),
    # another version
    ("openai-chat", "https://api.z.ai/api/paas/v4", "https://api.z.ai/api/paas/v4/chat/completions"),
    ("openai-chat", "https://api.z.ai/api/coding/paas/v4/",
     "https://api.z.ai/api/coding/paas/v4/chat/completions"),
    ("openai-chat", f"{GEMINI}/v1beta/openai/", f"{GEMINI}/v1beta/openai/chat/completions"),
    ("openai-chat", "https://api.deepinfra.com/v1/openai", "https://api.deepinfra.com/v1/openai/chat/completions"),
    ("openai-chat", "https://api.cloudflare.com/client/v4/accounts/a/ai/v1",
     "https://api.cloudflare.com/client/v4/accounts/a/ai/v1/chat/completions"),
    ("openai-chat", "https://gateway.ai.cloudflare.com/v1/a/g/openai",
     "https://gateway.ai.cloudflare.com/v1/a/g/openai/chat/completions"),
    ("anthropic", "https://gateway.ai.cloudflare.com/v1/a/g/anthropic",
     "https://gateway.ai.cloudflare.com/v1/a/g/anthropic/v1/messages"),
    ("gemini", f"{GEMINI}/v1alpha", f"{GEMINI}/v1alpha/models/m:streamGenerateContent?alt=sse"),
    ("gemini", "https://aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google",
     "https://aiplatform.googleapis.com/v1/projects/p/locations/l/publishers/google"
     "/models/m:streamGenerateContent?alt=sse"),
    # Azure, new and old
    ("openai-responses", "https://r.openai.azure.com/openai/v1/", "https://r.openai.azure.com/openai/v1/responses"),
    ("openai-chat", "https://r.openai.azure.com/openai/v1?api-version=preview",
     "https://r.openai.azure.com/openai/v1/chat/completions?api-version=preview"),
    ("openai-chat", "https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21",
     "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21"),
    # no version: the URL is the whole endpoint
    ("openai-chat", "https://api.githubcopilot.com/chat/completions",
     "https://api.githubcopilot.com/chat/completions"),
    ("anthropic", "https://example.com/messages", "https://example.com/messages"),
    # a query in the URL
    ("gemini", "https://example.com?tenant=1",
     "https://example.com/v1beta/models/m:streamGenerateContent?alt=sse&tenant=1"),
    ("openai-chat", "http://[::1]:8080/v1", "http://[::1]:8080/v1/chat/completions"),
]  # fmt: skip


@pytest.mark.parametrize(("protocol", "base_url", "expected"), ADDRESSES)
def test_base_urls_give_the_right_endpoint(protocol: str, base_url: str, expected: str) -> None:
    assert endpoint(base_url, protocol).url(PATHS[protocol]) == expected


def test_the_root_is_the_url_before_a_standard_path() -> None:
    place = endpoint("https://openrouter.ai/api/v1", "openai-chat")
    assert (place.root, place.versioned) == ("https://openrouter.ai/api", False)


def test_the_origin_is_exact() -> None:
    assert endpoint("https://x.example/v1", "anthropic").origin == "https://x.example:443"
    assert endpoint("http://[::1]/v1", "anthropic").origin == "http://[::1]:80"


@pytest.mark.parametrize(
    "bad",
    ["", "api.x.com", "://", "https://", "https:///v1", "ws://x", "https://x:99999", "https://x:0", "https://x/#a",
     "https://x /v1", "https://u@x", "http://[::1/v1"],
)  # fmt: skip
def test_bad_urls_are_refused(bad: str) -> None:
    with pytest.raises(BadUrl):
        endpoint(bad, "openai-chat")


@pytest.mark.parametrize(
    ("host", "is_it"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("[::1]", True), ("LOCALHOST", True), ("a.localhost", True),
     ("0.0.0.0", False), ("::", False), ("localhost.example.com", False), ("10.0.0.1", False)],
)  # fmt: skip
def test_loopback_addresses_are_recognized(host: str, is_it: bool) -> None:
    assert is_loopback(host) is is_it
