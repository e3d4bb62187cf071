"""The three kinds of answers: a complete response, a stream, and an upgrade to a WebSocket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from .request import HttpRequest, WebSocket

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
COMMON_HEADERS: Mapping[str, str] = MappingProxyType(
    {"server": "dragoman", "x-content-type-options": "nosniff"}
)
"""Sent with every answer."""


class HttpResponse:
    """A complete answer."""

    __slots__ = ("body", "headers", "status")

    def __init__(
        self,
        body: bytes = b"",
        *,
        status: int = 200,
        content_type: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.headers = dict(headers) if headers else {}
        if content_type:
            self.headers["content-type"] = content_type


class Stream:
    """An answer that is sent in pieces. Its head goes out with the first piece, or at `open`."""

    __slots__ = ("_head_only", "_sink", "ended", "headers", "started", "status")

    def __init__(
        self, request: HttpRequest, status: int = 200, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        assert request.sink is not None
        self.status = status
        self.headers = dict(headers)
        self.started = False
        """Is the head sent? Then the headers can no longer change."""
        self.ended = False
        self._sink = request.sink
        self._head_only = request.method == "HEAD"

    @property
    def slow(self) -> bool:
        """Does the client read more slowly than the gateway writes?"""
        return self._sink.slow

    async def open(self) -> None:
        """Send the head without a piece of the body."""
        if not self.started:
            self.started = True
            await self._sink.begin(self.status, self.headers)

    async def write(self, data: bytes) -> None:
        """Send `data`. Waits while the client reads slowly. Raises `ClientGone`."""
        if not self.started:
            await self.open()
        if data and not self._head_only:
            await self._sink.write(data)

    async def end(self, last: bytes = b"") -> None:
        """Send `last` and complete the answer."""
        if self.ended:
            return
        if not self.started:
            await self.open()
        self.ended = True
        await self._sink.end(b"" if self._head_only else last)


class Upgrade:
    """Accepts a WebSocket. `serve` runs it."""

    __slots__ = ("headers", "serve", "status")

    def __init__(
        self, serve: Callable[[WebSocket], Awaitable[None]], headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        self.serve = serve
        self.status = 101
        self.headers = dict(headers)


HttpAnswer = HttpResponse | Stream | Upgrade


def json_response(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    return HttpResponse(
        msgspec.json.encode(value), status=status, content_type="application/json", headers=headers
    )
