"""One request on one libcurl handle: collects the answer, wakes the reader, and applies backpressure.

libcurl calls `_prerequest`, `_line` and `_data` while it works on its sockets. These callbacks must not call
libcurl. So they only collect data. The reader runs once, after libcurl has processed everything that arrived.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .errors import CutOff, Disconnected, HttpError, Malformed, Silent
from .head import ResponseHead
from .multi import Ends, Multi
from .options import curl

if TYPE_CHECKING:
    from .uploading import Uploading

# If a reader is this many bytes behind, the transfer pauses, and TCP slows the server down.
_MAX_WAITING = 64 * 1024
_PAUSE: int = curl.WRITEFUNC_PAUSE
_SENDABLE: int = curl.PREREQFUNC_OK
_NOT_SENDABLE: int = curl.PREREQFUNC_ABORT
_REFUSED = -1

Explain = Callable[["Transfer", int, str], HttpError]
"""Turns libcurl's error code and text into an error of this package."""


class Transfer:
    """Runs from `start` until libcurl reports the end, or until `drop`. Then it calls `ended` once."""

    __slots__ = (
        "_ended",
        "_ends",
        "_explain",
        "_loop",
        "_multi",
        "_parts",
        "_patience",
        "_paused",
        "_size",
        "_timer",
        "_until",
        "_waiter",
        "connected",
        "error",
        "handle",
        "head",
        "left",
        "lost",
        "over",
        "uploading",
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        handle: Any,
        explain: Explain,
        ended: Callable[[Transfer, bool], None],
    ) -> None:
        self.handle: Any = handle
        self.head = ResponseHead()
        self.connected = False
        """Did the request get a connection?"""
        self.lost = False
        """Was the request lost on a kept connection that turned out to be closed? It may be sent again."""
        self.left = -1
        """After `linger`: how many more bytes to discard before giving up. Negative: bytes are kept."""
        self.over = False
        self.error: HttpError | None = None
        self._loop = loop
        self._explain = explain
        self._ended = ended
        self._multi: Multi | None = None
        self._ends: Ends | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._until = 0.0
        self._patience = 0.0
        self.uploading: Uploading | None = None
        """The body, if it is sent while it arrives."""
        handle.setopt(curl.PREREQFUNCTION, self._prerequest)
        handle.setopt(curl.HEADERFUNCTION, self._line)
        handle.setopt(curl.WRITEFUNCTION, self._data)

    def start(self, multi: Multi) -> None:
        self._multi = multi
        multi.add(self)

    def drop(self, error: HttpError) -> None:
        """Stop at once. libcurl closes the connection (HTTP/1.1) or resets the stream (HTTP/2)."""
        if self._multi is not None:
            self.error = error
            self._multi.remove(self)
            self._finish(whole=False)

    async def begun(self, patience: float) -> None:
        """Wait for the head of the answer."""
        while not self.head.complete:
            if self.over:
                raise self.error or Disconnected("closed the connection before it answered")
            await self._wait(patience)
        self._stop_timer()

    async def data(self, patience: float) -> bytes:
        """The data since the last call. Waits until there is some; empty at the end."""
        while not self._parts:
            if self.over:
                if self.error is not None:
                    raise self.error
                return b""
            await self._wait(patience)
        parts = self._parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        self._size = 0
        if self._paused:
            self._go_on()
        return data

    def linger(self, seconds: float, most: int) -> None:
        """Discard the rest. If it is short and arrives soon, the connection is kept."""
        if self.over:
            return
        self._parts = []
        self._size = 0
        self.left = most
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self._too_much)
        if self._paused:
            self._go_on()

    def postpone(self) -> None:
        """A part of the request was sent: restart the wait for the server."""
        self._until = self._loop.time() + self._patience

    # Called by libcurl.

    def _prerequest(self, ip: str, own_ip: str, port: int, own_port: int) -> int:
        """libcurl is about to send the request, on a new or on a kept connection.

        If a kept connection turns out to be dead, libcurl sends the request again, up to five times, and on
        any other kept connection. This callback limits that to one more attempt, on a new connection.
        """
        multi = self._multi
        if multi is None:
            return _NOT_SENDABLE
        ends = self._ends = (ip, port, own_ip, own_port)
        known = multi.is_known(ends)
        if known and (self.connected or multi.unclean(ends)):
            self.lost = self.connected = True
            return _NOT_SENDABLE
        self.connected = True
        if not known:
            multi.know(ends)
        return _SENDABLE

    def _line(self, line: bytes) -> int | None:
        if not self.connected:
            return None  # the answer of a proxy to CONNECT
        head = self.head
        if not head.take(line):
            return _REFUSED
        if head.complete:
            self._wake()
        return None

    def _data(self, data: bytes) -> int | None:
        if self.left >= 0:
            self.left -= len(data)
            if self.left < 0:
                self.left = 0
                self._loop.call_soon(self._too_much)
            return None
        if self._size > _MAX_WAITING:
            self._paused = True
            return _PAUSE
        self._parts.append(data)
        self._size += len(data)
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        return None

    def done(self, code: int, text: str) -> None:
        """See `multi.Runs`."""
        if code:
            self.error = self._failure(code, text)
        elif self.head.alone and self._ends is not None and self._multi is not None:
            self._multi.rest(self._ends)
        self._finish(whole=not code and self.head.complete)

    def _failure(self, code: int, text: str) -> HttpError:
        if self.head.problem:
            return Malformed(self.head.problem)
        if self.connected and not self.head.status:
            self.lost = self.lost or self.handle.getinfo(curl.NUM_CONNECTS) == 0
        return self._explain(self, code, text)

    def _finish(self, *, whole: bool) -> None:
        self.over = True
        self._stop_timer()
        if self.uploading is not None:
            self.uploading.stop()
        self._ended(self, whole)
        self.handle = None
        self._multi = None
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _wait(self, patience: float) -> None:
        """Wait for data. One timer serves all waits of a transfer: setting one for each would cost more."""
        loop = self._loop
        self._patience = patience
        self._until = until = loop.time() + patience
        if self._timer is None:
            self._timer = loop.call_at(until, self._look)
        waiter = self._waiter = loop.create_future()
        try:
            await waiter
        finally:
            self._waiter = None

    def _look(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return  # no reader waits, so the server is not late
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._look)
        else:
            self.drop(Silent("sent nothing for too long"))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_much(self) -> None:
        self.drop(CutOff("was not read to its end"))

    def _go_on(self) -> None:
        self._paused = False
        with contextlib.suppress(curl.error):  # `done` gets the same error
            self.handle.pause(curl.PAUSE_CONT)
