"""One connection: requests in, one answered after the other, bytes back.

A request is handed over when everything of the read that brought its head is parsed, so that most of them
come with their bodies. One task answers them all. It is cancelled when the client leaves.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, cast

from .reader import Reader
from .refusals import BodyUnreadable
from .request import Request
from .responses import Answer, Response, Stream

if TYPE_CHECKING:
    from .listener import Listener

log = logging.getLogger("dragoman.http")

_PATIENCE = 2.0
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class ClientGone(ConnectionError):
    """Whom the answer is for has hung up."""


class Connection(asyncio.Protocol):
    """Lives as long as its client stays."""

    __slots__ = (
        "_answered", "_asked", "_listener", "_queue", "_reader", "_reading", "_task", "_unread", "_writable",
        "busy_since", "loop", "max_body", "transport",
    )  # fmt: skip

    def __init__(self, listener: Listener) -> None:
        self.max_body = listener.max_body
        self.transport: asyncio.Transport | None = None
        self.busy_since = 0.0
        """When something last began or ended: an idle connection is not kept for ever."""
        self._listener = listener
        self.loop = listener.loop
        self._queue: deque[Request] = deque()
        self._reader = Reader(self, self._queue.append)
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._answered: Request | None = None
        """The request that is being answered."""
        self._unread: Request | None = None
        """One that was, before all of it had come."""
        self._reading = True
        self._writable: asyncio.Future[None] | None = None
        """Where writers wait while the client is too slow."""

    # What asyncio says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.busy_since = monotonic()
        self._task = self.loop.create_task(self._answer_all())
        self._listener.joined(self, self._task)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._listener.left(self)
        self._queue.clear()
        self._reader.stop()
        if self._task is not None:
            self._task.cancel()
            self._task = None  # it holds on to us
        self.resume_writing()

    def pause_writing(self) -> None:
        self._writable = self.loop.create_future()

    def resume_writing(self) -> None:
        waiting, self._writable = self._writable, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def data_received(self, data: bytes) -> None:
        reader = self._reader
        if reader.broken:
            return
        reader.feed(data)
        if self._unread is not None:
            self._let_pass(self._unread)
        if self._answered is not None:
            self._answered.wake()
            if self._queue:
                self._pause()  # the next ones may wait where they are
        elif self._queue:
            self._asked.set()
        elif reader.broken:
            self._refuse()
        if reader.request is not None and reader.request.piles_up:
            self._pause()

    # What requests and answers ask for.

    def send(self, data: bytes) -> bool:
        """To the client, at once or as soon as it reads. False: it reads slower than it is written to."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ClientGone
        transport.write(data)
        return self._writable is None

    @property
    def slow(self) -> bool:
        """Does the client read slower than it is written to?"""
        return self._writable is not None

    async def keep_pace(self) -> None:
        """Wait until the client has read most of what was sent."""
        if self._writable is not None:
            await asyncio.shield(self._writable)  # others may wait for the same
            if self.transport is None:
                raise ClientGone

    def go_on(self) -> None:
        """The client wants to know whether its body is welcome."""
        if self.transport is not None:
            self.transport.write(_CONTINUE)

    def resume(self) -> None:
        """Read on."""
        if not self._reading and self.transport is not None:
            self._reading = True
            self.transport.resume_reading()

    def _pause(self) -> None:
        if self._reading and self.transport is not None:
            self._reading = False
            self.transport.pause_reading()

    # What the listener asks for.

    def close_if_idle(self) -> None:
        if self._answered is None and not self._queue and self.transport is not None:
            self.transport.close()

    # One after the other.

    async def _answer_all(self) -> None:
        # Asked each time: a handler may keep to itself that it was cancelled.
        while self.transport is not None and not self.transport.is_closing():
            while not self._queue:
                self._asked.clear()
                await self._asked.wait()
            self._answered = self._queue.popleft()
            try:
                self._finish(self._answered, await self._listener.handler(self._answered))
                if self._writable is not None:
                    await self.keep_pace()
            except ClientGone:
                pass
            except Exception:
                log.exception("a request failed")
                self._drop()
            except BaseException:
                self._drop()
                raise
            self._over(self._answered)
            self._answered = None
            if self._queue:
                await asyncio.sleep(0)  # who asks much at once is not served before all others

    def _finish(self, request: Request, answer: Answer) -> None:
        if self._listener.closing or (request.wants_continue and not request.complete):
            request.keep_alive = False
        # By the type itself: that it is none of it, `isinstance` takes long to tell.
        if type(answer) is Response:
            self.send(answer.written(request))
        elif type(answer) is Stream and not answer.ended:
            answer.end()

    def _over(self, request: Request) -> None:
        """An answer is out, or will not be."""
        if self.transport is None:
            return
        self.busy_since = monotonic()
        if not request.complete and not self._reader.broken and not request.wants_continue:
            # The rest of a body that nobody wanted passes unread: to close on it could take the answer along.
            request.fail(BodyUnreadable())
            self._unread = request
            self.resume()
        elif not request.keep_alive or self._listener.closing:
            self._close()
        elif self._reader.broken and not self._queue:
            self._refuse()
        elif not self._reading and not self._queue:
            self.resume()

    def _let_pass(self, unread: Request) -> None:
        """A body that nobody wants comes to its end, or to one that cannot be found."""
        if unread.complete or self._reader.broken:
            self._unread = None
            if not unread.keep_alive:
                self._close()

    def _refuse(self) -> None:
        """Nothing more of this client can be understood, and those who asked before are answered."""
        if self.transport is None or self.transport.is_closing():
            return
        text = f"this is no HTTP request that can be answered: {self._reader.broken}\n"
        answer = Response(text.encode(), status=400, content_type="text/plain; charset=utf-8")
        self.transport.write(answer.written())
        # Who is still sending would lose the answer with the connection: what comes now passes unread.
        self.transport.write_eof()
        self.resume()
        self.loop.call_later(_PATIENCE, self.transport.close)

    def _close(self) -> None:
        self._queue.clear()
        if self.transport is not None:
            self.transport.close()

    def _drop(self) -> None:
        if self.transport is not None:
            self.transport.abort()
