"""Upstreams in trouble after they began: what was said stays said, then an error in the client's protocol."""

import asyncio
from collections.abc import Iterable, Iterator

import pytest
from support import scripted_upstream as upstreams
from support.scripted_talk import question, reply_to, sent
from support.scripted_upstream import FOREVER, Cut, Reply, ScriptedUpstream, Wait
from support.wires import PROTOCOLS
from troubles import SHORT, Leaving, ask, ask_all, asking, before, soon

from dragoman.gateway import attempt, reply

CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
SILENT = 'idle_timeout = "400ms"'
WORDS = "Please say that it costs 5 € and not 7"


def spoken(protocol: str) -> bytes:
    """A whole stream of words only, in the upstream's protocol."""
    return sent(reply_to(protocol, question("demo", WORDS, stream=True).changed(tools=())))


def opening(protocol: str) -> bytes:
    """The beginning of a stream in which nothing has been said yet."""
    return sent(reply_to(protocol, question("demo-overloaded", stream=True))).split(b"\n\n")[0] + b"\n\n"


def in_the_euro(protocol: str) -> bytes:
    data = spoken(protocol)
    return data[: data.index("€".encode()) + 1]


@CLIENTS
@pytest.mark.parametrize("model", ["demo-cut", "demo-error", "demo-stall"])
def test_a_stream_that_breaks_off_ends_in_an_error(model: str, client: str) -> None:
    async def scene() -> None:
        each = SILENT if model == "demo-stall" else ""
        async with before(ScriptedUpstream(pace=1), each=each) as gateway:
            for got in await ask_all(gateway, client, model, streams=[True]):
                message = got.is_broken_off()
                assert got.said["text"], "what was said before is kept"
                assert got.said["tool_calls"] == [] or client != "gemini"
                expected = {"demo-error": "broke down", "demo-stall": "(idle_timeout)"}.get(model, "broke")
                assert expected in message
            assert gateway.state.running == 0
            kinds = {"demo-error": "server", "demo-stall": "timeout"}
            assert gateway.total("requests", outcome=kinds.get(model, "upstream")) == 4
            assert gateway.total("failures") == 4

    asyncio.run(scene())


@CLIENTS
@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_break_in_the_middle_of_a_character(upstream: str, reset: bool, client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as gateway:
            served.script([in_the_euro(upstream), Wait(0.05), Cut(reset=reset)])
            got = await ask(gateway, client, f"{SHORT[upstream]}/m")
            # Words that came whole are there, the torn ones are not.
            if got.status == 200:
                assert "broke" in got.is_broken_off()
                assert "�" not in got.said["text"]
            else:
                got.is_refusal(502)

    asyncio.run(scene())


@CLIENTS
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_the_end_of_the_connection_is_not_the_end_of_the_answer(upstream: str, client: str) -> None:
    """Every place a stream can be closed at, between two frames: only the last one is a clean end."""
    frames = spoken(upstream).split(b"\n\n")[:-1]

    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served) as gateway:
            for count in range(1, len(frames)):
                served.script(b"\n\n".join(frames[:count]) + b"\n\n")
                got = await ask(gateway, client, f"{SHORT[upstream]}/m")
                if got.said["stop"] != "error":
                    # What may still follow, usage and the last frame, is not the model's to say.
                    assert b'"stop"' in b"".join(frames[:count]) or b"end_turn" in b"".join(frames[:count])
            served.script(spoken(upstream))
            got = await ask(gateway, client, f"{SHORT[upstream]}/m")
            assert got.said["stop"] == "end_turn"
            assert "5 €" in got.said["text"]

    asyncio.run(scene())


@CLIENTS
def test_an_answer_without_end_is_ended(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt, "MAX_RECEIVED", 2**17)

    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served) as gateway:
            for protocol, name in SHORT.items():
                served.script(_long(protocol))
                got = await ask(gateway, client, f"{name}/m")
                assert "did not end its answer" in got.is_broken_off()
                assert await served.last.wait_closed()

    asyncio.run(scene())


