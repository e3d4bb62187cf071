"""Routing through the gateway: aliases, tiers, parameters, limits, retry delays and cooldowns."""

import time
from collections.abc import Iterator
from typing import Any

import pytest
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import ScriptedUpstream, in_background, refused_url, status

from dragoman.config import from_environment
from dragoman.gateway.state import State

ASKED = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def one() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


@pytest.fixture
def two() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


def upstream(name: str, url: str, protocol: str = "openai-chat", more: str = "") -> str:
    return f'[upstreams.{name}]\nprotocol = "{protocol}"\nbase_url = "{url}"\ncredential = "none"\n{more}\n'


def to(*targets: str, match: str = "*") -> str:
    return f'[[routes]]\nmatch = "{match}"\nto = [{", ".join(targets)}]\n'


def ask(served: Gateway, model: str = "any", **more: Any) -> Got:
    return post(f"{served.url}/v1/messages", {"model": model, "max_tokens": 100, "messages": ASKED, **more})


def requested_model(served: ScriptedUpstream) -> list[str]:
    return [seen.json["model"] for seen in served.seen]


def test_aliases_tiers_and_routes(loop: Loop, one: ScriptedUpstream, two: ScriptedUpstream) -> None:
    config = upstream("one", one.url) + upstream("two", two.url)
    config += '[aliases]\nfast = "two/quick-1"\n[tiers]\nsmall = "one/s"\nmiddle = "one/m"\nbig = "one/b"\n'
    config += to('"two/*"', match="local-*") + to('"one/rest"')
    with gateway(config, loop) as served:
        for model in (
            "fast",
            "claude-haiku-4-5",
            "claude-sonnet-5",
            "claude-opus-5",
            "local-x",
            "two/y",
            "?",
        ):
            assert ask(served, model).status == 200
        assert requested_model(one) == ["s", "m", "b", "rest"]
        assert requested_model(two) == ["quick-1", "local-x", "y"]
        listed = [model["id"] for model in call(f"{served.url}/v1/models").json["data"]]
        assert listed[0] == "fast"
        assert "one/b" in listed


def test_the_three_sizes_of_claude_code_proxy_need_no_config(loop: Loop, one: ScriptedUpstream) -> None:
    env = {
        "OPENAI_API_KEY": "sk-mine",
        "OPENAI_BASE_URL": f"{one.url}/v1",
        "BIG_MODEL": "vendor/big",
        "MIDDLE_MODEL": "mid",
        "SMALL_MODEL": "tiny",
    }
    with gateway(State(from_environment(env), env=env), loop) as served:
        for model in ("claude-opus-5", "claude-sonnet-5", "claude-haiku-4-5", "gpt-whatever"):
            assert ask(served, model).status == 200
    assert requested_model(one) == ["vendor/big", "mid", "tiny", "gpt-whatever"]
    assert {seen.path for seen in one.seen} == {"/v1/chat/completions"}
    assert {seen.key for seen in one.seen} == {"sk-mine"}


def test_params_of_a_target_are_set_in_its_protocol(loop: Loop, one: ScriptedUpstream) -> None:
    params = '{ temperature = 0.2, provider = { order = ["a"] } }'
    config = upstream("one", one.url) + to(f'{{ target = "one/m", params = {params} }}')
    with gateway(config, loop) as served:
        assert ask(served, temperature=0.9).status == 200
    assert one.last.json["temperature"] == 0.2
    assert one.last.json["provider"] == {"order": ["a"]}


@pytest.mark.parametrize("protocol", ["openai-chat", "anthropic"])
def test_max_tokens_is_clamped_to_the_models_limit(protocol: str, loop: Loop, one: ScriptedUpstream) -> None:
    limits = 'models = [{ name = "m", max_output = 50 }]'
    with gateway(upstream("one", one.url, protocol, limits), loop) as served:
        got = ask(served, "one/m")
        assert got.status == 200
        assert one.last.json["max_tokens"] == 50
        assert "max-tokens-clamped max_tokens" in got.headers["x-dragoman-warnings"]


def test_beta_headers_of_an_anthropic_client_are_passed_on(loop: Loop, one: ScriptedUpstream) -> None:
    config = upstream("one", one.url, "anthropic", 'headers = { "anthropic-beta" = "mine-1" }')
    body = {"model": "m", "max_tokens": 10, "messages": ASKED}
    with gateway(config, loop) as served:
        assert post(f"{served.url}/v1/messages?beta=true", body, anthropic_beta="a-1, mine-1").status == 200
        assert one.last.headers["anthropic-beta"] == "mine-1,a-1"
        assert post(f"{served.url}/v1/messages/count_tokens", body, anthropic_beta="a-1").status == 200
        assert one.last.headers["anthropic-beta"] == "mine-1,a-1"


# Failures


