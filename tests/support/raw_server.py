"""A raw socket server that records requests and plays a script."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from dragoman.transport.client import Client, open_client


class Peer:
    """One connection, as the server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.requests: list[bytes] = []
        self.closed = asyncio.Event()
        """The other side hung up."""

    async def request(self) -> bytes:
        """A whole request, head and body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        found = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        size = int(found[0].partition(b":")[2]) if found else 0
        self.requests.append(head + await self.reader.readexactly(size))
        return self.requests[-1]

    async def say(self, *pieces: bytes) -> None:
        """Send each piece separately, so that the client most likely reads it separately."""
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()
            await asyncio.sleep(0)

    async def answer(self, *pieces: bytes) -> None:
        await self.request()
        await self.say(*pieces)

    async def hang_up(self) -> None:
        self.writer.close()

    async def gone(self) -> None:
        """Wait until the other side hangs up."""
        with suppress(ConnectionError):
            while await self.reader.read(65536):
                pass
        self.closed.set()


Script = Callable[[Peer], Awaitable[None]]


class Wire:
    """A server on loopback whose every connection runs `script`."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None, host: str) -> None:
        self._script = script
        self._tls = tls
        self._host = host
        self._tasks: set[asyncio.Task[None]] = set()
        self.peers: list[Peer] = []
        self.port = 0

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http{'s' if self._tls else ''}://{host}:{self.port}"

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls, limit=2**24)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for peer in self.peers:
            peer.writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        with suppress(asyncio.CancelledError):
            with suppress(asyncio.IncompleteReadError, ConnectionError):
                await self._script(peer)
            await peer.gone()


@asynccontextmanager
async def wire(
    script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[Wire]:
    served = Wire(script, tls, host)
    await served.start()
    try:
        yield served
    finally:
        await served.stop()


Scene = Callable[[Client, Wire], Awaitable[None]]


def play(script: Script, scene: Scene) -> None:
    """Run `scene` with a client and a server that plays `script`."""

    async def run() -> None:
        async with wire(script) as served, open_client() as client:
            await scene(client, served)

    asyncio.run(run())
