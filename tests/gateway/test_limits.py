"""Requests are clamped to a model's limits, with a notice."""

import asyncio
import subprocess
import sys

import msgspec
import pytest
from gateway_harness import before, post
from support.scripted_upstream import ScriptedUpstream

from dragoman.config import loads
from dragoman.config.types import UpstreamConfig
from dragoman.model.messages import Request
from dragoman.protocols.base import Target
from dragoman.protocols.registry import PROTOCOLS, protocol
from dragoman.routing.model_limits import LimitsCache, ModelLimits, clamp, longest_answer


def upstream(models: str = "[]") -> UpstreamConfig:
    return loads(f"[upstreams.anthropic]\nmodels = {models}").upstreams["anthropic"]


def test_the_config_comes_first() -> None:
    limits = LimitsCache(lambda model, provider: 7)
    said = upstream('[{ name = "gpt-4o", context = 100, max_output = 10 }, { name = "x", max_output = 5 }]')
    assert limits.of(said, "gpt-4o") == ModelLimits(context=100, max_output=10)
    assert limits.of(said, "x") == ModelLimits(context=7, max_output=5)
    assert limits.of(said, "unheard-of") == ModelLimits(context=7)
    assert LimitsCache(lambda model, provider: None).of(said, "unheard-of") == ModelLimits()


def test_looked_up_limits_are_cached_per_config() -> None:
    asked: list[str] = []

    def lookup(model: str, provider: str | None) -> int | None:
        asked.append(model)
        return 7

    limits = LimitsCache(lookup)
    said, other = upstream(), upstream('[{ name = "m", context = 9 }]')
    assert [limits.of(said, "m") for _ in range(3)] == [ModelLimits(context=7)] * 3
    assert limits.of(other, "m") == ModelLimits(context=9)
    assert limits.of(said, "m") == ModelLimits(context=7)
    assert asked == ["m", "m"]


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
def test_output_limits_of_known_models(model: str, most: int | None) -> None:
    assert longest_answer(model) == most


def test_windows_come_from_the_table_of_prices() -> None:
    limits = LimitsCache()
    assert limits.of(upstream(), "claude-opus-4-5").context == 200_000
    router = loads("[upstreams.openrouter]").upstreams["openrouter"]
    assert limits.of(router, "anthropic/claude-opus-4.5").context == 200_000
    assert limits.of(router, "nobody/knows-this").context is None


def test_starting_does_not_read_the_table_of_prices() -> None:
    code = (
        "import dragoman.cli.serve.service, dragoman.prices.table as table; "
        "print(table._table.cache_info().currsize)"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "0"


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
def test_a_request_of_every_protocol_is_clamped(client: str, server: str) -> None:
    held, notices = clamp(asked(client), ModelLimits(max_output=4096))
    assert [n.rule for n in notices] == ["max-tokens-clamped"]
    body = protocol(server).write_request(held, Target(model="x")).body
    text = msgspec.json.encode(body).decode()
    assert ":4096" in text
    assert "9000" not in text


@pytest.mark.parametrize("client", PROTOCOLS)
def test_other_settings_are_unchanged(client: str) -> None:
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


def of_length(tokens: int) -> Request:
    """A request for 9000 tokens with a prompt of about `tokens` tokens."""
    words = "word " * round(tokens / 1.09)
    return asked("anthropic", messages=[{"role": "user", "content": words}])


@pytest.mark.parametrize(
    ("limits", "prompt", "least", "most"),
    [
        (ModelLimits(), 50_000, 9000, 9000),
        (ModelLimits(max_output=9000), 50_000, 9000, 9000),
        (ModelLimits(context=8000), 10, 7950, 8000),
        (ModelLimits(context=10_000, max_output=8000), 4000, 5600, 6400),
        (ModelLimits(context=14_000, max_output=8000), 4000, 8000, 8000),
        (ModelLimits(context=10_000), 20_000, 9000, 9000),
        (ModelLimits(context=10_000), 9_500, 9000, 9000),
        (ModelLimits(context=100_000), 5_000, 9000, 9000),
    ],
)
def test_the_smaller_limit_counts(limits: ModelLimits, prompt: int, least: int, most: int) -> None:
    request = of_length(prompt)
    held, notices = clamp(request, limits)
    given = held.settings.max_tokens or 0
    assert least <= given <= most
    assert (held is request) is (given == 9000)
    assert bool(notices) is (given < 9000)


def test_a_short_prompt_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(request: Request) -> int:
        raise AssertionError

    monkeypatch.setattr("dragoman.routing.model_limits.prompt_tokens", never)
    request = of_length(10_000)
    assert clamp(request, ModelLimits(context=200_000)) == (request, ())


def test_a_request_without_a_limit_is_unchanged() -> None:
    request = protocol("openai-responses").read_request(b'{"model":"m","input":"hi"}', "/v1/responses")
    assert clamp(request, ModelLimits(max_output=1)) == (request, ())


def test_the_gateway_clamps_max_tokens_to_the_rest_of_the_window() -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        models = 'models = [{ name = "demo", context = 8000 }]'
        async with before(served, each=models, only="c") as here:
            words = "word " * 3000
            body = {"model": "c/demo", "max_tokens": 6000, "messages": [{"role": "user", "content": words}]}
            for text, held in ((words, True), ("word", False)):
                body["messages"] = [{"role": "user", "content": text}]
                got = await post(here, "anthropic", "/v1/messages", msgspec.json.encode(body), stream=False)
                assert got.status == 200
                assert ("max-tokens-clamped" in got.headers.get("x-dragoman-warnings", "")) is held
                sent = served.last.json["max_tokens"]
                assert 4000 < sent < 5500 if held else sent == 6000

    asyncio.run(scene())
