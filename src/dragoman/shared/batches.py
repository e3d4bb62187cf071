"""Makes the additions of requests that come at the same time in one change of the shared counters."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ..model.errors import DragomanError
from ..store import Addition
from .contract import Counters


class BatchedCounters:
    """`Counters` that asks the shared ones for one change at a time, and gathers additions meanwhile.

    A transaction of SQLite costs more than the additions in it. A request that comes alone does not wait.
    """

    def __init__(self, shared: Counters) -> None:
        self._shared = shared
        self._waiting: list[tuple[Sequence[Addition], asyncio.Future[list[int]]]] = []
        self._working: asyncio.Task[None] | None = None

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        values: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()
        self._waiting.append((additions, values))
        if self._working is None:
            # A task of its own: the request that starts it may be cancelled, the others go on.
            self._working = asyncio.create_task(self._work())
        return await values

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    before = await self._add_all([additions for additions, _ in batch])
                except DragomanError as error:
                    for _, values in batch:
                        if not values.done():
                            values.set_exception(error)
                    continue
                for additions, values in batch:
                    found = _values(additions, before)
                    if not values.done():
                        values.set_result(found)
        finally:
            self._working = None

    async def _add_all(self, parts: Sequence[Sequence[Addition]]) -> dict[str, int]:
        """Make all additions. Returns the value of each counter before them."""
        amounts: dict[str, int] = {}
        ends: dict[str, float] = {}
        for part in parts:
            for counter, amount, expires in part:
                amounts[counter] = amounts.get(counter, 0) + amount
                ends[counter] = expires
        sums = [Addition(counter, amount, ends[counter]) for counter, amount in amounts.items()]
        values = await self._shared.add(sums)
        return {one.counter: value - one.amount for one, value in zip(sums, values, strict=True)}


def _values(additions: Sequence[Addition], levels: dict[str, int]) -> list[int]:
    """The values as if the additions of each request were made by themselves, one after another."""
    found: list[int] = []
    for counter, amount, _ in additions:
        levels[counter] += amount
        found.append(levels[counter])
    return found
