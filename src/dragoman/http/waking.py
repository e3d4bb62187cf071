"""Waiting without a turn of the event loop: whoever is woken goes on at once, inside whoever wakes it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context


class Waking:
    """What one task waits for, again and again, as it would for a future; awaiting it takes the news.

    A future's waiters are put in the event loop's queue, and one more turn of the loop costs more than most
    of what is done in it. This one's is called straight away, unless another task is at work just then.
    """

    __slots__ = ("_asyncio_future_blocking", "_call", "_cancelled", "_context", "_loop", "woken")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._asyncio_future_blocking = False  # by this name a task knows what it may wait for
        self._loop = loop
        self.woken = False
        """Is there news that nobody has taken? To be unset by who wants only what comes from now on."""
        self._cancelled = False
        self._call: Callable[[Waking], object] | None = None
        self._context: Context | None = None

    def set_result(self, result: None = None, /) -> None:
        """Wake who waits, or who will."""
        self.woken = True
        call, self._call = self._call, None
        if call is None:
            return
        assert self._context is not None
        if asyncio.current_task(self._loop) is None:
            self._context.run(call, self)
        else:
            self._loop.call_soon(call, self, context=self._context)

    def __await__(self) -> Generator[Waking, None, None]:
        # What a generator would yield, without one that is entered, left and entered again.
        if self.woken:
            self.woken = False
            return iter(())  # pyright: ignore[reportReturnType]
        self._asyncio_future_blocking = True
        return iter((self,))  # pyright: ignore[reportReturnType]

    # What a task asks of anything it waits for. Which loop it belongs to, `_loop` tells.

    def add_done_callback(self, call: Callable[[Waking], object], *, context: Context) -> None:
        self._call = call
        self._context = context

    def cancel(self, msg: object = None) -> bool:
        """The task is: it hears of it in its turn."""
        if self.woken or self._call is None:
            return False
        self.woken = self._cancelled = True
        self._loop.call_soon(self._call, self, context=self._context)
        self._call = None
        return True

    def result(self) -> None:
        self.woken = False
        if self._cancelled:
            self._cancelled = False
            raise asyncio.CancelledError
