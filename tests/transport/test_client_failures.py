"""The HTTP client with silent, slow or unreachable servers, and with callers that cancel or read slowly."""

import asyncio
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from support.raw_server import Peer, Script, Wire, play, wire

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


async def client_closed_the_connection(served: Wire) -> None:
    await asyncio.wait_for(served.peers[0].closed.wait(), 30)


async def request_arrived(served: Wire) -> None:
    async with asyncio.timeout(30):
        while not served.peers or not served.peers[0].requests:  # noqa: ASYNC110 - the server sets no event
            await asyncio.sleep(0.01)


async def reads_and_never_answers(peer: Peer) -> None:
    await peer.request()


async def answers_and_stops(peer: Peer) -> None:
    await peer.answer(OPEN + b"1\r\na\r\n")


# ── silence ──


def test_silence_before_the_head_times_out() -> None:
    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises(Silent) as caught:
            await client.request("POST", served.url, idle_timeout=0.02)
        assert isinstance(caught.value, TimeoutError)
        await client_closed_the_connection(served)

    play(reads_and_never_answers, scene)


def test_silence_in_the_middle_of_a_body_times_out() -> None:
    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("POST", served.url, idle_timeout=0.5)
        assert await answer.chunk() == b"a"
        for _ in range(2):
            with pytest.raises(Silent):
                await answer.chunk()
        await client_closed_the_connection(served)

    play(answers_and_stops, scene)


def test_each_chunk_restarts_the_idle_timeout() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(OPEN)
        for _ in range(8):
            await asyncio.sleep(0.25)
            await peer.say(b"1\r\na\r\n")
        await peer.say(b"0\r\n\r\n")

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("POST", served.url, idle_timeout=1.5)
        assert await answer.read(MUCH) == b"a" * 8

    play(script, scene)


def test_each_request_on_a_connection_has_its_own_idle_timeout() -> None:
    async def script(peer: Peer) -> None:
        await peer.answer(OK)
        await peer.request()

    async def scene(client: Client, served: Wire) -> None:
        await (await client.request("POST", served.url, idle_timeout=MUCH)).read(2)
        with pytest.raises(Silent):
            await client.request("POST", served.url, idle_timeout=0.02)
        assert len(served.peers) == 1

    play(script, scene)


def test_the_idle_timeout_runs_only_while_the_caller_reads() -> None:
    """While the caller is busy elsewhere, the server is not late. The caller then gets the received bytes."""

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("POST", served.url, idle_timeout=0.5)
        await asyncio.sleep(0.7)
        assert await answer.chunk() == b"a"

    play(answers_and_stops, scene)


def test_the_idle_timeout_does_not_close_an_unused_connection() -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.answer(OK)

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            answer = await client.request("POST", served.url, idle_timeout=0.5)
            assert await answer.read(2) == b"ok"
            await asyncio.sleep(0.7)
        assert len(served.peers) == 1

    play(script, scene)


# ── servers that do not read the request ──


def test_a_server_that_does_not_read_the_request_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curl, "_SLOWEST_UPLOAD", MUCH)

    async def script(peer: Peer) -> None:
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.Event().wait()

    async def scene(client: Client, served: Wire) -> None:
        for size in (900_000, 30_000_000):
            body = bytes(size)
            with pytest.raises(Silent):
                await client.request("POST", served.url, {}, body, idle_timeout=0.05)

    play(script, scene)


def test_a_server_may_read_the_request_slowly() -> None:
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
            answer = await client.request("POST", served.url, {}, body)
            assert await answer.read(9) == b"ok"
        assert len(served.peers) == 1

    play(script, scene)


def test_a_long_upload_does_not_extend_the_idle_timeout_of_its_response() -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(0.05)
        await peer.say(OPEN)
        await asyncio.Event().wait()

    async def scene(client: Client, served: Wire) -> None:
        async with asyncio.timeout(60):
            answer = await client.request("POST", served.url, {}, bytes(30_000_000), idle_timeout=0.3)
            with pytest.raises(Silent):
                await answer.chunk()

    play(script, scene)


def test_a_response_may_come_before_the_request_is_sent() -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno"

    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await peer.say(refusal)
        await asyncio.Event().wait()

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            answer = await client.request("POST", served.url, {}, bytes(30_000_000), idle_timeout=5)
            assert (answer.status, await answer.read(9)) == (413, b"no")
        assert len(served.peers) == 2, "the rest of a request is no request"

    play(script, scene)


# ── callers that cancel ──


