"""The well-known providers are data, and all of it can be used."""

import pytest

from dragoman.config import ConfigError, loads
from dragoman.config.providers import longest_answers, providers
from dragoman.protocols.registry import PROTOCOLS

ENDPOINTS = {
    "anthropic": ("anthropic", "https://api.anthropic.com/v1/messages"),
    "openai": ("openai-responses", "https://api.openai.com/v1/responses"),
    "gemini": ("gemini", "https://generativelanguage.googleapis.com/v1beta/models/m:generateContent"),
    "openrouter": ("openai-chat", "https://openrouter.ai/api/v1/chat/completions"),
    "deepseek": ("openai-chat", "https://api.deepseek.com/v1/chat/completions"),
    "mistral": ("openai-chat", "https://api.mistral.ai/v1/chat/completions"),
    "groq": ("openai-chat", "https://api.groq.com/openai/v1/chat/completions"),
    "xai": ("openai-chat", "https://api.x.ai/v1/chat/completions"),
    "moonshot": ("openai-chat", "https://api.moonshot.ai/v1/chat/completions"),
    "zai": ("openai-chat", "https://api.z.ai/api/paas/v4/chat/completions"),
    "minimax": ("anthropic", "https://api.minimax.io/anthropic/v1/messages"),
    "together": ("openai-chat", "https://api.together.xyz/v1/chat/completions"),
    "fireworks": ("openai-chat", "https://api.fireworks.ai/inference/v1/chat/completions"),
    "cerebras": ("openai-chat", "https://api.cerebras.ai/v1/chat/completions"),
    "huggingface": ("openai-chat", "https://router.huggingface.co/v1/chat/completions"),
    "nvidia": ("openai-chat", "https://integrate.api.nvidia.com/v1/chat/completions"),
    "dashscope": ("openai-chat", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions"),
    "ollama": ("openai-chat", "http://127.0.0.1:11434/v1/chat/completions"),
    "lmstudio": ("openai-chat", "http://127.0.0.1:1234/v1/chat/completions"),
    "llamacpp": ("openai-chat", "http://127.0.0.1:8080/v1/chat/completions"),
    "vllm": ("openai-chat", "http://127.0.0.1:8000/v1/chat/completions"),
    "sglang": ("openai-chat", "http://127.0.0.1:30000/v1/chat/completions"),
}
PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}


def test_none_is_untested() -> None:
    assert {*ENDPOINTS, "azure"} == set(providers())


@pytest.mark.parametrize("name", ENDPOINTS)
def test_naming_one_is_enough(name: str) -> None:
    upstream = loads(f"[upstreams.{name}]").upstreams[name]
    assert (upstream.protocol, upstream.url(PATHS[upstream.protocol])) == ENDPOINTS[name]
    local = name in ("ollama", "lmstudio", "llamacpp", "vllm", "sglang")
    assert upstream.credential.kind == ("none" if local else "env")
    assert upstream.facts.chat_compatible is (upstream.protocol == "openai-chat")
    assert upstream.target("m").issuer == name


def test_azure_needs_only_its_address() -> None:
    with pytest.raises(ConfigError, match=r"\[upstreams.azure\] has no base_url"):
        loads("[upstreams.azure]")
    for path in ("", "/", "/openai/v1", "/openai/v1/"):
        azure = loads(f'[upstreams.azure]\nbase_url = "https://r.openai.azure.com{path}"').upstreams["azure"]
        assert azure.url("/v1/responses") == "https://r.openai.azure.com/openai/v1/responses"
        assert (azure.auth, azure.credential.name) == ("api-key", "AZURE_OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("name", "protocol"), [(p.name, other) for p in providers().values() for other in p.also]
)
def test_other_protocols_of_a_provider(name: str, protocol: str) -> None:
    assert protocol in PROTOCOLS
    upstream = loads(f'[upstreams.x]\nprovider = "{name}"\nprotocol = "{protocol}"').upstreams["x"]
    assert upstream.url(PATHS[protocol]).startswith(providers()[name].also[protocol])
    assert upstream.auth == ("bearer" if protocol == "anthropic" else None)


def test_facts_follow_the_address_and_the_user_has_the_last_word() -> None:
    text = '[upstreams.x]\nprotocol = "openai-chat"\nbase_url = "https://api.deepseek.com"\n'
    assert loads(text).upstreams["x"].facts.reasoning_field == "reasoning_content"
    assert loads(text).upstreams["x"].credential.kind == "none"
    assert loads(text + 'reasoning_field = "r"').upstreams["x"].facts.reasoning_field == "r"
    assert loads("[upstreams.mistral]").upstreams["mistral"].facts.ids == "mistral"


def test_openai_over_chat_is_still_openai() -> None:
    facts = loads('[upstreams.openai]\nprotocol = "openai-chat"').upstreams["openai"].facts
    assert (facts.chat_compatible, facts.max_tokens_field) == (False, "max_completion_tokens")


@pytest.mark.parametrize("how", ["", 'provider = "openai"\n'])
def test_a_providers_key_does_not_go_to_another_address(how: str) -> None:
    text = f'[upstreams.openai]\n{how}protocol = "openai-chat"\nbase_url = "https://evil.example/v1"'
    assert loads(text).upstreams["openai"].credential.kind == "none"


def test_an_upstream_with_a_providers_name_and_another_address_is_its_own() -> None:
    text = '[upstreams.openai]\nprotocol = "openai-chat"\nbase_url = "http://127.0.0.1:1/v1"'
    upstream = loads(text).upstreams["openai"]
    assert (upstream.provider, upstream.facts.chat_compatible) == (None, True)


def test_longest_answers_are_numbers() -> None:
    assert all(isinstance(most, int) and most > 1000 for _, most in longest_answers())
