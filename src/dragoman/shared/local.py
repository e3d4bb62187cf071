"""Shared state of one process: everything is in its memory."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

from ..store import Addition

_MANY = 10_000
"""Expired counters are dropped when there are more."""


class LocalState:
    """`SharedState` for a gateway of one process, or while the shared state cannot be reached."""

    problem = ""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._counters: dict[str, tuple[int, float]] = {}

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        # Nothing is awaited here, so no other task sees half of the additions.
        now = self._now()
        if len(self._counters) > _MANY:
            self._counters = {name: kept for name, kept in self._counters.items() if kept[1] > now}
        values: list[int] = []
        for counter, amount, expires in additions:
            value, until = self._counters.get(counter, (0, 0.0))
            if until <= now:
                value, until = 0, expires
            self._counters[counter] = (value + amount, until)
            values.append(value + amount)
        return values

    def taken(self) -> list[Addition]:
        """All counters as additions. They begin at 0 again."""
        now, counters = self._now(), self._counters
        self._counters = {}
        return [Addition(name, value, until) for name, (value, until) in counters.items() if until > now]

    def publish(self, channel: str, message: bytes) -> None:
        """There is no other process."""

    def listen(self, channel: str, on_message: Callable[[bytes], None]) -> Callable[[], None]:
        return lambda: None

    def on_connect(self, call: Callable[[], None]) -> None:
        """There is no connection."""

    def note(self, name: str, value: bytes | None) -> None:
        """No other process could read it."""

    async def take_orphaned(self) -> list[bytes]:
        return []

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncGenerator[None]:
        yield

    async def close(self) -> None: ...
