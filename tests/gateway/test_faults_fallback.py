"""Retries and fallbacks happen only until the first meaningful bytes of an answer."""

import asyncio
from collections.abc import Callable

import pytest
from gateway_harness import SHORT, Got, ask, before, config, running
from support import scripted_upstream as upstreams
from support.scripted_talk import CALL, calls_of
from support.scripted_upstream import Reply, ScriptedUpstream
from support.wires import CHAT, PROTOCOLS
from test_faults_midstream import opening, spoken

CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
UPSTREAMS = pytest.mark.parametrize("first", PROTOCOLS)
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def two(first: str, model: str, server: str = "retries = 0") -> dict[str, str]:
    """A config: all requests go to `first` with `model`, then to an upstream that answers well."""
    more = f"""
        [upstreams.second]
        protocol = "openai-chat"
        base_url = "{{url}}"
        [[routes]]
        match = "any"
        to = ["{SHORT[first]}/{model}", "second/demo"]
    """
    # Only a silent upstream has a short timeout: others may be slow on a busy machine. `demo-stall` sends
    # text before it falls silent, so its timeout must be longer than a busy machine takes for that text.
    each = {"demo-hang": 'idle_timeout = "300ms"', "demo-stall": 'idle_timeout = "3s"'}.get(model, "")
    return {"server": server, "each": each, "only": SHORT[first], "more": more}


def is_good(got: Got) -> bool:
    return got.status == 200 and calls_of(got.said) == [CALL]


# Every failure before the answer begins, including an overload inside a 200 after empty first events.
BEFORE = [
    "demo-overloaded",
    "demo-500",
    "demo-503",
    "demo-unauthorized",
    "demo-html",
    "demo-garbage",
    "demo-blank",
    "demo-hang",
]


@CLIENTS
@UPSTREAMS
def test_the_second_target_answers_for_the_first(first: str, client: str) -> None:
    async def scene() -> None:
        upstream = ScriptedUpstream()
        for model in BEFORE:
            async with before(upstream, **two(first, model)) as gateway:
                streamed, whole = await asyncio.gather(
                    ask(gateway, client, "any"), ask(gateway, client, "any", stream=False)
                )
                assert is_good(streamed), model
                assert is_good(whole), model
                assert gateway.total("requests", outcome="ok", upstream="second") == 2
                assert gateway.total("failures", upstream=SHORT[first]) >= 2

    asyncio.run(scene())


@CLIENTS
def test_after_the_first_text_there_is_no_fallback(client: str) -> None:
    async def scene(first: str) -> None:
        for model in ("demo-cut", "demo-error", "demo-stall"):
            upstream = ScriptedUpstream(pace=1)
            async with before(upstream, **two(first, model, server="retries = 3")) as gateway:
                if model != "demo-stall":
                    (await ask(gateway, client, "any")).is_broken_off()
                    assert len(upstream.seen) == 1, (first, model)
                    continue
                streamed, whole = await asyncio.gather(
                    ask(gateway, client, "any"), ask(gateway, client, "any", stream=False)
                )
                streamed.is_broken_off()
                # No bytes of an unstreamed answer were sent yet, so only that one may fall back.
                assert is_good(whole), first
                assert len(upstream.seen) == 3, first

    async def scenes() -> None:
        await asyncio.gather(*(scene(first) for first in PROTOCOLS))

    asyncio.run(scenes())


@BOTH
def test_a_bad_request_has_no_fallback(stream: bool) -> None:
    async def scene() -> None:
        upstream = ScriptedUpstream()
        async with before(upstream, **two(CHAT, "m", server="retries = 3")) as gateway:
            upstream.script(upstreams.status(400, b'{"error": {"message": "too long"}}'))
            got = await ask(gateway, "anthropic", "any", stream=stream)
            assert got.is_refusal(400) == "too long"
            assert len(upstream.seen) == 1

    asyncio.run(scene())


