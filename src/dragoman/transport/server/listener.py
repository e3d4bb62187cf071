"""Listening on a port or a Unix socket, and ending well: answers under way may finish, within a bound."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from http import HTTPStatus
from time import monotonic
from typing import cast

from aiohttp import web

from .answers import ALWAYS, HttpAnswer, HttpResponse, Stream, Upgrade
from .connection import Connection
from .descriptors import Descriptors
from .forwarded import TrustedProxies
from .incoming import HttpSink, expects_continue, taken
from .limits import IDLE, MAX_FIELD, MAX_FIELDS, MAX_LINE, Limits
from .refusals import Refusal
from .request import ClientGone, HttpRequest
from .routes import Handler
from .sockets import Socket, new_response

log = logging.getLogger("dragoman.http")

_BACKLOG = 1024
_SWEEP = 1.0
"""Seconds between looks at clients that keep the server waiting."""
_LAST_MOMENT = 1.0
"""For handlers that are cancelled at the end."""
_SAY_AGAIN = 10.0
"""Seconds between two log lines about refused connections."""


class Listener:
    """Gives every request to `handler`, which always has an answer."""

    def __init__(
        self, handler: Handler, limits: Limits | None = None, proxies: TrustedProxies | None = None
    ) -> None:
        self._handler = handler
        self._limits = limits or Limits()
        self._proxies = proxies or TrustedProxies()
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        self._closing = False
        self._refused_at = 0.0
        self._gone: asyncio.Future[None] | None = None
        """A shutdown waits for this: one client less."""
        self._server: asyncio.Server | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._aiohttp = web.Server(self._handle, handler_cancellation=True)
        self._descriptors = Descriptors(self._loop)

    async def listen(
        self, host: str, port: int, *, reuse_port: bool = False, tls: ssl.SSLContext | None = None
    ) -> None:
        self._server = await self._loop.create_server(
            self._connection, host, port, backlog=_BACKLOG, reuse_port=reuse_port or None, ssl=tls
        )
        self._look_again()

    async def listen_unix(self, path: str, *, tls: ssl.SSLContext | None = None) -> None:
        self._server = await self._loop.create_unix_server(self._connection, path, backlog=_BACKLOG, ssl=tls)
        self._look_again()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first socket."""
        assert self._server is not None
        return self._server.sockets[0].getsockname()[:2]

    async def stop(self, grace: float) -> None:
        """Take no new requests; those under way may take `grace` seconds."""
        self._closing = True
        self._descriptors.close(self._loop)
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
        for connection in tuple(self._connections):
            connection.end_when_answered()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self._all_left()
        finally:
            for connection in tuple(self._connections):
                connection.abort()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_MOMENT):
                    await self._aiohttp.shutdown(_LAST_MOMENT)

    async def _all_left(self) -> None:
        while self._connections:
            self._gone = self._loop.create_future()
            await self._gone

    # What connections say.

    def joined(self, connection: Connection) -> bool:
        """A client has connected. False: too many are there already."""
        if len(self._connections) >= self._limits.connections:
            self._say_full()
            return False
        self._connections.add(connection)
        return True

    def left(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if self._gone is not None and not self._gone.done():
            self._gone.set_result(None)

    def _connection(self) -> Connection:
        return Connection(
            self,
            self._aiohttp,
            loop=self._loop,
            access_log=None,
            keepalive_timeout=IDLE,
            max_line_size=MAX_LINE,
            max_field_size=MAX_FIELD,
            max_headers=MAX_FIELDS,
            lingering_time=2.0,
            auto_decompress=False,
        )

    def _say_full(self) -> None:
        now = monotonic()
        if now - self._refused_at > _SAY_AGAIN:
            self._refused_at = now
            log.warning(
                "clients are refused: too many connections are open (server.max_connections)",
                extra={"connections": len(self._connections)},
            )

    def _look_again(self) -> None:
        """One timer for all connections: most are never late."""
        self._descriptors.look()
        now = monotonic()
        for connection in tuple(self._connections):
            connection.end_if_late(now, self._limits.patience)
        self._sweep = self._loop.call_later(_SWEEP, self._look_again)

    # One request.

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        connection = cast(Connection, http.protocol)
        connection.begins()
        try:
            try:
                request = taken(http, connection, self._limits, self._proxies)
            except Refusal as refusal:
                return _refused(refusal)
            return await self._sent(http, request, await self._handler(request))
        except ClientGone:
            connection.abort()
            return web.Response(status=499)  # nobody reads it
        finally:
            connection.wrote()
            connection.ends()

    async def _sent(
        self, http: web.BaseRequest, request: HttpRequest, answer: HttpAnswer
    ) -> web.StreamResponse:
        """What aiohttp is to send, or has sent."""
        sent = cast(HttpSink, request.sink).response
        if isinstance(answer, Upgrade):
            return await self._upgraded(http, answer)
        if isinstance(answer, Stream):
            await answer.end()
            sent = cast(HttpSink, request.sink).response
            assert sent is not None
        elif sent is not None:
            raise ClientGone  # it failed after its beginning was sent: only a broken connection says so
        else:
            return await self._whole(http, answer)
        return sent

    async def _upgraded(self, http: web.BaseRequest, answer: Upgrade) -> web.WebSocketResponse:
        response = new_response(answer.headers, self._limits.body)
        try:
            await response.prepare(http)
        except ConnectionError:
            raise ClientGone from None
        await answer.serve(Socket(response, cast(Connection, http.protocol)))
        return response

    async def _whole(self, http: web.BaseRequest, answer: HttpResponse) -> web.Response:
        headers = {**ALWAYS, **answer.headers}
        response = web.Response(body=answer.body, status=answer.status, headers=headers)
        if self._closing or (expects_continue(http) and not http.content.is_eof()):
            response.force_close()  # the body may come or not: nobody can tell where the next request begins
        try:
            await response.prepare(http)
            await response.write_eof()
        except ConnectionError:
            raise ClientGone from None
        return response


def _refused(refusal: Refusal) -> web.Response:
    status = HTTPStatus(refusal.status)
    text = f"{refusal or status.phrase}\n"
    response = web.Response(status=status, text=text, headers=ALWAYS)
    response.force_close()
    return response
