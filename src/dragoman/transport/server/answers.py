"""Answers: whole ones, streams that are sent as they come, and upgrades to a WebSocket."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from .request import HttpRequest, WebSocket

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
ALWAYS: Mapping[str, str] = MappingProxyType({"server": "dragoman", "x-content-type-options": "nosniff"})
"""What every answer says."""


class HttpResponse:
    """A whole answer."""

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
    """An answer in pieces. Its head goes out with the first of them, or when it is opened."""

    __slots__ = ("_silent", "_sink", "begun", "ended", "headers", "status")

    def __init__(
        self, request: HttpRequest, status: int = 200, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        assert request.sink is not None
        self.status = status
        self.headers = dict(headers)
        self.begun = False
        """Is its head out? Then nothing can be added to it."""
        self.ended = False
        self._sink = request.sink
        self._silent = request.method == "HEAD"

    @property
    def slow(self) -> bool:
        """Does the client read slower than it is written to?"""
        return self._sink.slow

    async def open(self) -> None:
        """Send the head before there is anything else to send."""
        if not self.begun:
            self.begun = True
            await self._sink.begin(self.status, self.headers)

    async def write(self, data: bytes) -> None:
        """Send `data`; wait while the client is slow. Raises `ClientGone`."""
        if not self.begun:
            await self.open()
        if data and not self._silent:
            await self._sink.write(data)

    async def end(self, last: bytes = b"") -> None:
        """Send `last`; the answer is complete."""
        if self.ended:
            return
        if not self.begun:
            await self.open()
        self.ended = True
        await self._sink.end(b"" if self._silent else last)


class Upgrade:
    """Accepts a WebSocket, which `serve` is called with."""

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
