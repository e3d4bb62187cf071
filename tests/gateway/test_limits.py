"""Requests are held to what a model gives, with a notice."""

import subprocess
import sys

import msgspec
import pytest

from dragoman.config import loads
from dragoman.config.types import UpstreamConfig
from dragoman.limits import Limits, ModelLimits, clamp, longest_answer
from dragoman.messages import Request
from dragoman.protocols.base import Target
from dragoman.protocols.registry import PROTOCOLS, protocol


def upstream(models: str = "[]") -> UpstreamConfig:
    return loads(f"[upstreams.anthropic]\nmodels = {models}").upstreams["anthropic"]


def test_the_config_comes_first() -> None:
    limits = Limits(lambda model, provider: 7)
    said = upstream('[{ name = "gpt-4o", context = 100, max_output = 10 }, { name = "x", max_output = 5 }]')
    assert limits.of(said, "gpt-4o") == ModelLimits(context=100, max_output=10, stated=True)
    assert limits.of(said, "x") == ModelLimits(context=7, max_output=5)
    assert limits.of(said, "unheard-of") == ModelLimits(context=7)
    assert Limits().of(said, "unheard-of") == ModelLimits()


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("gpt-4o-mini", 16_384),
        ("openai/gpt-4.1", 32_768),
        ("claude-opus-4-1-20250805", 32_000),
        ("claude-opus-4-5", 64_000),
        ("anthropic/claude-sonnet-4.5", 64_000),
        ("claude-3-5-haiku-20241022", 8_192),
        ("claude-opus-4-6", None),
        ("claude-sonnet-5", None),
        ("gpt-5.4", None),
        ("qwen3", None),
    ],
)
def test_longest_answers(model: str, most: int | None) -> None:
    assert longest_answer(model) == most


def test_windows_come_from_genai_prices() -> None:
    limits = Limits()
    limits.load()
    assert limits.of(upstream(), "claude-opus-4-5").context == 200_000
    router = loads("[upstreams.openrouter]").upstreams["openrouter"]
    assert limits.of(router, "anthropic/claude-opus-4.5").context == 200_000
    assert limits.of(router, "nobody/knows-this").context is None


def test_the_start_does_not_wait_for_genai_prices() -> None:
    code = (
        "import sys, dragoman.config, dragoman.router, dragoman.limits; print('genai_prices' in sys.modules)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


BODIES = {
    "anthropic": ("/v1/messages", {"max_tokens": 9000}),
    "openai-chat": ("/v1/chat/completions", {"max_completion_tokens": 9000}),
    "openai-responses": ("/v1/responses", {"max_output_tokens": 9000}),
    "gemini": (
        "/v1beta/models/m:generateContent",
        {"generationConfig": {"maxOutputTokens": 9000, "topK": 3}},
    ),
}
SAID = {
    "anthropic": {"messages": [{"role": "user", "content": "hi"}]},
    "openai-chat": {"messages": [{"role": "user", "content": "hi"}]},
    "openai-responses": {"input": "hi"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


def asked(name: str, **more: object) -> Request:
    path, bound = BODIES[name]
    return protocol(name).read_request(
        msgspec.json.encode({"model": "m", **SAID[name], **bound, **more}), path
    )


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("server", PROTOCOLS)
def test_a_request_is_held_whatever_it_came_over(client: str, server: str) -> None:
    held, notices = clamp(asked(client), ModelLimits(max_output=4096))
    assert [n.rule for n in notices] == ["max-tokens-clamped"]
    body = protocol(server).write_request(held, Target(model="x")).body
    text = msgspec.json.encode(body).decode()
    assert ":4096" in text
    assert "9000" not in text


@pytest.mark.parametrize("client", PROTOCOLS)
def test_everything_else_stays_as_it_came(client: str) -> None:
    request = asked(client, some_extension={"a": [1]})
    held, _ = clamp(request, ModelLimits(max_output=4096))
    before = protocol(client).write_request(request, Target(model="x")).body
    after = protocol(client).write_request(held, Target(model="x")).body
    assert msgspec.json.encode(after) == msgspec.json.encode(before).replace(b"9000", b"4096")


def test_a_thinking_budget_leaves_room_for_the_answer() -> None:
    request = asked("anthropic", thinking={"type": "enabled", "budget_tokens": 8000})
    held, _ = clamp(request, ModelLimits(max_output=4096))
    body = protocol("anthropic").write_request(held, Target(model="x")).body
    assert (body["max_tokens"], body["thinking"]["budget_tokens"]) == (4096, 2048)


@pytest.mark.parametrize(
    ("limits", "prompt", "most"),
    [
        (ModelLimits(), None, None),
        (ModelLimits(max_output=9000), None, None),
        (ModelLimits(context=8000), None, 8000),
        (ModelLimits(context=10_000, max_output=8000, stated=True), 4000, 6000),
        (ModelLimits(context=10_000, max_output=8000), 4000, 8000),
        (ModelLimits(context=10_000, stated=True), 20_000, None),
    ],
)
def test_which_bound_counts(limits: ModelLimits, prompt: int | None, most: int | None) -> None:
    request = asked("anthropic")
    held, notices = clamp(request, limits, prompt)
    assert (held is request) is (most is None)
    assert held.settings.max_tokens == (most or 9000)
    assert bool(notices) is (most is not None)


def test_a_request_that_says_nothing_is_left_alone() -> None:
    request = protocol("openai-responses").read_request(b'{"model":"m","input":"hi"}', "/v1/responses")
    assert clamp(request, ModelLimits(max_output=1)) == (request, ())
