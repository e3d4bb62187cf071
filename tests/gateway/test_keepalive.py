"""Silence is filled with what each client's SDK survives, as long as the upstream may still answer."""

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from google.genai import errors
from support import scripted_upstream as upstreams
from support import sdk_clients
from support.gateways import Loop, gateway
from support.scripted_upstream import FOREVER, Cut, Reply, ScriptedUpstream, Wait, in_background
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES
from test_faults_midstream import in_the_euro, opening, spoken
from troubles import SHORT, Leaving, ask, asking, before, config

CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)
OFTEN = 'retries = 0\nkeepalive = "50ms"'
COMMENT = b": keepalive\n\n"
BEAT = {ANTHROPIC: b'event: ping\ndata: {"type":"ping"}\n\n', CHAT: COMMENT, RESPONSES: COMMENT, GEMINI: b""}


def beats(client: str, data: bytes) -> int:
    return data.count(BEAT[client]) if BEAT[client] else 0


def halves(protocol: str) -> tuple[bytes, bytes]:
    """A stream, in two at the end of a frame in the middle of its words."""
    data = spoken(protocol)
    at = in_the_euro(protocol).rindex(b"\n\n") + 2
    return data[:at], data[at:]


@CLIENTS
@UPSTREAMS
def test_a_pause_is_filled(upstream: str, client: str) -> None:
    first, second = halves(upstream)

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN) as here:
            served.script([first, Wait(0.3), second])
            got = await ask(here, client, f"{SHORT[upstream]}/m")
            # Judged with its keepalives in it.
            assert got.said["stop"] == "end_turn"
            assert "5 €" in got.said["text"]
            sent_along = spoken(upstream).count(BEAT[client]) if upstream == client and BEAT[client] else 0
            extra = beats(client, got.body) - sent_along
            assert extra == 0 if client == GEMINI else 2 <= extra <= 8

    asyncio.run(scene())


@CLIENTS
def test_before_the_beginning_only_comments_are_sent(client: str) -> None:
    """No event comes before the first one, and a target that has only begun is not settled on."""

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN) as here:
            for upstream, name in SHORT.items():
                served.script([opening(upstream), Wait(FOREVER)])
                async with Leaving(here) as plain:
                    await plain.post(*asking(client, f"{name}/m"))
                    long = 0.2 if client == GEMINI else 10.0
                    data = await plain.listen(long, COMMENT, times=2)
                head, _, body = data.partition(b"\r\n\r\n")
                if client == GEMINI:
                    assert data == b"", "its SDK survives no comments: all is still open"
                    continue
                assert b" 200 OK" in head
                assert body.count(COMMENT) >= 2
                assert b"data:" not in body

    asyncio.run(scene())


LATE = {
    "refuses": lambda: upstreams.slow_headers(0.2, upstreams.status(503)),
    "hangs up": lambda: Reply(steps=(Wait(0.2), Cut()), bare=True),
    "begins and fails": lambda: upstreams.stream(opening(ANTHROPIC), Wait(0.2), Cut()),
}


@CLIENTS
@pytest.mark.parametrize("fault", LATE)
def test_after_a_long_wait_another_target_still_answers(fault: str, client: str) -> None:
    routes = '[[routes]]\nmatch = "m"\nto = ["a/m", "c/m"]'

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN, more=routes) as here:
            served.script(LATE[fault](), spoken(CHAT))
            got = await ask(here, client, "m")
            assert got.said["stop"] == "end_turn"
            assert "5 €" in got.said["text"]
            assert (got.body.startswith(COMMENT * 2)) is (client != GEMINI)

    asyncio.run(scene())


@CLIENTS
@pytest.mark.parametrize("fault", LATE)
def test_after_a_long_wait_a_failure_is_told_in_the_stream(fault: str, client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN) as here:
            served.script(LATE[fault]())
            got = await ask(here, client, "a/m")
            if client == GEMINI:
                got.is_refusal()
                return
            assert got.is_broken_off()
            assert got.body.startswith(COMMENT * 2)
            assert got.body.count(b"error") >= 1
            assert here.total("requests", outcome="ok") == 0

    asyncio.run(scene())


def test_a_failure_before_the_first_keepalive_is_still_a_status() -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server='retries = 0\nkeepalive = "5s"') as here:
            for client in PROTOCOLS:
                served.script(upstreams.slow_headers(0.05, upstreams.status(503)))
                (await ask(here, client, "a/m")).is_refusal(503)

    asyncio.run(scene())


