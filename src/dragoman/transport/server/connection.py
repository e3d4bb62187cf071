"""What one client may do to the server: aiohttp's connection, with a clock and a count.

aiohttp bounds the size of a head, the pipelined requests it reads ahead, and trailers. It has no deadline
for a head that does not come to its end, nor for a client that does not read, and it closes a connection as
soon as the client has sent its last byte. Those are added here.
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

from .answers import ALWAYS
from .user_agents import UserAgents

log = logging.getLogger("dragoman.http")

_HALF_CLOSED = 0.25
"""A client that has closed its side and takes nothing for so many seconds is taken for gone."""
_REFUSED = (
    "HTTP/1.1 %d %s\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\n"
    "connection: close\r\nserver: dragoman\r\nx-content-type-options: nosniff\r\n\r\n%s"
)
_FULL = "too many connections are open (server.max_connections)"
_NO_REQUEST = "this is no HTTP request that can be answered"


class Connection(web.RequestHandler):
    """Lives as long as its client stays."""

    __slots__ = (
        "_agents",
        "_closed_at",
        "_ending",
        "_heard",
        "_listener",
        "_waiting_since",
        "answering",
        "stalled_since",
        "wrote_at",
    )

    def __init__(self, listener: Listener, server: web.Server, **settings: Any) -> None:
        super().__init__(server, **settings)
        self._listener = listener
        self.answering = False
        self.wrote_at = 0.0
        """When something of an answer was last written."""
        self.stalled_since = 0.0
        """When the client stopped reading. 0: it reads."""
        self._waiting_since = 0.0
        """When the head began that has not come to its end. 0: none has begun."""
        self._heard = False
        self._agents = UserAgents()
        self._ending = False
        self._closed_at = 0.0
        """When the client closed its side."""

    # What the event loop says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._waiting_since = monotonic()
        if not self._listener.joined(self):
            self.refuse(HTTPStatus.SERVICE_UNAVAILABLE, _FULL)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._listener.left(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if not self.answering and (not self._waiting_since or not self._heard):
            self._waiting_since = monotonic()  # a head begins
            self._agents = UserAgents()
        self._heard = True
        if data and not self._agents.done:
            data = self._agents.feed(data)
        super().data_received(data)  # aiohttp itself gives it nothing, to go on with what it has

    def pause_writing(self) -> None:
        super().pause_writing()
        self.stalled_since = monotonic()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.stalled_since = 0.0

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client sends no more. It may still want its answer: true keeps the connection open.

        A client that has left looks the same until something is written to it. So it is given a moment.
        """
        if not self.answering and not (self._waiting_since and self._heard):
            return None
        self._closed_at = monotonic()
        self._loop.call_later(_HALF_CLOSED, self._close_if_gone)
        return True

    # What the listener says.

    def begins(self) -> None:
        """A request's head has come, and is given to the handler."""
        self.answering = True
        self._waiting_since = 0.0

    def wrote(self) -> None:
        """Something of an answer is written."""
        self.wrote_at = monotonic()

    def ends(self) -> None:
        """The handler has answered."""
        self.answering = False
        if self._closed_at or self._ending:
            self.close()

    def end_when_answered(self) -> None:
        """No more requests: close now, or after the answer that is under way."""
        self._ending = True
        if not self.answering:
            self.force_close()

    def end_if_late(self, now: float, patience: float) -> None:
        """End the connection of a client that keeps the server waiting for too long."""
        if self._waiting_since and now - self._waiting_since > patience:
            self._give_up(f"the request's head did not come within {patience:g} seconds")
        elif self.stalled_since and now - self.stalled_since > patience:
            self.abort()

    def _give_up(self, why: str) -> None:
        if self._heard:
            self.refuse(HTTPStatus.REQUEST_TIMEOUT, why)
        else:
            self.force_close()  # it connected and never asked

    def refuse(self, status: HTTPStatus, message: str) -> None:
        """Answer before a request could be read, and close."""
        if self.transport is not None:
            said = message + "\n"
            self.transport.write((_REFUSED % (status, status.phrase, len(said), said)).encode())
        self.force_close()

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    def _close_if_gone(self) -> None:
        if self.wrote_at <= self._closed_at:
            self.abort()

    # What aiohttp asks for.

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """What came is no HTTP request, or our handler failed (which it never should)."""
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error("a request failed", exc_info=exc)
            self.abort()
            return web.Response(status=status)
        if isinstance(exc, LineTooLong) or (message or "").startswith("Too many headers"):
            status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
            said = "the request's head is too large"
        else:
            # aiohttp quotes what came; the first line says what is wrong with it.
            said = f"{_NO_REQUEST}: {(message or '').splitlines()[0].rstrip(':')}"
        log.info("a request could not be read", extra={"client": request.remote, "why": said})
        headers = {**ALWAYS, "connection": "close"}
        response = web.Response(status=status, text=said + "\n", headers=headers)
        response.force_close()
        return response