@pytest.mark.parametrize("script", [reads_and_never_answers, answers_and_stops])
def test_cancelling_closes_the_connection(script: Script) -> None:
    async def read_response(client: Client, served: Wire) -> None:
        answer = await client.request("POST", served.url)
        try:
            await answer.read(MUCH)
        finally:
            await answer.close()

    async def scene(client: Client, served: Wire) -> None:
        task = asyncio.create_task(read_response(client, served))
        await request_arrived(served)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert task.cancelled()
        await client_closed_the_connection(served)

    play(script, scene)


def test_closing_the_client_closes_every_connection() -> None:
    async def run() -> None:
        async with wire(answers_and_stops) as served:
            client = open_client()
            answer = await client.request("POST", served.url)
            assert await answer.chunk() == b"a"
            left = await client.request("POST", served.url)
            left.release()
            await client.close()
            for peer in served.peers:
                await asyncio.wait_for(peer.closed.wait(), 30)
            with pytest.raises(HttpError):
                await answer.chunk()

    asyncio.run(run())


# ── callers that read slowly ──


def test_a_slow_caller_stops_the_server() -> None:
    sent = 0
    size = 16 * 1024 * 1024

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.answer(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % size)
        for _ in range(256):
            await peer.say(bytes(size // 256))
            sent += size // 256

    async def scene(client: Client, served: Wire) -> None:
        answer = await client.request("GET", served.url)
        before = -1
        while sent != before:  # until no more bytes are sent
            before = sent
            await asyncio.sleep(0.05)
        assert sent < size, "unread bytes stay at the server"
        assert await answer.read(MUCH) == bytes(size)

    play(script, scene)


# ── unreachable servers ──


def test_connection_refused_is_an_error() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]

        async def run() -> None:
            async with open_client() as client:
                for host in ("127.0.0.1", "localhost"):
                    with pytest.raises(CannotConnect, match="refuses") as caught:
                        await client.request("GET", f"http://{host}:{port}")
                    assert (caught.value.host, caught.value.port) == (host, port)
                    assert not isinstance(caught.value, UnknownHost)

        asyncio.run(run())


def test_a_host_with_several_addresses_is_reached_at_any_of_them() -> None:
    """A server listens at only one of localhost's addresses."""
    found = socket.getaddrinfo("localhost", 0, type=socket.SOCK_STREAM)
    addresses = sorted({str(address[0]) for *_, address in found})

    async def script(peer: Peer) -> None:
        await peer.answer(OPEN + b"1\r\na\r\n0\r\n\r\n")

    async def run() -> None:
        for address in addresses:
            async with wire(script, host=address) as served, open_client() as client:
                answer = await client.request("GET", f"http://localhost:{served.port}")
                assert await answer.read(MUCH) == b"a"

    asyncio.run(run())


def test_running_out_of_descriptors_is_an_error_and_passes() -> None:
    """The error does not blame the server, and the client works again once a descriptor is free."""

    async def run() -> None:
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{bound.getsockname()[1]}"
            async with open_client() as client:
                with pytest.raises(CannotConnect):  # loads every lazily imported module
                    await client.request("GET", url)
                with no_descriptors(), pytest.raises(NoDescriptor, match="ulimit -n"):
                    await client.request("GET", url)
                with pytest.raises(CannotConnect):
                    await client.request("GET", url)

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
def test_an_unknown_host_is_an_error(host: str) -> None:
    async def run() -> None:
        async with open_client() as client:
            with pytest.raises(UnknownHost) as caught:
                await client.request("GET", f"http://{host}:1/")
            assert caught.value.host == host

    asyncio.run(run())


def test_a_connect_timeout_is_an_error() -> None:
    """The server accepts the connection and stays silent in the TLS handshake."""

    async def script(peer: Peer) -> None:
        await asyncio.Event().wait()

    async def scene(client: Client, served: Wire) -> None:
        url = served.url.replace("http:", "https:")
        with pytest.raises(ConnectTimeout):
            await client.request("GET", url, connect_timeout=0.5)

    play(script, scene)


def test_a_half_closed_server_may_still_answer() -> None:

    async def script(peer: Peer) -> None:
        await peer.answer(OPEN + b"1\r\na\r\n")
        peer.writer.write(b"0\r\n\r\n")
        peer.writer.write_eof()

    async def scene(client: Client, served: Wire) -> None:
        for _ in range(2):
            assert await (await client.request("POST", served.url)).read(9) == b"a"
        assert len(served.peers) == 2

    play(script, scene)


def test_a_connection_that_closes_at_once_is_an_error() -> None:
    async def script(peer: Peer) -> None:
        peer.writer.transport.abort()

    async def scene(client: Client, served: Wire) -> None:
        with pytest.raises((Disconnected, CannotConnect)):
            await client.request("POST", served.url)

    play(script, scene)
