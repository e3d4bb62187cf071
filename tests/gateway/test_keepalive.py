"""Keepalives: while the upstream is silent, each client gets bytes that its SDK accepts."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import anthropic
import openai
import pytest
from gateway_harness import SHORT, RawClient, ask, asking, before, config
from google.genai import errors
from support import scripted_upstream as upstreams
from support import sdk_clients
from support.gateways import Loop, gateway
from support.scripted_upstream import FOREVER, Cut, Reply, ScriptedUpstream, Step, Wait, in_background
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES
from test_faults_midstream import cut_within_a_character, opening, spoken

from dragoman.gateway.exchange.reply import StreamReply

CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)
OFTEN = 'retries = 0\nkeepalive = "50ms"'
COMMENT = b": keepalive\n\n"
KEEPALIVE = {
    ANTHROPIC: b'event: ping\ndata: {"type":"ping"}\n\n',
    CHAT: COMMENT,
    RESPONSES: COMMENT,
    GEMINI: b"",
}


def keepalive_count(client: str, data: bytes) -> int:
    return data.count(KEEPALIVE[client]) if KEEPALIVE[client] else 0


def two_parts(protocol: str) -> tuple[bytes, bytes]:
    """A stream in two parts, cut between two frames of its text."""
    data = spoken(protocol)
    at = cut_within_a_character(protocol).rindex(b"\n\n") + 2
    return data[:at], data[at:]


Pause = Callable[[str], Iterator[Step]]


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Pause:
    """Steps of an upstream that says nothing until the client has got two keepalives.

    A pause of fixed length would be too short for two of them on a busy machine.
    """
    sent = 0
    send: Any = StreamReply.send_keepalive

    async def counted(self: StreamReply) -> None:
        nonlocal sent
        await send(self)
        sent += 1

    def steps(client: str) -> Iterator[Step]:
        if client == GEMINI:  # Its SDK accepts no comments, so it gets no keepalives.
            yield Wait(0.2)
            return
        enough = sent + 2
        while sent < enough:
            yield Wait(0.01)

    monkeypatch.setattr(StreamReply, "send_keepalive", counted)
    return steps


@CLIENTS
@UPSTREAMS
def test_a_pause_is_filled(upstream: str, client: str, pause: Pause) -> None:
    first, second = two_parts(upstream)

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN) as here:
            served.script(chain([first], pause(client), [second]))
            got = await ask(here, client, f"{SHORT[upstream]}/m")
            # The judges see the keepalives, too.
            assert got.said["stop"] == "end_turn"
            assert "5 €" in got.said["text"]
            sent_along = (
                spoken(upstream).count(KEEPALIVE[client]) if upstream == client and KEEPALIVE[client] else 0
            )
            extra = keepalive_count(client, got.body) - sent_along
            assert extra == 0 if client == GEMINI else 2 <= extra <= 8

    asyncio.run(scene())


@CLIENTS
def test_before_the_answer_begins_only_comments_are_sent(client: str) -> None:
    """No event may precede the first one, and another target may still answer."""

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN) as here:
            for upstream, name in SHORT.items():
                served.script([opening(upstream), Wait(FOREVER)])
                async with RawClient(here) as plain:
                    await plain.post(*asking(client, f"{name}/m"))
                    long = 0.2 if client == GEMINI else 10.0
                    data = await plain.listen(long, COMMENT, times=2)
                head, _, body = data.partition(b"\r\n\r\n")
                if client == GEMINI:
                    assert data == b"", "its SDK accepts no comments, so nothing is sent yet"
                    continue
                assert b" 200 OK" in head
                assert body.count(COMMENT) >= 2
                assert b"data:" not in body

    asyncio.run(scene())


REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"
LATE: dict[str, Callable[[Iterator[Step]], Reply]] = {
    "refuses": lambda pause: Reply(steps=chain(pause, [REFUSAL]), bare=True),
    "hangs up": lambda pause: Reply(steps=chain(pause, [Cut()]), bare=True),
    "begins and fails": lambda pause: Reply(
        steps=chain([opening(ANTHROPIC)], pause, [Cut()]), content_type="text/event-stream"
    ),
}


@CLIENTS
@pytest.mark.parametrize("fault", LATE)
def test_after_a_long_wait_another_target_still_answers(fault: str, client: str, pause: Pause) -> None:
    routes = '[[routes]]\nmatch = "m"\nto = ["a/m", "c/m"]'

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN, more=routes) as here:
            served.script(LATE[fault](pause(client)), spoken(CHAT))
            got = await ask(here, client, "m")
            assert got.said["stop"] == "end_turn"
            assert "5 €" in got.said["text"]
            assert (got.body.startswith(COMMENT * 2)) is (client != GEMINI)

    asyncio.run(scene())


@CLIENTS
@pytest.mark.parametrize("fault", LATE)
def test_after_a_long_wait_a_failure_is_an_error_in_the_stream(fault: str, client: str, pause: Pause) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN) as here:
            served.script(LATE[fault](pause(client)))
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
def test_keepalives_do_not_extend_the_idle_timeout(client: str) -> None:
    async def scene(upstream: str) -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN, each='idle_timeout = "2s"') as here:
            served.script([two_parts(upstream)[0], Wait(FOREVER)])
            got = await ask(here, client, f"{SHORT[upstream]}/m")
            assert "(idle_timeout)" in got.is_broken_off()
            if client == GEMINI:
                return
            assert keepalive_count(client, got.body) >= 2
            last = got.body.rindex(KEEPALIVE[client])
            assert b"idle_timeout" in got.body[last:], "the error comes last"
            assert b"idle_timeout" not in got.body[:last]

    async def all_upstreams() -> None:
        await asyncio.gather(*map(scene, SHORT))

    asyncio.run(all_upstreams())


@CLIENTS
def test_keepalives_can_be_switched_off(client: str) -> None:
    first, second = two_parts(CHAT)

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server="retries = 0\nkeepalive = 0") as here:
            served.script([first, Wait(0.2), second])
            got = await ask(here, client, "c/m")
            assert got.said["stop"] == "end_turn"
            assert keepalive_count(client, got.body) == 0

    asyncio.run(scene())


@CLIENTS
def test_comments_from_the_upstream_do_not_delay_keepalives(client: str, pause: Pause) -> None:
    """The client never gets these comments, so it still needs keepalives."""
    first, second = two_parts(CHAT)
    noise = (step for wait in pause(client) for step in (b": OPENROUTER PROCESSING\n\n", wait))

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN) as here:
            served.script(chain([first], noise, [second]))
            got = await ask(here, client, "c/m")
            assert got.said["stop"] == "end_turn"
            assert (keepalive_count(client, got.body) >= 2) is (client != GEMINI)

    asyncio.run(scene())


def test_a_keepalive_at_the_same_time_as_the_first_text() -> None:
    """Both open the answer, which must begin once."""

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
def test_the_official_sdk_accepts_keepalives(client: str, loop: Loop) -> None:
    with in_background(ScriptedUpstream(pace=1)) as served:
        routes = '[[routes]]\nmatch = "m"\nto = "r/m"'
        with gateway(config(served.url, server=OFTEN, more=routes), loop) as here:
            first, second = two_parts(RESPONSES)
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
def test_the_official_sdk_raises_a_late_error(client: str, loop: Loop) -> None:
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
