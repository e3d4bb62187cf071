"""An answer: its head is there, its body comes. Once it is taken to its end, its connection is free again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial

from ..inflate import CODINGS, BadCoding, Inflater
from .connection import Connection, finish
from .errors import Malformed
from .head import fields_of, is_plain

# After an answer's last word only the end of the transfer is missing. Waiting that long for it, behind the
# asker's back, saves the next request a new connection.
_LINGER = 0.5
_LINGER_BYTES = 16 * 1024
_UNKNOWN_CODINGS = frozenset({"br", "zstd", "compress"})

Release = Callable[[Connection], object]


class Response:
    """`release` takes the connection back."""

    __slots__ = ("_connection", "_head", "_inflater", "_release", "status")

    def __init__(self, connection: Connection, release: Release) -> None:
        self.status = connection.status
        self._connection: Connection | None = connection
        self._release = release
        self._head = connection.head
        self._inflater = None if is_plain(self._head) else self._coded()

    @property
    def headers(self) -> Mapping[str, str]:
        """Names in lower case."""
        return fields_of(self._head)

    @property
    def ended(self) -> bool:
        """Has all of it been taken?"""
        return self._connection is None

    async def chunk(self) -> bytes:
        """More of the body, as much as has come; nothing when it is over."""
        connection = self._connection
        while connection is not None:
            while not connection.parts and not connection.over:
                if connection.error is not None:
                    raise connection.error
                await connection.stirred()
            data = connection.take()
            if connection.over:
                self._connection = None
                self._release(connection)
                connection = None
            if self._inflater is not None:
                data = self._inflated(self._inflater, data)
            if data:
                return data
        return b""

    async def pour(self, take: Callable[[bytes], bool]) -> bool:
        """Give `take` the body as it comes, straight from the socket, until it wants no more for now.

        False: that was all. Nobody is woken for a piece, so `take` must neither wait nor take long.
        """
        if self._inflater is not None:
            return await self._pour_inflated(take)
        connection = self._connection
        if connection is None:
            return False
        wanted = take(connection.take()) if connection.parts else True
        if wanted and not connection.over and connection.error is None:
            wanted = await _Pouring(connection, take).poured()
        if connection.over and not connection.parts:  # more may have come before this task went on
            self._connection = None
            self._release(connection)
            return False
        if wanted and connection.error is not None:
            raise connection.error
        return True

    async def _pour_inflated(self, take: Callable[[bytes], bool]) -> bool:
        while data := await self.chunk():
            if not take(data):
                return True
        return False

    async def read(self, largest: int) -> bytes:
        """The body, or its first `largest` bytes."""
        parts: list[bytes] = []
        while largest > 0 and (data := await self.chunk()):
            parts.append(data[:largest])
            largest -= len(data)
        return b"".join(parts)

    def close(self) -> None:
        """Whatever is still to come must stop at once."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.abort()

    def leave(self) -> None:
        """Enough was read: if the rest is short and comes soon, the connection is kept."""
        connection, self._connection = self._connection, None
        if connection is not None:
            _Lingering(connection, self._release).look()

    def _coded(self) -> Inflater | None:
        coding = self.headers.get("content-encoding", "").strip().lower()
        if coding in _UNKNOWN_CODINGS:
            self.close()
            raise Malformed(f"the body is coded in a way that nobody asked for: {coding}")
        return Inflater(coding) if coding in CODINGS else None

    def _inflated(self, inflater: Inflater, data: bytes) -> bytes:
        try:
            grown = inflater.feed(data)
            if self._connection is None:
                inflater.end()
        except BadCoding as error:
            self.close()
            raise Malformed(str(error)) from None
        return grown


class _Pouring:
    """Hands on what comes in place of a task: none is woken for it."""

    __slots__ = ("_connection", "_done", "_failure", "_take", "_wanted")

    def __init__(self, connection: Connection, take: Callable[[bytes], bool]) -> None:
        self._connection = connection
        self._take = take
        self._wanted = True
        self._failure: Exception | None = None
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def poured(self) -> bool:
        """When no more is wanted, or no more will come: was more wanted?"""
        connection = self._connection
        connection.wake_next(self._came)
        try:
            await self._done
        finally:
            connection.waiter = None
        if self._failure is not None:
            raise self._failure
        return self._wanted

    def _came(self) -> None:
        connection = self._connection
        try:
            if connection.parts:
                self._wanted = self._take(connection.take())
        except Exception as error:  # noqa: BLE001 - whoever waits is told, not the event loop
            self._failure = error
            self._wanted = False
        if self._wanted and not connection.over and connection.error is None:
            connection.wake_next(self._came)
        else:
            finish(self._done)


class _Lingering:
    """Waits for the end of a transfer behind the asker's back: no task is needed for it."""

    __slots__ = ("_connection", "_left", "_release", "_timer")

    def __init__(self, connection: Connection, release: Release) -> None:
        self._connection = connection
        self._release = release
        self._left = _LINGER_BYTES + connection.held
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        connection = self._connection
        self._left -= connection.held
        connection.take()
        if connection.over:
            self._end(partial(self._release, connection))
        elif connection.error is not None or self._left < 0:
            self._end(connection.abort)
        else:
            connection.waiter = self.look
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(_LINGER, connection.abort)

    def _end(self, how: Callable[[], object]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        how()
