"""The client and time: silence, servers that take nothing, askers that leave, askers that are slow."""

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from support.wire import Peer, Script, Wire, play, wire

from dragoman.http.client import (
    CannotConnect,
    Client,
    ConnectTimeout,
    Disconnected,
    Silent,
    UnknownHost,
    connection,
    dialling,
)

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
OPEN = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
MUCH = 2**30


async def hung_up(served: Wire) -> None:
    await asyncio.wait_for(served.peers[0].closed.wait(), 5)


async def mute(peer: Peer) -> None:
    await peer.request()


async def stops(peer: Peer) -> None:
    await peer.answer(OPEN + b"1\r\na\r\n")


# ── silence ──


def test_silence_before_the_head() -> None:
    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(Silent) as caught:
            await client.ask("POST", served.url, idle_timeout=0.02)
        assert isinstance(caught.value, TimeoutError)
        await hung_up(served)

    play(mute, scene)


def test_silence_in_the_middle() -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("POST", served.url, idle_timeout=0.02)
        assert await answer.chunk() == b"a"
        for _ in range(2):
            with pytest.raises(Silent):
                await answer.chunk()
        await hung_up(served)

    play(stops, scene)


def test_whoever_says_something_now_and_then_is_not_silent() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(OPEN)
        for _ in range(8):
            await asyncio.sleep(0.05)
            await peer.say(b"1\r\na\r\n")
        await peer.say(b"0\r\n\r\n")

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("POST", served.url, idle_timeout=0.3)
        assert await answer.read(MUCH) == b"a" * 8

    play(script, scene)


def test_a_shorter_patience_on_a_connection_that_had_a_longer_one() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        await peer.request()

    async def scene(client: Client, served: Wire) -> None:
        await (await client.ask("POST", served.url, idle_timeout=MUCH)).read(2)
        with pytest.raises(Silent):
            await client.ask("POST", served.url, idle_timeout=0.02)
        assert len(served.peers) == 1

    play(script, scene)


def test_who_does_not_ask_for_more_waits_for_nobody() -> None:
    """As long as the asker is busy elsewhere nobody is too late; what has come is given then."""

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("POST", served.url, idle_timeout=0.02)
        await asyncio.sleep(0.1)
        assert await answer.chunk() == b"a"

    play(stops, scene)


def test_a_connection_that_lies_unused_is_not_silent() -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.answer(OK)

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            answer = await client.ask("POST", served.url, idle_timeout=0.05)
            assert await answer.read(2) == b"ok"
            await asyncio.sleep(0.1)
        assert len(served.peers) == 1

    play(script, scene)


# ── servers that do not take the request ──


def test_a_request_that_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_SLOWEST_UPLOAD", MUCH)

    async def script(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.Event().wait()

    async def scene(client: Client, served: Wire) -> None:
        for size in (900_000, 30_000_000):
            body = bytes(size)
            with pytest.raises(Silent):
                await client.ask("POST", served.url, {}, body, idle_timeout=0.05)

    play(script, scene)


def test_a_request_that_is_taken_slowly() -> None:
    body = bytes(range(256)) * 100_000

    async def script(peer: Peer) -> None:
        while True:
            peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(0.05)
            peer.writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert (await peer.request()).endswith(b"\r\n\r\n" + body)
            await peer.say(OK)

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            answer = await client.ask("POST", served.url, {}, body)
            assert await answer.read(9) == b"ok"
        assert len(served.peers) == 1

    play(script, scene)


def test_patience_with_a_long_request_is_none_with_its_answer() -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0.05)
        await peer.say(OPEN)
        await asyncio.Event().wait()

    async def scene(client: Client, served: Wire) -> None:
        async with asyncio.timeout(60):
            answer = await client.ask("POST", served.url, {}, bytes(30_000_000), idle_timeout=0.3)
            with pytest.raises(Silent):
                await answer.chunk()

    play(script, scene)


def test_an_answer_that_does_not_wait_for_the_request() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno"

    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await peer.say(refusal)
        await asyncio.Event().wait()

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            answer = await client.ask("POST", served.url, {}, bytes(30_000_000), idle_timeout=5)
            assert (answer.status, await answer.read(9)) == (413, b"no")
        assert len(served.peers) == 2, "the rest of a request is no request"

    play(script, scene)


# ── askers that leave ──


@pytest.mark.parametrize("script", [mute, stops])
def test_cancelling_hangs_up(script: Script) -> None:
    async def asks(client: Client, served: Wire) -> None:
        answer = await client.ask("POST", served.url)
        try:
            await answer.read(MUCH)
        finally:
            answer.close()

    async def scene(client: Client, served: Wire) -> None:
        task = asyncio.create_task(asks(client, served))
        await asyncio.sleep(0.05)
        assert served.peers[0].requests
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        await hung_up(served)

    play(script, scene)


def test_closing_the_client_hangs_up_on_everybody() -> None:
    async def run() -> None:
        async with wire(stops) as served:
            client = Client()
            answer = await client.ask("POST", served.url)
            assert await answer.chunk() == b"a"
            left = await client.ask("POST", served.url)
            left.leave()
            await client.close()
            for peer in served.peers:
                await asyncio.wait_for(peer.closed.wait(), 5)
            with pytest.raises(Exception, match="closed in the middle"):
                await answer.chunk()

    asyncio.run(run())


