"""Amounts that count only while a request runs: running streams, and reserved money and tokens.

A process that is killed cannot give back what its requests hold, so holds must expire. Each slot of 30
seconds has a counter of its own. A hold is counted in the current slot and in the next one, and its process
counts it again in each new slot while the request runs. The holds of a killed process are gone after a minute
at most. The shared state needs only counters for this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..shared import Counters
from ..store import Addition

SLOT = 30
"""Seconds. Long compared with the clock differences of processes, so that they use the same slot."""


class Holds:
    """What the running requests of this process hold, by name."""

    def __init__(self, counters: Counters, clock: Callable[[], float]) -> None:
        self._counters = counters
        self._clock = clock
        self._held: dict[str, int] = {}
        self._counted_until = 0
        """The last slot in which the holds of this process are counted."""
        self._renewing: asyncio.Task[None] | None = None

    def place(self, name: str, amount: int) -> list[Addition]:
        """Additions that hold `amount`. The first one's new value is what all processes hold."""
        self._held[name] = self._held.get(name, 0) + amount
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())
        return self._additions(name, amount)

    def release(self, name: str, amount: int) -> list[Addition]:
        """Additions that give `amount` back."""
        left = self._held.get(name, 0) - amount
        if left > 0:
            self._held[name] = left
        else:
            self._held.pop(name, None)
        return self._additions(name, -amount)

    def _additions(self, name: str, amount: int) -> list[Addition]:
        slot = self._slot()
        last = max(slot, min(self._counted_until, slot + 1))
        return [_addition(name, at, amount) for at in range(slot, last + 1)]

    def _slot(self) -> int:
        return int(self._clock() // SLOT)

    async def count_in_new_slot(self) -> None:
        """Count all holds in the slots that began since. Call this before `place`."""
        slot = self._slot()
        first, last = max(self._counted_until + 1, slot), slot + 1
        if first > last:
            return
        self._counted_until = last
        additions = [
            _addition(name, at, amount)
            for at in range(first, last + 1)
            for name, amount in self._held.items()
        ]
        if additions:
            await self._counters.add(additions)

    async def _renew(self) -> None:
        try:
            while self._held:
                await asyncio.sleep(SLOT / 2)
                await self.count_in_new_slot()
        finally:
            self._renewing = None

    async def close(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            await asyncio.gather(self._renewing, return_exceptions=True)


def _addition(name: str, slot: int, amount: int) -> Addition:
    return Addition(f"{name}:{slot}", amount, float((slot + 2) * SLOT))
