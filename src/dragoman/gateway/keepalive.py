"""Filling silences, by one timer for all answers: one for each would cost more than to open the answer."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

# Seconds. Whose time comes in between is woken together with others.
_APART = 0.02


class Beating(Protocol):
    """Who must not be silent for too long."""

    due: float
    """When it will have been, by the monotonic clock."""

    async def beat(self) -> None:
        """It has been: say something."""
        ...


class Beats:
    """All who are listened to. What is said in time costs nothing here."""

    def __init__(self) -> None:
        self._all: set[Beating] = set()
        self.discard = self._all.discard
        """Nothing is left to be done for one. The timer may go off once more, and finds nobody."""
        self._saying: dict[Beating, asyncio.Task[None]] = {}
        self._at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, one: Beating) -> None:
        self._all.add(one)
        due = one.due
        if self._timer is None or due < self._at:
            self._wake_at(due)

    def _wake_at(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._at = when
        self._timer = asyncio.get_running_loop().call_later(when - time.monotonic(), self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        now = time.monotonic()
        later = now + _APART
        for one in self._all:
            if one.due <= now and one not in self._saying:
                task = self._saying[one] = asyncio.get_running_loop().create_task(one.beat())
                task.add_done_callback(lambda _, one=one: self._saying.pop(one))
        if self._all:
            self._wake_at(max(min(one.due for one in self._all), later))
