"""The contract of an HTTP client, tested over sockets and in memory.

Both clients call the same handlers of the server's contract, so each test also covers the server.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from support.memory_http import MemoryClient
from support.served import listening

from dragoman.transport.client import Client, CutOff, Silent, Unsendable, open_client
from dragoman.transport.server import Handler, HttpAnswer, HttpRequest, HttpResponse, Stream

MUCH = 1 << 30
Way = Callable[[Handler], AsyncGenerator[tuple[Client, str]]]
Scene = Callable[[Client, str], Awaitable[None]]


async def over_sockets(handler: Handler) -> AsyncGenerator[tuple[Client, str]]:
    async with listening(handler) as listener, open_client() as client:
        host, port = listener.address
        yield client, f"http://{host}:{port}"


async def in_memory(handler: Handler) -> AsyncGenerator[tuple[Client, str]]:
    async with MemoryClient(handler) as client:
        yield client, "http://nowhere.invalid"


@pytest.fixture(params=[over_sockets, in_memory])
def play(request: pytest.FixtureRequest) -> Callable[[Handler, Scene], None]:
    way = asynccontextmanager(request.param)

    def run(handler: Handler, scene: Scene) -> None:
        async def whole() -> None:
            async with way(handler) as (client, url), asyncio.timeout(10):
                await scene(client, url)

        asyncio.run(whole())

    return run


Play = Callable[[Handler, Scene], None]


async def read(client: Client, url: str, **more: float) -> bytes:
    return await (await client.request("GET", url, **more)).read(MUCH)


def test_a_whole_response_arrives(play: Play) -> None:
    async def handler(request: HttpRequest) -> HttpAnswer:
        said = f"{request.method} {request.target} {request.headers['x-a']} ".encode()
        return HttpResponse(said + await request.read(), status=201, headers={"X-B": "two"})

    async def scene(client: Client, url: str) -> None:
        answer = await client.request("POST", url + "/a%20b?c=d", {"X-A": "one"}, b"body")
        assert (answer.status, answer.headers["x-b"]) == (201, "two")
        assert await answer.read(MUCH) == b"POST /a%20b?c=d one body"
        assert await answer.chunk() == b"", "it stays at its end"
        answer = await client.request("POST", url, {"x-a": "one"}, b"body")
        assert await answer.read(4) == b"POST"
        await answer.close()

    play(handler, scene)


def test_a_chunk_arrives_when_it_is_sent(play: Play) -> None:
    async def handler(request: HttpRequest) -> HttpAnswer:
        stream = Stream(request)
        for word in (b"one", b"two"):
            await stream.write(word)
            await said.get()
        return stream

    said: asyncio.Queue[None]

    async def scene(client: Client, url: str) -> None:
        nonlocal said
        said = asyncio.Queue()
        answer = await client.request("GET", url)
        assert await answer.chunk() == b"one"
        said.put_nowait(None)
        assert await answer.chunk() == b"two"
        said.put_nowait(None)
        assert await answer.chunk() == b""

    play(handler, scene)


def test_a_cut_response_is_an_error(play: Play) -> None:
    async def handler(request: HttpRequest) -> HttpAnswer:
        stream = Stream(request)
        await stream.write(b"half")
        raise RuntimeError("a fault")

    async def scene(client: Client, url: str) -> None:
        with pytest.raises(CutOff):
            await read(client, url)

    play(handler, scene)


@pytest.mark.parametrize("begun", [False, True])
def test_silence_ends_after_the_idle_timeout(play: Play, begun: bool) -> None:
    async def handler(request: HttpRequest) -> HttpAnswer:
        stream = Stream(request)
        if begun:
            await stream.write(b"word")
        await asyncio.Event().wait()
        return stream

    async def scene(client: Client, url: str) -> None:
        with pytest.raises(Silent):
            await read(client, url, idle_timeout=0.1)

    play(handler, scene)


@pytest.mark.parametrize("begun", [False, True])
def test_cancelling_or_closing_cancels_the_handler(play: Play, begun: bool) -> None:
    ended: asyncio.Event
    asked: asyncio.Event

    async def handler(request: HttpRequest) -> HttpAnswer:
        stream = Stream(request)
        asked.set()
        try:
            if begun:
                await stream.write(b"word")
            await asyncio.Event().wait()
        finally:
            ended.set()
        return stream

    async def scene(client: Client, url: str) -> None:
        nonlocal ended, asked
        ended, asked = asyncio.Event(), asyncio.Event()
        if begun:
            await (await client.request("GET", url)).close()
        else:
            task = asyncio.ensure_future(client.request("GET", url))
            await asked.wait()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        await ended.wait()

    play(handler, scene)


def test_a_slow_client_slows_the_handler_down(play: Play) -> None:
    written = 0
    piece = bytes(256 * 1024)

    async def handler(request: HttpRequest) -> HttpAnswer:
        nonlocal written
        stream = Stream(request)
        for _ in range(100):
            await stream.write(piece)
            written += 1
        return stream

    async def scene(client: Client, url: str) -> None:
        answer = await client.request("GET", url)
        before = -1
        while written != before:  # until no more bytes are sent
            before = written
            await asyncio.sleep(0.1)
        assert written < 100
        assert len(await answer.read(MUCH)) == 100 * len(piece)

    play(handler, scene)


def test_an_invalid_url_is_an_error(play: Play) -> None:
    async def handler(request: HttpRequest) -> HttpAnswer:
        return HttpResponse()

    async def scene(client: Client, url: str) -> None:
        with pytest.raises(Unsendable):
            await client.request("GET", "ftp://nowhere.invalid")

    play(handler, scene)