def fallback(*urls: str, retries: int = 0) -> str:
    names = [f"u{number}" for number, _ in enumerate(urls)]
    upstreams = "".join(upstream(name, url) for name, url in zip(names, urls, strict=True))
    return f"[server]\nretries = {retries}\n{upstreams}" + to(*(f'"{name}/m"' for name in names))


def test_the_next_target_is_tried_if_the_first_is_unreachable(loop: Loop, one: ScriptedUpstream) -> None:
    with gateway(fallback(refused_url(), one.url), loop) as served:
        assert ask(served).status == 200
        assert ask(served, stream=True).status == 200


@pytest.mark.parametrize("code", [401, 402, 403, 404, 408, 429, 500, 502, 503, 529])
def test_the_next_target_is_tried_on(
    code: int, loop: Loop, one: ScriptedUpstream, two: ScriptedUpstream
) -> None:
    one.otherwise = status(code, b"{}")
    with gateway(fallback(one.url, two.url), loop) as served:
        assert ask(served).status == 200
    assert len(two.seen) == 1


@pytest.mark.parametrize("code", [400, 413, 422])
def test_the_next_target_is_not_tried_on(
    code: int, loop: Loop, one: ScriptedUpstream, two: ScriptedUpstream
) -> None:
    one.otherwise = status(code, b'{"error": {"message": "no"}}')
    with gateway(fallback(one.url, two.url), loop) as served:
        assert ask(served).status == code
    assert (len(one.seen), len(two.seen)) == (1, 0)


def test_an_overload_inside_a_200_fails_over(loop: Loop, one: ScriptedUpstream) -> None:
    config = upstream("one", one.url, "anthropic") + to('"one/demo-overloaded"', '"one/demo"')
    with gateway(f"[server]\nretries = 0\n{config}", loop) as served:
        got = ask(served, stream=True)
        assert got.status == 200
        assert b"message_stop" in got.body
    assert requested_model(one) == ["demo-overloaded", "demo"]


def test_a_retry_waits_for_retry_after(loop: Loop, one: ScriptedUpstream) -> None:
    one.script(status(429, b"{}", retry_after="0.2"), status(503, b"{}", retry_after="0.1"))
    with gateway(fallback(one.url, retries=2), loop) as served:
        assert ask(served).status == 200
    first, second, third = (seen.at for seen in one.seen)
    assert second - first >= 0.2
    assert third - second >= 0.1


@pytest.mark.parametrize("after", ["3600", "Fri, 31 Dec 2027 23:59:59 GMT"])
def test_a_long_retry_after_is_passed_to_the_client(after: str, loop: Loop, one: ScriptedUpstream) -> None:
    one.otherwise = status(429, b"{}", retry_after=after)
    with gateway(fallback(one.url, retries=2), loop) as served:
        got = ask(served)
    assert got.status == 429
    assert int(got.headers["retry-after"]) >= 3600
    assert len(one.seen) == 1


@pytest.mark.parametrize("after", ["soon", "-1", "nan", "inf", ""])
def test_a_meaningless_retry_after_is_not_passed_on(after: str, loop: Loop, one: ScriptedUpstream) -> None:
    one.otherwise = status(429, b"{}", retry_after=after)
    with gateway(fallback(one.url), loop) as served:
        got = ask(served)
    assert got.status == 429
    assert got.headers.get("retry-after") in (None, "0")


def test_a_failing_target_goes_last_during_its_cooldown(
    loop: Loop, one: ScriptedUpstream, two: ScriptedUpstream
) -> None:
    one.script(*[status(500, b"{}")] * 3)
    with gateway(fallback(one.url, two.url), loop) as served:
        for _ in range(3):
            assert ask(served).status == 200
        assert (len(one.seen), len(two.seen)) == (3, 3)
        assert ask(served).status == 200
        assert (len(one.seen), len(two.seen)) == (3, 4)  # it is cooling down
        two.script(status(500, b"{}"))
        assert ask(served).status == 200  # and is still tried before the request fails
        assert (len(one.seen), len(two.seen)) == (4, 5)
        one.script(status(429, b"{}", retry_after="60"))
        assert ask(served).status == 200
        served.state.upstreams.monotonic = lambda: time.monotonic() + 61
        assert ask(served).status == 200
        assert len(one.seen) == 6


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_cooldown_uses_the_monotonic_clock(
    jump: float, loop: Loop, one: ScriptedUpstream, two: ScriptedUpstream
) -> None:
    one.script(status(429, b"{}", retry_after="60"))
    with gateway(fallback(one.url, two.url), loop) as served:
        assert ask(served).status == 200
        served.state.clock = lambda: time.time() + jump
        assert ask(served).status == 200
        assert len(one.seen) == 1, "the cooldown ignores the wall clock"
        served.state.upstreams.monotonic = lambda: time.monotonic() + 61
        assert ask(served).status == 200
        assert len(one.seen) == 2
