"""One client connection: aiohttp's handler, with the limits that aiohttp lacks.

aiohttp limits the size of a head, the number of pipelined requests and the trailers. It has no deadline for
an unfinished head (slowloris) or for a client that does not read. It also drops a request when the client
half-closes the connection after it. This module adds all three.
"""

from __future__ import annotations

import logging
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.http_exceptions import LineTooLong

if TYPE_CHECKING:
    import asyncio

    from .listener import Listener

from .answers import COMMON_HEADERS
from .user_agents import UserAgents

log = logging.getLogger("dragoman.http")

_HALF_CLOSED = 0.25
"""Seconds. A half-closed client counts as gone if the gateway writes nothing to it in this time."""
_LAST_REQUEST = 1.0
"""Seconds in which the request of a new connection must arrive when the gateway stops."""
_REFUSAL = (
    "HTTP/1.1 %d %s\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
    "connection: close\r\nserver: dragoman\r\nx-content-type-options: nosniff\r\n\r\n%s"
)
_FULL = "too many connections are open (server.max_connections); try again later"
_BAD_REQUEST = "this is not a valid HTTP request"


class Connection(web.RequestHandler):
    """One TCP connection of a client."""

    __slots__ = (
        "_closed_at",
        "_closing",
        "_listener",
        "_received_data",
        "_started_since_data",
        "_user_agents",
        "_waiting_since",
        "answering",
        "pipelined",
        "stalled_since",
        "wrote_at",
    )

    def __init__(self, listener: Listener, server: web.Server, **settings: Any) -> None:
        super().__init__(server, **settings)
        self._listener = listener
        self.answering = False
        self.pipelined = False
        """The request came in the same read as the one before it."""
        self.wrote_at = 0.0
        """Time of the latest write."""
        self.stalled_since = 0.0
        """When the client stopped reading. 0: the client reads."""
        self._waiting_since = 0.0
        """When the wait for the head of a request began. 0: no head is awaited."""
        self._received_data = False
        self._started_since_data = False
        self._user_agents = UserAgents()
        self._closing = False
        self._closed_at = 0.0
        """When the client closed its side of the connection. 0: both sides are open."""

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._waiting_since = monotonic()
        if not self._listener.connection_opened(self):
            self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._listener.connection_closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.answering and (not self._waiting_since or not self._received_data):
            self._waiting_since = monotonic()  # the first bytes of a head
            self._user_agents = UserAgents()
        self._received_data = True
        if data:
            self._started_since_data = False
            if not self._user_agents.done:
                data = self._user_agents.feed(data)
        # aiohttp also calls this itself, without data, to process what it has buffered.
        super().data_received(data)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stalled_since = monotonic()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stalled_since = 0.0

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client sends no more, but may still wait for its answer. True keeps the connection open.

        A client that has left looks the same until the gateway writes to it. So the connection is checked
        again a moment later.
        """
        if not self.answering and not (self._waiting_since and self._received_data):
            return None
        self._closed_at = monotonic()
        self._loop.call_later(_HALF_CLOSED, self._close_if_gone)
        return True

    # Called by the listener.

    def request_started(self) -> None:
        """The head of a request is complete, and the handler runs."""
        self.answering = True
        self.pipelined, self._started_since_data = self._started_since_data, True
        self._waiting_since = 0.0

    def mark_write(self) -> None:
        """A part of an answer is written."""
        self.wrote_at = monotonic()

    def request_finished(self) -> None:
        """The handler has answered."""
        self.answering = False
        if self._closed_at or self._closing:
            self.close()

    def close_when_answered(self) -> None:
        """Take no more requests. Close now, or after the running answer.

        A client that has connected may have sent its request already, and load balancers never send a POST
        twice. So a new connection is read for a moment longer, and answered.
        """
        self._closing = True
        if self._waiting_since:
            self._loop.call_later(_LAST_REQUEST, self._close_if_idle)
        elif not self.answering:
            self.force_close()

    def _close_if_idle(self) -> None:
        if not self.answering:
            self.force_close()

    def close_if_late(self, now: float, timeout: float) -> None:
        """Close the connection if the client takes too long to send a head or to read."""
        if self._waiting_since and now - self._waiting_since > timeout:
            self._time_out(f"the head of the request did not arrive within {timeout:g} seconds")
        elif self.stalled_since and now - self.stalled_since > timeout:
            self.abort()

    def _time_out(self, message: str) -> None:
        if self._received_data:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, message)
        else:
            self.force_close()  # a browser's spare connection, for instance: it expects no response

    def refuse(self, status: HTTPStatus, message: str) -> None:
        """Send an error without a request, and close."""
        if self.transport is not None:
            body = message + "\n"
            self.transport.write((_REFUSAL % (status, status.phrase, len(body), body)).encode())
        self.force_close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _close_if_gone(self) -> None:
        if self.wrote_at <= self._closed_at:
            self.abort()

    # Called by aiohttp.

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The response to invalid HTTP. A status of 500 means that the handler raised, which is a bug."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("a request failed because of a bug in Dragoman", exc_info=exc)
            self.abort()
            return web.Response(status=status)
        if isinstance(exc, LineTooLong) or (message or "").startswith("Too many headers"):
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            text = "the head of the request is too large"
        else:
            # aiohttp's message quotes the request after its first line. The quote is left out.
            text = f"{_BAD_REQUEST}: {(message or '').splitlines()[0].rstrip(':')}"
        log.info("invalid HTTP request", extra={"client": request.remote, "why": text})
        headers = {**COMMON_HEADERS, "connection": "close"}
        response = web.Response(status=status, text=text + "\n", headers=headers)
        response.force_close()
        return response
