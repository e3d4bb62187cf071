"""One connection: a request goes out, llhttp reads what comes back, whoever waits is woken.

This is where each piece of a streamed answer passes, so it does little: pieces of a body go from the parser
into a list without a line of Python, and one clock per connection looks now and then whether anybody has said
anything, instead of being set anew for each piece. Of a head the parser tells only the status: its fields are
read from its bytes by who asks for them, and of most answers nobody does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from time import monotonic
from typing import cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from .bodies import Piece, portions
from .errors import CutOff, Disconnected, HttpError, Malformed, Silent
from .head import fields_of, parser_for

# Who takes an answer slower than it comes has that much waiting for it. A head is never as long.
_MOST_HELD = 64 * 1024
# Bytes a second. A server that takes the request slower than that does not take it.
_SLOWEST_UPLOAD = 64 * 1024


class Connection(asyncio.Protocol):
    """`lost` is called when the connection is closed."""

    __slots__ = (
        "_awaited", "_bodiless", "_feed", "_idle", "_limit", "_loop", "_lost", "_parser", "_paused", "_sent",
        "_stuffed", "_timer", "error", "head", "heard", "held", "keep", "on_body", "on_message_begin", "over",
        "parts", "status", "transport", "waiter",
    )  # fmt: skip

    transport: asyncio.Transport

    def __init__(self, loop: asyncio.AbstractEventLoop, lost: Callable[[Connection], object]) -> None:
        self._loop = loop
        self._lost = lost
        self.parts: list[bytes] = []
        """Of the body, what nobody has taken yet."""
        self.held = 0
        """Bytes that came since somebody took what there was."""
        self.head = b""
        """As it came, with whatever came together with it."""
        self.status = 0
        """0 until the head has come."""
        self.over = True
        """Nothing is asked, or all is answered."""
        self.keep = False
        """May another request be sent on it?"""
        self.error: HttpError | None = None
        self.heard = monotonic()
        self.waiter: Callable[[], object] | None = None
        """Called once when something happens: bytes, an error, or room to write."""
        self._awaited: list[None] = []
        """One for each message that may begin: an answer that nobody asked for must not become part of the
        one before."""
        self._bodiless = False
        self._sent = True
        self._paused = False
        self._stuffed = False
        self._idle = self._limit = 0.0
        self._timer: asyncio.TimerHandle | None = None
        # What the parser calls: straight into C.
        self.on_body = self.parts.append
        self.on_message_begin = self._awaited.pop
        parser = parser_for(self)
        self._parser: HttpResponseParser | None = parser
        self._feed = parser.feed_data

    # ── asking ──

    def begin(self, idle: float, bodiless: bool) -> None:
        """A request is about to be written; its answer may be silent for `idle` seconds at a time."""
        self.over = self.keep = False
        self.status = self.held = 0
        self.head = b""
        self.heard = monotonic()
        if not self._awaited:
            self._awaited.append(None)
        self._bodiless = bodiless
        self._sent = True
        self._idle = idle
        if self._limit != idle:
            self._allow(idle)

    def send(self, pieces: list[Piece], size: int) -> None:
        """Write `pieces` of a request of `size` bytes. What the socket does not take gets time to be sent."""
        self.transport.writelines(pieces)
        if self.transport.get_write_buffer_size():
            self._allow(self._idle + size / _SLOWEST_UPLOAD)

    async def upload(self, pieces: list[Piece], size: int) -> None:
        """The same for too many for one write. Ends early where the answer does not wait for them."""
        self._sent = False
        begun = False
        for portion in portions(pieces):
            if begun:
                await asyncio.sleep(0)
                if not await self._drained():
                    return
            begun = True
            self.send(portion, size)
        self._sent = True
        if self._limit != self._idle and not self.transport.get_write_buffer_size():
            self._allow(self._idle)

    async def _drained(self) -> bool:
        while self._stuffed and not self.status and self.error is None:
            await self.stirred()
        return not self.status and self.error is None

    async def stirred(self) -> None:
        """Wait until something has happened: look what."""
        stirred = self._loop.create_future()
        self.wake_next(partial(finish, stirred))
        await stirred

    def wake_next(self, waiter: Callable[[], object]) -> None:
        """`waiter` is called when something has happened, or nothing for too long."""
        self.waiter = waiter
        if self._timer is None:
            self._set_timer()

    def take(self) -> bytes:
        """What there is of the body."""
        parts = self.parts
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        parts.clear()
        self.held = 0
        if self._paused:
            self._paused = False
            self.heard = monotonic()  # it was not allowed to say anything
            self.transport.resume_reading()
        return data

    def abort(self) -> None:
        """Whatever the server still has to say is not wanted."""
        self.keep = False
        self.transport.abort()

    # ── what the parser calls, beside `on_message_begin` and `on_body` ──

    def on_headers_complete(self) -> None:
        assert self._parser is not None
        status = self._parser.get_status_code()
        if status < 200:  # the server will answer soon
            self._awaited.append(None)
            return
        self.status = status
        if self._limit != self._idle:
            self._allow(self._idle)
        if self._bodiless:
            self.over = True
            raise ValueError  # the parser would wait for a body

    def on_message_complete(self) -> None:
        if self.status:
            assert self._parser is not None
            self.over = True
            self.keep = self._sent and self._parser.should_keep_alive()

    # ── what the event loop calls ──

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.keep = True

    def data_received(self, data: bytes) -> None:
        if self.over:
            self.abort()  # bytes that nobody asked for
            return
        self.heard = monotonic()
        if not self.status:
            self.head += data[:_MOST_HELD]
        try:
            self._feed(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            self._refuse(error)
            return
        self.held += len(data)
        self._wake()
        if self.held > _MOST_HELD and not self.over:
            self._hold_back()

    def eof_received(self) -> None:
        self.keep = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.keep = False
        if not self.over and self.error is None:
            self._ended_by_closing(exc)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._parser = None  # they hold each other
        self._feed = _deaf
        self._lost(self)
        self._wake()

    def pause_writing(self) -> None:
        self._stuffed = True

    def resume_writing(self) -> None:
        self._stuffed = False
        self._wake()

    # ── trouble ──

    def _wake(self) -> None:
        waiter, self.waiter = self.waiter, None
        if waiter is not None:
            waiter()

    def _fail(self, error: HttpError) -> None:
        self.error = error
        self.abort()
        self._wake()

    def _refuse(self, error: Exception) -> None:
        if self.over:  # what came after the answer is no part of it
            self.keep = False
            self._wake()
        else:
            self._fail(Malformed(f"what came is no HTTP: {error}"))

    def _ended_by_closing(self, exc: Exception | None) -> None:
        if not self.status:
            self.error = Disconnected("closed before it answered")
        elif exc is None and not self._is_measured():
            self.over = True
        else:
            self.error = CutOff("closed in the middle of an answer")

    def _is_measured(self) -> bool:
        """Does the answer itself say where it ends?"""
        fields = fields_of(self.head)
        return "content-length" in fields or "chunked" in fields.get("transfer-encoding", "").lower()

    def _hold_back(self) -> None:
        if not self.parts:
            self._fail(Malformed("a head, or what follows a body, is endless"))
        elif not self._paused:
            self._paused = True
            self.transport.pause_reading()

    def _allow(self, seconds: float) -> None:
        """From now on silence may last so long."""
        before, self._limit = self._limit, seconds
        if seconds < before and self._timer is not None:
            self._timer.cancel()  # it would go off too late
            self._timer = None
            if self.waiter is not None:
                self._set_timer()

    def _set_timer(self) -> None:
        left = max(0.0, self.heard + self._limit - monotonic())
        self._timer = self._loop.call_later(left, self._look)

    def _look(self) -> None:
        self._timer = None
        if self.waiter is None or self.over:
            return  # nobody waits; whoever does next sets it again
        if self.heard + self._limit > monotonic():
            self._set_timer()
        else:
            self._fail(Silent("nothing came for too long"))


def finish(future: asyncio.Future[None]) -> None:
    """Wake the task that waits for `future`, unless it was woken or cancelled already."""
    if not future.done():
        future.set_result(None)


def _deaf(data: object) -> None:
    """What is left when the parser is gone."""
