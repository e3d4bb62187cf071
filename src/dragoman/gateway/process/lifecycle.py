"""Is the process serving, about to stop, or stopping? How many exchanges are under way?"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager


class Lifecycle:
    """The life of one gateway process."""

    def __init__(self) -> None:
        self.running = 0
        """Exchanges under way."""
        self.draining = False
        """The gateway stops soon: `/readyz` says so."""
        self.closing = False
        self.waiting: set[asyncio.Event] = set()
        """Set when the gateway stops: live feeds and idle WebSockets would keep the shutdown waiting."""

    @contextmanager
    def wakes(self, event: asyncio.Event) -> Generator[None]:
        """Set `event` if the gateway stops in this block."""
        self.waiting.add(event)
        if self.closing:
            event.set()
        try:
            yield
        finally:
            self.waiting.discard(event)

    def announce_stop(self) -> None:
        """Tell live feeds and WebSockets that the gateway stops."""
        self.closing = True
        for event in self.waiting:
            event.set()