@CLIENTS
def test_nothing_keeps_a_dead_upstream_alive(client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN, each='idle_timeout = "300ms"') as here:
            for upstream, name in SHORT.items():
                served.script([halves(upstream)[0], Wait(FOREVER)])
                got = await ask(here, client, f"{name}/m")
                assert "(idle_timeout)" in got.is_broken_off()
                if client == GEMINI:
                    continue
                assert beats(client, got.body) >= 2
                last = got.body.rindex(BEAT[client])
                assert b"idle_timeout" in got.body[last:], "the error is the last that is said"
                assert b"idle_timeout" not in got.body[:last]

    asyncio.run(scene())


@CLIENTS
def test_it_can_be_switched_off(client: str) -> None:
    first, second = halves(CHAT)

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server="retries = 0\nkeepalive = 0") as here:
            served.script([first, Wait(0.2), second])
            got = await ask(here, client, "c/m")
            assert got.said["stop"] == "end_turn"
            assert beats(client, got.body) == 0

    asyncio.run(scene())


@CLIENTS
def test_noise_from_the_upstream_does_not_count_as_an_answer(client: str) -> None:
    """Comments that the client never gets must not keep its keepalives away."""
    first, second = halves(CHAT)
    noise = [step for _ in range(30) for step in (b": OPENROUTER PROCESSING\n\n", Wait(0.01))]

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN) as here:
            served.script([first, *noise, second])
            got = await ask(here, client, "c/m")
            assert got.said["stop"] == "end_turn"
            assert (beats(client, got.body) >= 2) is (client != GEMINI)

    asyncio.run(scene())


def test_a_keepalive_and_the_first_words_at_the_same_time() -> None:
    """Both want to begin the answer: it begins once."""

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server='retries = 0\nkeepalive = "10ms"') as here:
            for client in PROTOCOLS:
                frames = spoken(ANTHROPIC).split(b"\n\n")[:-1]
                steps = [step for frame in frames for step in (frame + b"\n\n", Wait(0.0101))]
                served.script(*[steps] * 10)
                for got in await asyncio.gather(*(ask(here, client, "a/m") for _ in range(10))):
                    assert got.status == 200
                    assert got.said["stop"] == "end_turn"

    asyncio.run(scene())


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    running = Loop()
    yield running
    running.close()


def _text(client: str, said: Any) -> str:
    match client:
        case "anthropic":
            return "".join(e.delta.text for e in said if e.type == "content_block_delta")
        case "openai-chat":
            return "".join(c.choices[0].delta.content or "" for c in said if c.choices)
        case "openai-responses":
            return "".join(e.delta for e in said if e.type == "response.output_text.delta")
        case _:
            return "".join(chunk.text or "" for chunk in said)


@CLIENTS
def test_the_official_sdk_survives_it(client: str, loop: Loop) -> None:
    with in_background(ScriptedUpstream(pace=1)) as served:
        routes = '[[routes]]\nmatch = "m"\nto = "r/m"'
        with gateway(config(served.url, server=OFTEN, more=routes), loop) as here:
            first, second = halves(RESPONSES)
            begun = len(opening(RESPONSES))
            steps = [opening(RESPONSES), Wait(0.2), first[begun:], Wait(0.2), second]
            served.script(upstreams.slow_headers(0.2, upstreams.stream(*steps)))
            with sdk_clients.client(client, here.url) as sdk:
                assert "it costs 5 €" in _text(client, sdk_clients.ask(client, sdk, stream=True))


SDK_ERRORS = {
    ANTHROPIC: anthropic.APIStatusError,
    CHAT: openai.APIError,
    RESPONSES: openai.APIError,
    GEMINI: errors.APIError,
}


@CLIENTS
def test_the_official_sdk_raises_what_came_late(client: str, loop: Loop) -> None:
    with in_background(ScriptedUpstream(pace=1)) as served:
        routes = '[[routes]]\nmatch = "m"\nto = "r/m"'
        with gateway(config(served.url, server=OFTEN, more=routes), loop) as here:
            served.script(upstreams.slow_headers(0.2, upstreams.status(503, b'{"error": "on fire"}')))
            with (
                sdk_clients.client(client, here.url) as sdk,
                pytest.raises(SDK_ERRORS[client], match="on fire"),
            ):
                list(sdk_clients.ask(client, sdk, stream=True))
            assert len(served.seen) == 1
