"""Company proxies on loopback: HTTP with CONNECT, and SOCKS5, with and without a login.

`hosts` maps the host names that a proxy resolves to local ports.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

_REFUSED = (
    b"HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\ncontent-length: 0\r\n\r\n"
)


class Relay:
    """The common part of both kinds."""

    scheme = ""

    def __init__(self, hosts: Mapping[str, int], login: str = "", refusal: bytes = b"") -> None:
        self.hosts = hosts
        self.login = login
        self.refusal = refusal
        """The HTTP proxy's reply to every request."""
        self.asked: list[str] = []
        """The `host:port` of every connection."""
        self.heads: list[bytes] = []
        self.port = 0

    def url(self, login: str = "") -> str:
        return f"{self.scheme}://{login + '@' if login else ''}127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                await self.connect(reader, writer)
            finally:
                writer.close()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raise NotImplementedError

    async def relay(
        self, host: str, port: int, first: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.asked.append(f"{host}:{port}")
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.hosts.get(host, port))
        try:
            far_writer.write(first)
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            far_writer.close()


class ForwardProxy(Relay):
    scheme = "http"

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        method, target, _ = head.split(b" ", 2)
        wanted = b"proxy-authorization: basic " + b64encode(self.login.encode()).lower()
        if self.refusal or (self.login and wanted not in head.lower()):
            writer.write(self.refusal or _REFUSED)
            await writer.drain()
            return
        if method == b"CONNECT":
            host, _, port = target.decode().rpartition(":")
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await self.relay(host, int(port), b"", reader, writer)
        else:
            where = urlsplit(target.decode())
            await self.relay(where.hostname or "", where.port or 80, head, reader, writer)


class SocksProxy(Relay):
    scheme = "socks5h"

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        offered = await reader.readexactly(count)
        method = 2 if self.login else 0
        if method not in offered:
            writer.write(b"\x05\xff")
            return
        writer.write(bytes((5, method)))
        if self.login and not await self._logged_in(reader, writer):
            return
        await reader.readexactly(3)
        host, port = await self._where(reader)
        writer.write(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await self.relay(host, port, b"", reader, writer)

    async def _logged_in(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        await reader.readexactly(1)
        words = [(await reader.readexactly((await reader.readexactly(1))[0])).decode() for _ in range(2)]
        good = ":".join(words) == self.login
        writer.write(b"\x01\x00" if good else b"\x01\x01")
        return good

    async def _where(self, reader: asyncio.StreamReader) -> tuple[str, int]:
        kind = (await reader.readexactly(1))[0]
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            host = ".".join(str(byte) for byte in await reader.readexactly(4))
        return host, int.from_bytes(await reader.readexactly(2), "big")


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def proxy(relay: Relay) -> AsyncIterator[Relay]:
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(asyncio.CancelledError):
            await relay.serve(reader, writer)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    relay.port = server.sockets[0].getsockname()[1]
    try:
        yield relay
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
