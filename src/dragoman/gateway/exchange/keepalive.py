"""Keepalives for all streamed answers, from one timer.

One timer per answer would cost more than opening the answer: nearly every answer ends or writes in time.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

# Seconds between two runs of the timer. Keepalives that become due in between are sent in one run.
_MIN_INTERVAL = 0.02


class NeedsKeepalive(Protocol):
    """An answer that must not be silent for too long."""

    due: float
    """When the next keepalive is due, by the monotonic clock. Each write moves it."""

    async def send_keepalive(self) -> None: ...


class KeepaliveTimer:
    """Sends the keepalives that are due. A write only moves `due`, and costs nothing here."""

    def __init__(self) -> None:
        self._answers: set[NeedsKeepalive] = set()
        self.discard = self._answers.discard
        """Send no more keepalives to an answer. The timer may still run once more and find nothing due."""
        self._sending: dict[NeedsKeepalive, asyncio.Task[None]] = {}
        self._wakes_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, answer: NeedsKeepalive) -> None:
        self._answers.add(answer)
        due = answer.due
        if self._timer is None or due < self._wakes_at:
            self._set_timer(due)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._wakes_at = when
        self._timer = asyncio.get_running_loop().call_later(when - time.monotonic(), self._send_due)

    def _send_due(self) -> None:
        self._timer = None
        now = time.monotonic()
        for answer in self._answers:
            if answer.due <= now and answer not in self._sending:
                task = asyncio.get_running_loop().create_task(answer.send_keepalive())
                self._sending[answer] = task
                task.add_done_callback(lambda _, answer=answer: self._sending.pop(answer))
        if self._answers:
            self._set_timer(max(min(answer.due for answer in self._answers), now + _MIN_INTERVAL))
