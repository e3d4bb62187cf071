"""Listens on a port or a Unix socket. A shutdown lets running answers finish within a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl
from http import HTTPStatus
from time import monotonic
from typing import cast

from aiohttp import web

from .answers import COMMON_HEADERS, HttpAnswer, HttpResponse, Stream, Upgrade
from .connection import Connection
from .descriptors import DescriptorCheck
from .forwarded import TrustedProxies
from .incoming import HttpSink, convert_request, expects_continue
from .limits import IDLE_TIMEOUT, MAX_FIELD, MAX_FIELDS, MAX_LINE, ServerLimits
from .refusals import RefusedRequest
from .request import ClientGone, HttpRequest
from .routes import Handler
from .sockets import AiohttpSocket, new_response

log = logging.getLogger("dragoman.http")

# Connections that wait to be accepted. Agents open many at once when a gateway restarts.
_BACKLOG = 1024
_CHECK_INTERVAL = 1.0
"""Seconds between checks for late clients."""
_CANCEL_GRACE = 1.0
"""Seconds that cancelled handlers get at the end of a shutdown."""
_LOG_INTERVAL = 10.0
"""Seconds between two log lines about refused connections."""


class Listener:
    """Gives every request to `handler`, which must not raise anything but `ClientGone`."""

    def __init__(
        self, handler: Handler, limits: ServerLimits | None = None, proxies: TrustedProxies | None = None
    ) -> None:
        self._handler = handler
        self._limits = limits or ServerLimits()
        self._proxies = proxies or TrustedProxies()
        self._loop = asyncio.get_running_loop()
        self._connections: set[Connection] = set()
        self._closing = False
        self._refused_at = 0.0
        self._one_left: asyncio.Future[None] | None = None
        """Set while a shutdown waits: done when the next connection closes."""
        self._server: asyncio.Server | None = None
        self._check_timer: asyncio.TimerHandle | None = None
        # aiohttp lets a handler run on after its client has left, unless `handler_cancellation` is set. The
        # upstream would go on generating, and the user would pay for it.
        self._aiohttp = web.Server(self._handle, handler_cancellation=True)
        self._descriptors = DescriptorCheck(self._loop)

    async def listen(
        self, host: str, port: int, *, reuse_port: bool = False, tls: ssl.SSLContext | None = None
    ) -> None:
        self._server = await self._loop.create_server(
            self._new_connection, host, port, backlog=_BACKLOG, reuse_port=reuse_port or None, ssl=tls
        )
        self._check()

    async def listen_unix(self, path: str, *, tls: ssl.SSLContext | None = None) -> None:
        self._server = await self._loop.create_unix_server(
            self._new_connection, path, backlog=_BACKLOG, ssl=tls
        )
        self._check()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first socket."""
        assert self._server is not None
        return self._server.sockets[0].getsockname()[:2]

    async def stop(self, grace: float) -> None:
        """Take no new requests. Running ones may take `grace` more seconds."""
        self._closing = True
        self._descriptors.close(self._loop)
        if self._check_timer is not None:
            self._check_timer.cancel()
        if self._server is not None:
            for _ in range(3):
                await asyncio.sleep(0)  # accept what waits: a closed socket resets it
            self._server.close()
        for connection in tuple(self._connections):
            connection.close_when_answered()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self._all_left()
        finally:
            for connection in tuple(self._connections):
                connection.abort()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CANCEL_GRACE):
                    await self._aiohttp.shutdown(_CANCEL_GRACE)

    async def _all_left(self) -> None:
        while self._connections:
            self._one_left = self._loop.create_future()
            await self._one_left

    # Called by connections.

    def connection_opened(self, connection: Connection) -> bool:
        """Returns False if too many connections are open already."""
        if len(self._connections) >= self._limits.connections:
            self._log_full()
            return False
        self._connections.add(connection)
        return True

    def connection_closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if self._one_left is not None and not self._one_left.done():
            self._one_left.set_result(None)

    def _new_connection(self) -> Connection:
        return Connection(
            self,
            self._aiohttp,
            loop=self._loop,
            access_log=None,
            keepalive_timeout=IDLE_TIMEOUT,
            max_line_size=MAX_LINE,
            max_field_size=MAX_FIELD,
            max_headers=MAX_FIELDS,
            # After a refused body, read on for a moment. A socket that is closed with unread data sends a
            # reset, and the client may lose the response.
            lingering_time=2.0,
            auto_decompress=False,  # see decompression.py
        )

    def _log_full(self) -> None:
        now = monotonic()
        if now - self._refused_at > _LOG_INTERVAL:
            self._refused_at = now
            log.warning(
                "connections are refused: too many are open (server.max_connections)",
                extra={"connections": len(self._connections)},
            )

    def _check(self) -> None:
        """Check all connections with one timer: a timer for each would nearly never fire."""
        self._descriptors.run()
        now = monotonic()
        for connection in tuple(self._connections):
            connection.close_if_late(now, self._limits.timeout)
        self._check_timer = self._loop.call_later(_CHECK_INTERVAL, self._check)

    # Handling of one request.

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        connection = cast(Connection, http.protocol)
        connection.request_started()
        try:
            if connection.pipelined:
                # From Python 3.12 on, aiohttp runs a handler that does not wait at once. Without this, a
                # client that sends many requests in one piece would get all answers before any other client.
                await asyncio.sleep(0)
            try:
                request = convert_request(http, connection, self._limits, self._proxies)
            except RefusedRequest as refusal:
                return _refusal_response(refusal)
            return await self._send(http, request, await self._handler(request))
        except ClientGone:
            connection.abort()
            return web.Response(status=499)  # aiohttp wants a response; the connection is closed already
        finally:
            connection.mark_write()
            connection.request_finished()

    async def _send(
        self, http: web.BaseRequest, request: HttpRequest, answer: HttpAnswer
    ) -> web.StreamResponse:
        """Send what is not sent yet. Returns aiohttp's response, as aiohttp requires."""
        sent = cast(HttpSink, request.sink).response
        if isinstance(answer, Upgrade):
            return await self._upgrade(http, answer)
        if isinstance(answer, Stream):
            await answer.end()
            sent = cast(HttpSink, request.sink).response
            assert sent is not None
        elif sent is not None:
            raise ClientGone  # an error after the head was sent: only a broken connection can tell the client
        else:
            return await self._send_response(http, answer)
        return sent

    async def _upgrade(self, http: web.BaseRequest, answer: Upgrade) -> web.WebSocketResponse:
        response = new_response(answer.headers, self._limits.body)
        try:
            await response.prepare(http)
        except ConnectionError:
            raise ClientGone from None
        await answer.serve(AiohttpSocket(response, cast(Connection, http.protocol)))
        return response

    async def _send_response(self, http: web.BaseRequest, answer: HttpResponse) -> web.Response:
        headers = {**COMMON_HEADERS, **answer.headers}
        response = web.Response(body=answer.body, status=answer.status, headers=headers)
        if self._closing or (expects_continue(http) and not http.content.is_eof()):
            # After `Expect: 100-continue`, the client may send the body or not. So the start of its next
            # request cannot be found.
            response.force_close()
        try:
            await response.prepare(http)
            await response.write_eof()
        except ConnectionError:
            raise ClientGone from None
        return response


def _refusal_response(refusal: RefusedRequest) -> web.Response:
    status = HTTPStatus(refusal.status)
    text = f"{refusal or status.phrase}\n"
    response = web.Response(status=status, text=text, headers=COMMON_HEADERS)
    response.force_close()
    return response