# ── askers that are slow ──


def test_who_is_slow_is_not_flooded() -> None:
    sent = 0
    size = 16 * 1024 * 1024

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(256):
            await peer.say(bytes(size // 256))
            sent += size // 256

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.ask("GET", served.url)
        before = -1
        while sent != before:  # until nothing moves any more
            before = sent
            await asyncio.sleep(0.05)
        assert sent < size, "what the asker does not take stays where it is"
        assert await answer.read(MUCH) == bytes(size)
        assert answer.ended

    play(script, scene)


# ── nobody there ──


def test_nobody_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]

        async def run() -> None:
            async with Client() as client:
                for host in ("127.0.0.1", "localhost"):
                    with pytest.raises(CannotConnect, match="refused") as caught:
                        await client.ask("GET", f"http://{host}:{port}")
                    assert (caught.value.host, caught.value.port) == (host, port)
                    assert not isinstance(caught.value, UnknownHost)

        asyncio.run(run())


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 64 + ".invalid", "a..invalid"])
def test_no_such_host(host: str) -> None:
    async def run() -> None:
        async with Client() as client:
            with pytest.raises(UnknownHost) as caught:
                await client.ask("GET", f"http://{host}:1/")
            assert caught.value.host == host

    asyncio.run(run())


def test_no_connection_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(address: object) -> socket.socket:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(dialling, "_connected", never)

    async def run() -> None:
        async with Client() as client:
            with pytest.raises(ConnectTimeout):
                await client.ask("GET", "http://127.0.0.1:1/", connect_timeout=0.01)

    asyncio.run(run())


def test_closed_as_soon_as_it_is_open() -> None:
    async def script(peer: Peer) -> None:
        peer.writer.transport.abort()

    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises((Disconnected, CannotConnect)):
            await client.ask("POST", served.url)

    play(script, scene)


# ── several addresses ──

Answer = Callable[[], Awaitable[socket.socket]]


def dial(
    monkeypatch: pytest.MonkeyPatch, behaviour: dict[str, Exception | float]
) -> tuple[str | OSError, list[str]]:
    """Dial a host with these addresses, each of which fails, or connects after so many seconds."""
    began: list[str] = []
    sockets: dict[str, socket.socket] = {}

    async def connected(address: tuple[int, tuple[str, int]]) -> socket.socket:
        name = address[1][0]
        began.append(name)
        does = behaviour[name]
        if isinstance(does, Exception):
            raise does
        await asyncio.sleep(does)
        sockets[name] = socket.socket()
        return sockets[name]

    async def found(self: object, host: str, port: int) -> list[dialling.Address]:
        families = [socket.AF_INET6 if ":" in name else socket.AF_INET for name in behaviour]
        return dialling._sorted([(f, (name, port)) for f, name in zip(families, behaviour, strict=True)])

    monkeypatch.setattr(dialling, "_connected", connected)
    monkeypatch.setattr(dialling.Addresses, "_ask", found)
    monkeypatch.setattr(dialling, "_HEAD_START", 0.02)

    async def run() -> str | OSError:
        try:
            won = await dialling.Addresses().dial("many.invalid", 1)
        except OSError as error:
            return error
        return next(name for name, made in sockets.items() if made is won)

    result = asyncio.run(run())
    for made in sockets.values():
        made.close()
    return result, began


REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "refused")
UNREACHABLE = OSError(errno.ENETUNREACH, "unreachable")


def test_families_by_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    places = dict.fromkeys(["::1", "::2", "::3", "1.1.1.1", "2.2.2.2"], REFUSED)
    result, began = dial(monkeypatch, {**places})
    assert result is REFUSED
    assert began == ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"]


def test_the_next_address_is_tried_at_once_where_one_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dial(monkeypatch, {"::1": UNREACHABLE, "1.1.1.1": 0.0}) == ("1.1.1.1", ["::1", "1.1.1.1"])


def test_a_slow_address_gets_a_rival(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dial(monkeypatch, {"::1": 60.0, "1.1.1.1": 0.0}) == ("1.1.1.1", ["::1", "1.1.1.1"])


def test_the_first_one_wins_though_a_rival_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    assert dial(monkeypatch, {"::1": 0.1, "1.1.1.1": 60.0}) == ("::1", ["::1", "1.1.1.1"])
    assert dial(monkeypatch, {"::1": 0.1, "1.1.1.1": REFUSED}) == ("::1", ["::1", "1.1.1.1"])


def test_a_name_is_looked_up_once_for_many() -> None:
    looked: list[str] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        getaddrinfo = loop.getaddrinfo

        async def counted(host: str, port: int, **more: int) -> object:
            looked.append(host)
            return await getaddrinfo(host, port, **more)

        loop.getaddrinfo = counted  # type: ignore[assignment]

        async def script(peer: Peer) -> None:
            await peer.answer(OK)

        async with wire(script) as served, Client() as client:
            url = served.url.replace("127.0.0.1", "localhost")
            answers = await asyncio.gather(*[client.ask("GET", url) for _ in range(5)])
            assert len(served.peers) == 5
            for answer in answers:
                answer.close()
            assert await (await client.ask("GET", url)).read(2) == b"ok"
            assert len(served.peers) == 6

    asyncio.run(run())
    assert looked.count("localhost") == 1
