"""Upstreams that fail in mid-stream: sent text stays, then an error in the client's protocol follows."""

import asyncio
from collections.abc import Iterable, Iterator

import pytest
from gateway_harness import SHORT, RawClient, ask, ask_all, asking, before, soon
from support import scripted_upstream as upstreams
from support.scripted_talk import question, reply_to, sent
from support.scripted_upstream import FOREVER, Cut, Reply, ScriptedUpstream, Wait
from support.wires import PROTOCOLS

from dragoman.gateway.exchange import answer_attempt, reply

CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
# Longer than a busy machine takes for the first bytes, which come before the silence.
SILENT = 'idle_timeout = "2s"'
WORDS = "Please say that it costs 5 € and not 7"


def spoken(protocol: str) -> bytes:
    """A complete stream of text in the upstream's protocol."""
    return sent(reply_to(protocol, question("demo", WORDS, stream=True).changed(tools=())))


def opening(protocol: str) -> bytes:
    """The beginning of a stream, before any text."""
    return sent(reply_to(protocol, question("demo-overloaded", stream=True))).split(b"\n\n")[0] + b"\n\n"


def cut_within_a_character(protocol: str) -> bytes:
    data = spoken(protocol)
    return data[: data.index("€".encode()) + 1]


@CLIENTS
@pytest.mark.parametrize("model", ["demo-cut", "demo-error", "demo-stall"])
def test_a_cut_stream_ends_in_an_error(model: str, client: str) -> None:
    async def scene() -> None:
        each = SILENT if model == "demo-stall" else ""
        async with before(ScriptedUpstream(pace=1), each=each) as gateway:
            for got in await ask_all(gateway, client, model, streams=[True]):
                message = got.is_broken_off()
                assert got.said["text"], "earlier text is kept"
                assert got.said["tool_calls"] == [] or client != "gemini"
                expected = {"demo-error": "broke down", "demo-stall": "(idle_timeout)"}.get(model, "broke")
                assert expected in message
            assert gateway.state.lifecycle.running == 0
            kinds = {"demo-error": "server", "demo-stall": "timeout"}
            assert gateway.total("requests", outcome=kinds.get(model, "upstream")) == 4
            assert gateway.total("failures") == 4

    asyncio.run(scene())


@CLIENTS
@pytest.mark.parametrize("reset", [True, False], ids=["reset", "closed"])
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_cut_within_a_character(upstream: str, reset: bool, client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as gateway:
            served.script([cut_within_a_character(upstream), Wait(0.05), Cut(reset=reset)])
            got = await ask(gateway, client, f"{SHORT[upstream]}/m")
            # Complete text is there, the cut character is not.
            if got.status == 200:
                assert "broke" in got.is_broken_off()
                assert "�" not in got.said["text"]
            else:
                got.is_refusal(502)

    asyncio.run(scene())


@CLIENTS
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_the_end_of_the_connection_is_not_the_end_of_the_answer(upstream: str, client: str) -> None:
    """The connection closes after each frame in turn. Only the last one is a clean end."""
    frames = spoken(upstream).split(b"\n\n")[:-1]

    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served) as gateway:
            for count in range(1, len(frames)):
                served.script(b"\n\n".join(frames[:count]) + b"\n\n")
                got = await ask(gateway, client, f"{SHORT[upstream]}/m")
                if got.said["stop"] != "error":
                    # Only usage and the last frame may still follow.
                    assert b'"stop"' in b"".join(frames[:count]) or b"end_turn" in b"".join(frames[:count])
            served.script(spoken(upstream))
            got = await ask(gateway, client, f"{SHORT[upstream]}/m")
            assert got.said["stop"] == "end_turn"
            assert "5 €" in got.said["text"]

    asyncio.run(scene())


@CLIENTS
def test_an_endless_answer_is_ended(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_attempt, "MAX_RECEIVED", 2**17)

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
    """An answer that repeats the same text."""
    before_the_euro = cut_within_a_character(protocol).rpartition(b"\n\n")[0]
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
    """The gateway buffers a limited part of an endless answer, however fast it arrives."""

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
            async with RawClient(gateway) as slow:
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
                assert count[0] > sent_by_then, "the upstream was not allowed to continue"
            assert await served.last.wait_closed()
            assert await gateway.idle()

    asyncio.run(scene())


@CLIENTS
def test_held_events_without_text_are_limited(client: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "MAX_HELD", 4096)

    async def scene() -> None:
        served = ScriptedUpstream()
        ping = b'event: ping\ndata: {"type": "ping"}\n\n'
        steps = [opening("anthropic"), ping * 1000, Wait(FOREVER)]
        async with before(served, each=SILENT) as gateway:
            served.script(steps)
            got = await ask(gateway, client, "a/m")
            # An Anthropic client gets the pings; other clients do not.
            message = got.is_broken_off() if client == "anthropic" else got.is_refusal(504)
            assert "(idle_timeout)" in message

    asyncio.run(scene())


def test_a_bug_of_ours_in_mid_stream_is_an_error_in_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    feed = answer_attempt.Translation.feed

    def broken(self: answer_attempt.Translation, data: bytes) -> bytes:
        if b"tool_calls" in data:
            raise ZeroDivisionError("secret-in-a-traceback")
        return feed(self, data)

    monkeypatch.setattr(answer_attempt.Translation, "feed", broken)
    for data in asyncio.run(_through_our_fault()):
        assert b"Dragoman failed because of a bug; the gateway's log has the details" in data
        assert data.endswith(b"0\r\n\r\n")
    # If even the error cannot be written, the connection breaks.
    monkeypatch.setattr(answer_attempt.Translation, "fail", lambda *_: 1 / 0)
    for data in asyncio.run(_through_our_fault()):
        assert not data.endswith(b"0\r\n\r\n")


async def _through_our_fault() -> list[bytes]:
    """The raw bytes that each client gets."""
    frames = sent(reply_to("openai-chat", question(stream=True))).split(b"\n\n")
    first = next(number for number, frame in enumerate(frames) if b"tool_calls" in frame)
    upstream = ScriptedUpstream(pace=1)
    heard: list[bytes] = []
    async with before(upstream) as gateway:
        for client in PROTOCOLS:
            upstream.script([b"\n\n".join([*frames[:first], b""]), Wait(0.05), b"\n\n".join(frames[first:])])
            async with RawClient(gateway) as plain:
                await plain.post(*asking(client, "c/m"))
                heard.append(await plain.listen(20, b"0\r\n\r\n", times=1))
            assert heard[-1].count(b"HTTP/1.1") == 1
            assert b"secret-in-a-traceback" not in heard[-1]
        assert gateway.total("requests", outcome="server") == 4
        assert await gateway.idle()
    return heard
