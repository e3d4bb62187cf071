"""Dragoman's HTTP server with any handler, and a client that sends raw bytes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from dragoman.transport.server import (
    BodyTooLarge,
    Handler,
    HttpRequest,
    HttpResponse,
    Listener,
    RefusedRequest,
    ServerLimits,
)

MOST = 10_000
HOST = b"Host: localhost\r\n"


async def echo(request: HttpRequest) -> HttpResponse:
    """A handler that answers with the parsed request, one member per line."""
    try:
        body = await request.read()
    except BodyTooLarge:
        return HttpResponse(b"too large", status=413)
    except RefusedRequest as refusal:
        return HttpResponse(b"unreadable", status=refusal.status)
    said = [request.method, request.path, request.target, request.headers.get("user-agent", "-")]
    return HttpResponse("\n".join(said).encode() + b"\n" + body, content_type="text/plain")


@asynccontextmanager
async def listening(handler: Handler, *, stop: float = 1.0, most: int = MOST) -> AsyncGenerator[Listener]:
    listener = Listener(handler, ServerLimits(body=most))
    await listener.listen("127.0.0.1", 0)
    try:
        yield listener
    finally:
        await listener.stop(stop)


class Client:
    """Sends raw bytes and reads one answer after the other."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(self, *, bodiless: bool = False) -> tuple[int, dict[str, str], bytes]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        lines = [line.split(": ", 1) for line in head[1:] if line]
        fields = {name.lower(): value for name, value in lines}
        if bodiless:
            body = b""
        elif fields.get("transfer-encoding") == "chunked":
            body = await self._chunks()
        elif "content-length" in fields:
            body = await self.reader.readexactly(int(fields["content-length"]))
        else:
            body = await self.reader.read()
        return int(head[0].split()[1]), fields, body

    async def closed(self) -> bool:
        return await self.reader.read() == b""

    async def _chunks(self) -> bytes:
        pieces: list[bytes] = []
        while size := int(await self.reader.readline(), 16):
            pieces.append(await self.reader.readexactly(size))
            await self.reader.readline()
        await self.reader.readline()
        return b"".join(pieces)


@asynccontextmanager
async def client_of(listener: Listener) -> AsyncGenerator[Client]:
    reader, writer = await asyncio.open_connection(*listener.address)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


def with_client(
    scene: Callable[[Client], Awaitable[None]], handler: Handler = echo, most: int = MOST
) -> None:
    async def play() -> None:
        async with (
            listening(handler, most=most) as listener,
            client_of(listener) as client,
            asyncio.timeout(10),
        ):
            await scene(client)

    asyncio.run(play())


def leaves_during(
    wait: Callable[[HttpRequest, asyncio.Event], Awaitable[object]], sent: bytes, most: int = MOST
) -> None:
    """A client sends bytes and leaves once `wait` has set its event. The handler must then end."""

    async def play() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def handler(request: HttpRequest) -> HttpResponse:
            try:
                await wait(request, begun)
            finally:
                ended.set()
            raise AssertionError

        async with listening(handler, most=most) as listener, asyncio.timeout(10):
            async with client_of(listener) as client:
                await client.send(sent)
                await begun.wait()
            await ended.wait()

    asyncio.run(play())


def post(body: bytes, more: bytes = b"", path: bytes = b"/p") -> bytes:
    return b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n%b" % (path, HOST, more, len(body), body)


def chunked(*pieces: bytes) -> bytes:
    head = b"POST /p HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
