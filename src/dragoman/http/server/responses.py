"""Answers: whole ones, and streams that are written as they come."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from .heads import written
from .request import Request

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_NO_BODY = frozenset({204, 304})


class Response:
    """A whole answer."""

    __slots__ = ("body", "headers", "lines", "status")

    def __init__(
        self,
        body: bytes = b"",
        *,
        status: int = 200,
        content_type: str = "",
        headers: Mapping[str, str] | None = None,
        lines: bytes = b"",
    ) -> None:
        """`lines` are further headers, written already."""
        self.status = status
        self.body = body
        self.lines = lines
        self.headers = dict(headers) if headers else {}
        if content_type:
            self.headers["content-type"] = content_type

    @property
    def begun(self) -> bool:
        """Is its head out? Then nothing can be added to it."""
        return False

    def written(self, request: Request | None = None) -> bytes:
        """Everything that answers `request`; without one, the answer is the last on its connection."""
        framing = _connection(request)
        if self.status not in _NO_BODY:
            framing += b"content-length: %d\r\n" % len(self.body)
        silent = request is not None and request.method == "HEAD"
        return written(self.status, self.headers, self.lines, framing, b"" if silent else self.body)


class Stream:
    """An answer in pieces. Its head goes out with the first of them, or when it is opened."""

    __slots__ = (
        "_connection", "_framed", "_framing", "_request", "_silent", "begun", "ended", "headers", "lines",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        request: Request,
        status: int = 200,
        headers: Mapping[str, str] = NO_HEADERS,
        lines: bytes = b"",
        length: int | None = None,
    ) -> None:
        """`lines` are further headers, written already."""
        self.status = status
        self.headers = dict(headers) if headers else {}
        self.begun = False
        self.ended = False
        self._request = request
        self._connection = request.connection
        self.lines = lines
        self._silent = request.method == "HEAD"
        self._framed = length is None and request.head.chunked
        self._framing = b""
        if self._framed:
            self._framing = b"transfer-encoding: chunked\r\n"
        elif length is not None:
            self._framing = b"content-length: %d\r\n" % length
        else:
            request.keep_alive = False  # only the end of the connection can say where this one ends

    @property
    def slow(self) -> bool:
        """Does the client read slower than it is written to?"""
        return self._connection.slow

    def open(self) -> None:
        """The head, before there is anything else to send."""
        if not self.begun:
            self._connection.send(self._after_head(b""))

    async def write(self, data: bytes) -> None:
        """Send `data`; wait while the client is too slow."""
        if not self.put(data):
            await self.keep_pace()

    async def keep_pace(self) -> None:
        """Wait until the client has read most of what was sent."""
        await self._connection.keep_pace()

    def put(self, data: bytes) -> bool:
        """Send `data`. False: the client reads slower than it is written to. Raises `ClientGone`."""
        if not data:
            return not self._connection.slow
        if self._framed:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        if self._silent:
            data = b""
        if not self.begun:
            data = self._after_head(data)
        return self._connection.send(data)

    def end(self, last: bytes = b"") -> None:
        """Send `last`; that was all."""
        if self.ended:
            return
        self.ended = True
        if self._framed:
            last = b"%x\r\n%b\r\n0\r\n\r\n" % (len(last), last) if last else b"0\r\n\r\n"
        if self._silent:
            last = b""
        if not self.begun:
            last = self._after_head(last)
        if last:
            self._connection.send(last)

    def _after_head(self, data: bytes) -> bytes:
        request = self._request
        self.begun = request.answering = True
        framing = self._framing
        if not request.keep_alive or not request.head.chunked:
            framing += _connection(request)
        return written(self.status, self.headers, self.lines, framing, data)


Answer = Response | Stream


def _connection(request: Request | None) -> bytes:
    """What becomes of the connection, where the protocol's version does not say it."""
    if request is None or not request.keep_alive:
        return b"connection: close\r\n"
    return b"" if request.head.chunked else b"connection: keep-alive\r\n"


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(value), status=status, content_type="application/json", headers=headers
    )
