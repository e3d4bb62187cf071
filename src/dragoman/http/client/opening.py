"""Opening a connection: through a proxy or straight, with TLS or without, and what can go wrong by name."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import TypeVar

from ..urls import Url
from .connection import Connection
from .dialling import Addresses
from .errors import BadTls, CannotConnect, ConnectTimeout, HttpError, UnknownHost
from .proxies import Tunnel

_Made = TypeVar("_Made", bound=asyncio.BaseProtocol)


class Opener:
    """Opens all connections of one client: addresses and the TLS context are made once for all."""

    __slots__ = ("_addresses", "_loop", "_tls")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._addresses = Addresses()
        self._tls: ssl.SSLContext | None = None

    def close(self) -> None:
        self._addresses.close()

    async def open(
        self, url: Url, proxy: Url | None, make: Callable[[], Connection], patience: float
    ) -> Connection:
        """A connection to the server of `url`, made within `patience` seconds."""
        near = proxy or url
        try:
            async with asyncio.timeout(patience):
                return await self._open(url, proxy, make)
        except HttpError:
            raise
        except ssl.SSLError as error:
            raise BadTls(error.reason or type(error).__name__) from None
        except socket.gaierror:
            raise UnknownHost(near.host, near.port) from None
        except TimeoutError as error:
            if error.errno:  # the system's own patience is over
                raise CannotConnect(near.host, near.port, error) from None
            raise ConnectTimeout(f"no connection in {patience:g} seconds") from None
        except OSError as error:
            raise CannotConnect(near.host, near.port, error) from None

    async def _open(self, url: Url, proxy: Url | None, make: Callable[[], Connection]) -> Connection:
        if proxy is not None and url.scheme == "https":
            return await self._tunnelled(url, proxy, make())
        _, connection = await self._connect(proxy or url, make)
        return connection

    async def _connect(self, url: Url, make: Callable[[], _Made]) -> tuple[asyncio.Transport, _Made]:
        sock = await self._addresses.dial(url.host, url.port)
        secure = url.scheme == "https"
        return await self._loop.create_connection(
            make,
            sock=sock,
            ssl=self._context() if secure else None,
            server_hostname=url.host.partition("%")[0] if secure else None,
        )

    async def _tunnelled(self, url: Url, proxy: Url, connection: Connection) -> Connection:
        transport, tunnel = await self._connect(proxy, Tunnel)
        try:
            await tunnel.through(transport, url, proxy.login)
            host = url.host.partition("%")[0]
            secure = await self._loop.start_tls(transport, connection, self._context(), server_hostname=host)
        except BaseException:
            transport.abort()
            raise
        if secure is None:
            raise ConnectionAbortedError
        connection.connection_made(secure)
        return connection

    def _context(self) -> ssl.SSLContext:
        """The system's certificates, or those of `SSL_CERT_FILE`, read when they are first needed."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls
