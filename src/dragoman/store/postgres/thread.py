"""A thread with an event loop, on which all work with the database is done.

The gateway's loop serves streams: it must not wait while receipts are encoded, and the store may be opened
before a loop runs and used from several. So the driver has a loop of its own.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from ..types import StoreError

T = TypeVar("T")


class LoopThread:
    """Runs coroutines. Any thread may submit them."""

    def __init__(self) -> None:
        # Not uvloop, and on Windows not the default: the driver needs a loop that can watch sockets.
        self.loop = asyncio.SelectorEventLoop()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="dragoman-store", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._closed:
            work.close()
            raise StoreError("the store is closed")
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, work: Callable[[], None]) -> None:
        """Run `work` there soon. It must not wait."""
        if self._closed:
            raise StoreError("the store is closed")
        self.loop.call_soon_threadsafe(work)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` there and wait for it here."""
        return await asyncio.wrap_future(self.submit(work))

    def close(self) -> None:
        """Stop the loop. All work must have ended."""
        self._closed = True
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(5)
