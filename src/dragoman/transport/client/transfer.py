"""One request on one handle of libcurl: collects what comes, wakes up who waits for it, and holds back.

libcurl calls `_prerequest`, `_line` and `_data` while it works on its sockets. No function of libcurl may be
called from there. So they only collect; who waits runs once, after libcurl is done with all that has come.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from .errors import CutOff, Disconnected, HttpError, Malformed, Silent
from .head import Head
from .multi import Ends, Multi
from .options import curl

# A reader that is behind by this much gets no more until it has read.
_MOST_WAITING = 64 * 1024
_PAUSE: int = curl.WRITEFUNC_PAUSE
_SENDABLE: int = curl.PREREQFUNC_OK
_NOT_SENDABLE: int = curl.PREREQFUNC_ABORT
_REFUSED = -1

Explain = Callable[["Transfer", int, str], HttpError]
"""The error that libcurl's code and text mean for this transfer."""


class Transfer:
    """Begun by `start`, over once libcurl says so or `drop` is called. Then `ended` is called, once."""

    __slots__ = (
        "_ended",
        "_ends",
        "_explain",
        "_loop",
        "_multi",
        "_parts",
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
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        handle: Any,
        explain: Explain,
        ended: Callable[[Transfer, bool], None],
    ) -> None:
        self.handle: Any = handle
        self.head = Head()
        self.connected = False
        """Was there a connection for the request?"""
        self.lost = False
        """Was the request lost on a kept connection, before a byte of an answer came?"""
        self.left = -1
        """How many more bytes may come and be forgotten. Less than none: they are kept."""
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
        handle.setopt(curl.PREREQFUNCTION, self._prerequest)
        handle.setopt(curl.HEADERFUNCTION, self._line)
        handle.setopt(curl.WRITEFUNCTION, self._data)

    def start(self, multi: Multi) -> None:
        self._multi = multi
        multi.add(self)

    def drop(self, error: HttpError) -> None:
        """Stop at once: closes the connection (HTTP/1.1) or resets the stream (HTTP/2)."""
        if self._multi is not None:
            self.error = error
            self._multi.remove(self)
            self._finish(whole=False)

    async def begun(self, patience: float) -> None:
        """Wait for the head."""
        while not self.head.complete:
            if self.over:
                raise self.error or Disconnected("closed the connection before it answered")
            await self._wait(patience)
        self._stop_timer()

    async def data(self, patience: float) -> bytes:
        """All that has come since the last call, as soon as there is something; empty at the end."""
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
        """Nobody reads the rest. If it is short and comes soon, the connection is kept."""
        if self.over:
            return
        self._parts = []
        self._size = 0
        self.left = most
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self._too_much)
        if self._paused:
            self._go_on()

    # ── what libcurl calls ──

    def _prerequest(self, ip: str, own_ip: str, port: int, own_port: int) -> int:
        """A request is about to be sent, on a new connection or on one that was kept.

        libcurl sends a request again by itself if a kept connection turns out to be dead, up to five times
        and on any other kept connection. Here it may do so once, and on a new connection only.
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
            return None  # what a proxy says before there is a connection
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
        if self._size > _MOST_WAITING:
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

    # ── the rest ──

    def _failure(self, code: int, text: str) -> HttpError:
        if self.head.problem:
            return Malformed(self.head.problem)
        if self.connected and not self.head.status:
            self.lost = self.lost or self.handle.getinfo(curl.NUM_CONNECTS) == 0
        return self._explain(self, code, text)

    def _finish(self, *, whole: bool) -> None:
        self.over = True
        self._stop_timer()
        self._ended(self, whole)
        self.handle = None
        self._multi = None
        self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def _wait(self, patience: float) -> None:
        """Until something has come. One timer serves all waits of a transfer: most of them are short."""
        loop = self._loop
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
            return  # nobody waits: nobody is too late
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
        with contextlib.suppress(curl.error):  # the transfer ends with the same error
            self.handle.pause(curl.PAUSE_CONT)
