"""The client: connections kept open for each origin, and a request sent on one of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from time import monotonic
from types import MappingProxyType, TracebackType

from ..._version import __version__
from ..fields import written
from ..urls import Url, parse
from .bodies import LARGE, MOST_PIECES, Body, Piece
from .connection import Connection
from .errors import Disconnected, Unsendable
from .opening import Opener
from .proxies import proxy_for
from .response import Response

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
CONNECT_TIMEOUT = 30.0
IDLE_TIMEOUT = 300.0

_KEPT = 15.0  # seconds a connection lies unused before it is closed
_MOST_PLACES = 512
_SMALL = 16 * 1024  # with its head in one write
_CLOSING = 1.0
_NAME = {"user-agent": f"dragoman/{__version__}"}
# What may be asked twice where a connection that lay unused turns out to be closed.
_REPEATABLE = frozenset({"GET", "HEAD"})


class _Route:
    """The way to an origin, and its connections that nobody uses, the latest used last."""

    __slots__ = ("idle", "proxy", "url")

    def __init__(self, url: Url) -> None:
        self.url = url
        self.proxy = proxy_for(url)
        self.idle: list[Connection] = []

    def kept(self) -> Connection | None:
        """One that waits to be used again."""
        idle = self.idle
        while idle:
            connection = idle.pop()
            if connection.keep:
                return connection
        return None


class _Place:
    """One address: its route, and the part of a head that is the same for every request to it.

    The rest is nearly always what it was the last time, so that is kept too: `head` asks by `method`, and
    says `fields`.
    """

    __slots__ = ("fields", "head", "method", "release", "route", "start")

    def __init__(self, url: Url, route: _Route, release: partial[None]) -> None:
        self.route = route
        self.release = release
        self.method = ""
        self.fields: Mapping[str, str] | None = None
        self.head = b""
        shown, target, proxy = {"host": url.authority}, url.target, route.proxy
        if url.login is not None:
            shown["authorization"] = url.login
        if proxy is not None and url.scheme == "http":
            target = url.origin + target
            if proxy.login is not None:
                shown["proxy-authorization"] = proxy.login
        self.start = b" " + target.encode() + b" HTTP/1.1\r\n" + written(shown)


class Client:
    """Asks over HTTP/1.1. Made once, where an event loop runs; never follows a redirect.

    `headers` go with every request that does not say otherwise. Names of headers are in lower case.
    """

    def __init__(self, headers: Mapping[str, str] = NO_HEADERS) -> None:
        self._loop = asyncio.get_running_loop()
        self._headers = {**_NAME, **headers}
        self._opener = Opener(self._loop)
        self._routes: dict[str, _Route] = {}
        self._places: dict[str, _Place] = {}
        self._open: set[Connection] = set()
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed: asyncio.Event | None = None

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """All connections, in use or not."""
        self._opener.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._closed = asyncio.Event()
        for connection in tuple(self._open):
            connection.abort()
        if self._open:
            # A moment, so that nothing is left to be closed when the event loop is.
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSING):
                    await self._closed.wait()

    async def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: Body = b"",
        connect_timeout: float = CONNECT_TIMEOUT,
        idle_timeout: float = IDLE_TIMEOUT,
    ) -> Response:
        """The answer, when its head is there.

        Leave it by `close()` or `leave()`, or take it to its end.

        An `HttpError` where there is none.
        """
        place = self._places.get(url) or self._place(url)
        if headers != place.fields or method != place.method:
            self._begin(place, method, headers)
        parts = (body,) if isinstance(body, bytes) else body
        size = sum(map(len, parts))
        length = b"content-length: %d\r\n\r\n" % size if size or method != "GET" else b"\r\n"
        pieces: list[Piece] = [place.head + length, *parts]
        while True:
            kept = place.route.kept()
            connection = kept or await self._opened(place.route, connect_timeout)
            try:
                connection.begin(idle_timeout, method == "HEAD")
                if size < _SMALL:
                    connection.transport.write(b"".join(pieces))
                elif size < LARGE and len(pieces) <= MOST_PIECES:
                    connection.send(pieces, size + len(pieces[0]))
                else:
                    await connection.upload(pieces, size)
                while not connection.status:
                    if connection.error is not None:
                        raise connection.error
                    await connection.stirred()
                return Response(connection, place.release)
            except Disconnected:
                if kept is None or method not in _REPEATABLE:
                    raise
            except BaseException:
                connection.abort()
                raise

    async def _opened(self, route: _Route, patience: float) -> Connection:
        make = partial(Connection, self._loop, self._lost)
        connection = await self._opener.open(route.url, route.proxy, make, patience)
        if not connection.keep:
            raise Disconnected("closed as soon as it was open")
        self._open.add(connection)
        return connection

    def _begin(self, place: _Place, method: str, headers: Mapping[str, str]) -> None:
        try:
            place.head = method.encode() + place.start + written({**self._headers, **headers})
        except ValueError as error:
            raise Unsendable(str(error)) from None
        place.method, place.fields = method, dict(headers)

    def _place(self, url: str) -> _Place:
        try:
            parsed = parse(url)
        except ValueError as error:
            raise Unsendable(str(error)) from None
        route = self._routes.get(parsed.origin)
        if route is None:
            route = self._routes[parsed.origin] = _Route(parsed)
        if len(self._places) >= _MOST_PLACES:
            self._places.clear()
        place = self._places[url] = _Place(parsed, route, partial(self._release, route))
        return place

    def _release(self, route: _Route, connection: Connection) -> None:
        """The connection's answer was taken to its end."""
        if not connection.keep or self._closed is not None:
            connection.abort()
            return
        route.idle.append(connection)
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(_KEPT, self._sweep)

    def _sweep(self) -> None:
        """Close what nobody has used for long. One timer for all: it goes off only where something lies."""
        self._sweeping = None
        long_ago = monotonic() - _KEPT
        for route in self._routes.values():
            for connection in route.idle:
                if connection.heard <= long_ago:
                    connection.abort()
            route.idle = [connection for connection in route.idle if connection.keep]
        kept = [connection.heard for route in self._routes.values() for connection in route.idle]
        if kept:
            self._sweeping = self._loop.call_later(min(kept) - long_ago, self._sweep)

    def _lost(self, connection: Connection) -> None:
        self._open.discard(connection)
        if self._closed is not None and not self._open:
            self._closed.set()
