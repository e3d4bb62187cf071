"""One request, as far as it has come."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from ..inflate import BadCoding, Inflater, Overgrown
from .heads import LENGTH, Head
from .refusals import BodyTooLarge, BodyUnreadable

if TYPE_CHECKING:
    from .connection import Connection

# So much of a body that nobody has asked for yet is kept; then the client waits.
_UNASKED = 64 * 1024


class Request:
    """Its head is there when it is handed out; its body may still be coming."""

    __slots__ = (
        "_chunks", "_failure", "_query", "_waiting", "answering", "complete", "connection", "head", "headers",
        "keep_alive", "method", "parts", "path", "size", "target", "wants_continue",
    )  # fmt: skip

    def __init__(self, connection: Connection, head: Head, headers: dict[str, str]) -> None:
        self.head = head
        self.method = head.method
        self.target = head.target
        """The path and the query as they were sent."""
        self.path = head.path
        self.headers = headers
        """Names in lower case."""
        self.parts: dict[str, str] = {}
        """What the route's pattern took from the path."""
        self.keep_alive = head.keep_alive
        self.answering = False
        """Is part of an answer out?"""
        self.complete = False
        """Has all of it come?"""
        self.wants_continue = head.wants_continue
        self.connection = connection
        self._query: dict[str, str] | None = None
        self.size = 0
        """Bytes that came of the body."""
        self._chunks: list[bytes] = []
        self._failure: BodyTooLarge | BodyUnreadable | None = None
        self._waiting: asyncio.Future[None] | None = None
        """What `read` waits for."""
        if int(headers.get(LENGTH, 0)) > connection.max_body:
            self._failure = BodyTooLarge()

    @property
    def query(self) -> dict[str, str]:
        """The first value of each name."""
        if self._query is None:
            self._query = {}
            for name, value in parse_qsl(self.target.partition("?")[2], keep_blank_values=True):
                self._query.setdefault(name, value)
        return self._query

    @property
    def transport(self) -> asyncio.Transport | None:
        """The connection itself; None when it is gone."""
        return self.connection.transport

    async def read(self) -> bytes:
        """The whole body, inflated where it came deflated. To be asked for once: it is not kept here."""
        if not self.complete and self._failure is None:
            if self.wants_continue:
                self.connection.go_on()
                self.wants_continue = False
            self._waiting = self.connection.loop.create_future()
            self.connection.resume()
            try:
                await self._waiting
            finally:
                self._waiting = None
        return self.taken()

    def taken(self) -> bytes:
        """The same of one that is complete, whose reader need not wait."""
        if self._failure is not None:
            raise self._failure
        chunks, self._chunks = self._chunks, []
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        coding = self.head.coding
        return body if coding == "identity" else _inflated(body, coding, self.connection.max_body)

    def feed(self, data: bytes) -> None:
        """More of the body."""
        self.size += len(data)
        if self.size > self.connection.max_body:
            self.fail(BodyTooLarge())
        if self._failure is None:  # else it passes unread
            self._chunks.append(data)

    @property
    def piles_up(self) -> bool:
        """Has much come that nobody reads?"""
        return self._waiting is None and self._failure is None and self.size >= _UNASKED

    def fail(self, failure: BodyTooLarge | BodyUnreadable) -> None:
        """There is no reading this body to its end."""
        if self._failure is None:
            self._failure = failure
            self._chunks = []

    def wake(self) -> None:
        """Whoever waits for the body goes on, if there is nothing more to wait for."""
        waiting = self._waiting
        if waiting is not None and not waiting.done() and (self.complete or self._failure is not None):
            waiting.set_result(None)


def _inflated(body: bytes, coding: str, limit: int) -> bytes:
    try:
        inflater = Inflater(coding, limit)
        whole = inflater.feed(body)
        inflater.end()
    except Overgrown:
        raise BodyTooLarge from None
    except BadCoding:
        raise BodyUnreadable from None
    return whole