TRANSIENT: dict[str, Callable[[], Reply]] = {
    "429": lambda: upstreams.status(429, b"{}", retry_after="0"),
    "500": lambda: upstreams.status(500, b"{}"),
    "closed": upstreams.no_answer,
    "reset": lambda: upstreams.no_answer(reset=True),
    "nothing": lambda: upstreams.stream(),
}


@CLIENTS
@pytest.mark.parametrize("fault", TRANSIENT)
def test_transient_failures_are_retried(fault: str, client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.exchange.target_health.backoff", lambda tries, random: 0.01)

    async def scene() -> None:
        upstream = ScriptedUpstream()
        async with before(upstream, server="retries = 2") as gateway:
            for stream in (True, False):
                upstream.script(TRANSIENT[fault](), TRANSIENT[fault]())
                assert is_good(await ask(gateway, client, "c/demo", stream=stream))
            assert len(upstream.seen) == 6
            # A request lost with a reused connection is sent twice within the first attempt.
            last = 4 if fault in ("closed", "reset") else 3
            upstream.script(*(TRANSIENT[fault]() for _ in range(last)))
            (await ask(gateway, client, "c/demo")).is_refusal()
            assert len(upstream.seen) == 6 + last

    asyncio.run(scene())


@CLIENTS
@UPSTREAMS
def test_a_failed_attempt_sends_nothing(first: str, client: str) -> None:
    """Its first bytes are held. A keepalive before the next attempt must not send them."""

    async def scene() -> None:
        upstream = ScriptedUpstream(pace=1)
        async with before(upstream, server='retries = 1\nkeepalive = "150ms"') as gateway:
            failing = upstreams.stream(opening(first))
            upstream.script(failing, upstreams.slow_headers(0.1, upstreams.stream(spoken(first))))
            got = await ask(gateway, client, f"{SHORT[first]}/m")
            assert got.status == 200
            assert got.said["stop"] == "end_turn"
            assert got.said["text"].startswith("You said")

    asyncio.run(scene())


def test_usage_of_a_failed_attempt_is_counted() -> None:
    async def scene() -> None:
        upstream = ScriptedUpstream()
        async with before(upstream, **two("anthropic", "demo-overloaded")) as gateway:
            assert is_good(await ask(gateway, CHAT, "any"))
            assert gateway.total("tokens", upstream="a", kind="input") > 0
            assert gateway.total("tokens", upstream="second", kind="output") > 0

    asyncio.run(scene())


@CLIENTS
def test_a_target_without_a_credential_is_skipped(client: str) -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as upstream:
            toml = config(upstream.url, **two("anthropic", "demo", server="retries = 3"))
            toml = toml.replace('credential = "none"', 'credential = "env:NOT_THERE"', 1)
            async with running(toml) as gateway:
                assert is_good(await ask(gateway, client, "any"))
                assert len(upstream.seen) == 1
                message = (await ask(gateway, client, "a/demo")).is_refusal(503)
                assert "NOT_THERE" in message

    asyncio.run(scene())


def test_an_upstream_that_always_cuts_its_answer_is_tried_last() -> None:
    """A cut stream counts as a failure of its target."""

    async def scene() -> None:
        upstream = ScriptedUpstream(pace=1)
        async with before(upstream, **two("anthropic", "demo-cut")) as gateway:
            for _ in range(3):
                (await ask(gateway, CHAT, "any")).is_broken_off()
            assert is_good(await ask(gateway, CHAT, "any"))
            assert (
                gateway.state.upstreams.health.state("a/demo-cut", gateway.state.upstreams.monotonic())
                == "cooling"
            )

    asyncio.run(scene())


ROUTE = '[[routes]]\nmatch = "any"\nto = ["a/demo-500", "g/demo-503"]'


def test_the_error_when_all_targets_fail() -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream(), more=ROUTE) as gateway:
            (await ask(gateway, "openai-responses", "any")).is_refusal(503)

    asyncio.run(scene())
