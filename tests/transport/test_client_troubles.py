"""The client and time: silence, servers that take nothing, askers that leave, askers that are slow."""

import asyncio
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from support.wire import Peer, Script, Wire, play, wire

from dragoman.transport.client import (
    CannotConnect,
    Client,
    ConnectTimeout,
    Disconnected,
    HttpError,
    NoDescriptor,
    Silent,
    UnknownHost,
    curl,
    open_client,
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
    monkeypatch.setattr(curl, "_SLOWEST_UPLOAD", MUCH)

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
            await answer.close()

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
            client = open_client()
            answer = await client.ask("POST", served.url)
            assert await answer.chunk() == b"a"
            left = await client.ask("POST", served.url)
            left.leave()
            await client.close()
            for peer in served.peers:
                await asyncio.wait_for(peer.closed.wait(), 5)
            with pytest.raises(HttpError):
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

    play(script, scene)


# ── nobody there ──


def test_nobody_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]

        async def run() -> None:
            async with open_client() as client:
                for host in ("127.0.0.1", "localhost"):
                    with pytest.raises(CannotConnect, match="refuses") as caught:
                        await client.ask("GET", f"http://{host}:{port}")
                    assert (caught.value.host, caught.value.port) == (host, port)
                    assert not isinstance(caught.value, UnknownHost)

        asyncio.run(run())


def test_a_host_with_several_addresses_is_reached_at_any_of_them() -> None:
    """Something listens at one of localhost's addresses, at the others nobody does."""
    found = socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)
    addresses = sorted({str(address[0]) for *_, address in found})

    async def script(peer: Peer) -> None:
        await peer.answer(OPEN + b"1\r\na\r\n0\r\n\r\n")

    async def run() -> None:
        for address in addresses:
            async with wire(script, host=address) as served, open_client() as client:
                answer = await client.ask("GET", f"http://localhost:{served.port}")
                assert await answer.read(MUCH) == b"a"

    asyncio.run(run())


def test_no_descriptor_is_left() -> None:
    """It is no fault of the server's, and the client goes on as soon as there is one again."""

    async def run() -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{bound.getsockname()[1]}"
            async with open_client() as client:
                with pytest.raises(CannotConnect):  # whatever is loaded late is there
                    await client.ask("GET", url)
                with no_descriptors(), pytest.raises(NoDescriptor, match="ulimit -n"):
                    await client.ask("GET", url)
                with pytest.raises(CannotConnect):
                    await client.ask("GET", url)

    asyncio.run(run())


@contextmanager
def no_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, hard))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield
    finally:
        for one in taken:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("host", ["nowhere.invalid", "a" * 64 + ".invalid", "a..invalid"])
def test_no_such_host(host: str) -> None:
    async def run() -> None:
        async with open_client() as client:
            with pytest.raises(UnknownHost) as caught:
                await client.ask("GET", f"http://{host}:1/")
            assert caught.value.host == host

    asyncio.run(run())


def test_no_connection_in_time() -> None:
    """A server that takes a connection and then says nothing in the TLS handshake."""

    async def script(peer: Peer) -> None:
        await asyncio.Event().wait()

    async def scene(client: Client, served: Wire) -> None:
        url = served.url.replace("http:", "https:")
        with pytest.raises(ConnectTimeout):
            await client.ask("GET", url, connect_timeout=0.5)

    play(script, scene)


def test_half_closed() -> None:
    """A server that has no more to read from us may still answer."""

    async def script(peer: Peer) -> None:
        await peer.answer(OPEN + b"1\r\na\r\n")
        peer.writer.write(b"0\r\n\r\n")
        peer.writer.write_eof()

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            assert await (await client.ask("POST", served.url)).read(9) == b"a"
        assert len(served.peers) == 2

    play(script, scene)


def test_closed_as_soon_as_it_is_open() -> None:
    async def script(peer: Peer) -> None:
        peer.writer.transport.abort()

    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises((Disconnected, CannotConnect)):
            await client.ask("POST", served.url)

    play(script, scene)