def _long(protocol: str) -> Iterator[bytes]:
    """An answer that says the same words again and again."""
    before_the_euro = in_the_euro(protocol).rpartition(b"\n\n")[0]
    words = before_the_euro.rpartition(b"\n\n")[2] + b"\n\n"
    yield before_the_euro + b"\n\n"
    while True:
        yield words


def _counted(frame: bytes, count: list[int]) -> Iterable[bytes]:
    while True:
        count[0] += len(frame)
        yield frame


@CLIENTS
def test_a_client_that_does_not_read_stops_the_upstream(client: str) -> None:
    """The gateway keeps a bounded part of an endless answer, however fast it comes."""

    async def scene() -> None:
        served = ScriptedUpstream()
        words = "and so on, " * 1500
        head = opening("openai-chat")
        frame = (
            b'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":'
            b'[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % words.encode()
        )
        count = [0]

        def steps() -> Iterable[bytes]:
            yield head
            yield from _counted(frame, count)

        async with before(served) as gateway:
            served.script(Reply(steps=steps(), content_type=upstreams.STREAM))
            async with Leaving(gateway) as slow:
                await slow.post(*asking(client, "c/m"))
                await slow.until(b"and so on")
                await soon(lambda: False, 0.5)
                sent_by_then = count[0]
                await soon(lambda: False, 0.3)
                assert count[0] == sent_by_then, "the upstream was not held back"
                assert count[0] < 32 * 2**20
                for _ in range(20):
                    await slow.listen(0.1)
                    if count[0] > sent_by_then:
                        break
                assert count[0] > sent_by_then, "the upstream was not let go on"
            assert await served.last.wait_closed()
            assert await gateway.idle()

    asyncio.run(scene())


@CLIENTS
def test_beginnings_without_end_are_not_hoarded(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "MOST_HELD", 4096)

    async def scene() -> None:
        served = ScriptedUpstream()
        ping = b'event: ping\ndata: {"type": "ping"}\n\n'
        steps = [opening("anthropic"), ping * 1000, Wait(FOREVER)]
        async with before(served, each=SILENT) as gateway:
            served.script(steps)
            got = await ask(gateway, client, "a/m")
            # An Anthropic client gets the pings as they come; the others never hear of them.
            message = got.is_broken_off() if client == "anthropic" else got.is_refusal(504)
            assert "(idle_timeout)" in message

    asyncio.run(scene())


def test_a_fault_of_our_own_in_mid_stream_is_told_and_not_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = attempt.Exchange.feed

    def broken(self: attempt.Exchange, data: bytes) -> bytes:
        if b"tool_calls" in data:
            raise ZeroDivisionError("secret-in-a-traceback")
        return feed(self, data)

    monkeypatch.setattr(attempt.Exchange, "feed", broken)
    for data in asyncio.run(_through_our_fault()):
        assert b"ZeroDivisionError" in data
        assert data.endswith(b"0\r\n\r\n")
    # Not even the error can be said: then nothing is, and the transfer has no end.
    monkeypatch.setattr(attempt.Exchange, "fail", lambda *_: 1 / 0)
    for data in asyncio.run(_through_our_fault()):
        assert not data.endswith(b"0\r\n\r\n")


async def _through_our_fault() -> list[bytes]:
    """What each client gets, on a bare socket."""
    frames = sent(reply_to("openai-chat", question(stream=True))).split(b"\n\n")
    first = next(number for number, frame in enumerate(frames) if b"tool_calls" in frame)
    upstream = ScriptedUpstream(pace=1)
    heard: list[bytes] = []
    async with before(upstream) as gateway:
        for client in PROTOCOLS:
            upstream.script([b"\n\n".join([*frames[:first], b""]), Wait(0.05), b"\n\n".join(frames[first:])])
            async with Leaving(gateway) as plain:
                await plain.post(*asking(client, "c/m"))
                heard.append(await plain.listen(0.2))
            assert heard[-1].count(b"HTTP/1.1") == 1
            assert b"secret-in-a-traceback" not in heard[-1]
        assert gateway.total("requests", outcome="server") == 4
        assert await gateway.idle()
    return heard
