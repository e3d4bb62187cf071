"""Reserves what a request may use before it runs, and settles the difference to what it used.

A request is refused if a limit is reached already. Otherwise it runs, even if it may use more than is left:
the last request before a limit may exceed it by its own cost. All reservations of a request are one atomic
change of the shared counters, so requests that come at the same time see each other.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from ..model.errors import DragomanError, Fault
from ..store import Addition, Store, StoreError
from .counters import LimitCounters, earlier_spending_claim, earlier_spending_mark
from .holds import Holds
from .identity import Identity
from .meters import BudgetMeter, Level, Meter, Use, meters
from .periods import shown_time

log = logging.getLogger("dragoman.gateway")

_WARN_AT = 0.8
# Keys can be created at run time, so the caches of keys and budgets need a limit.
_MAX_CACHED = 10_000
_MAX_SWITCHES = 3
"""How often a request is counted again because the counters changed: Redis may come and go."""
# How often a process checks whether another one has counted earlier spending, and the seconds between checks.
_CLAIM_POLLS = 20
_CLAIM_POLL = 0.1


class LimitReached(DragomanError):
    """A limit of the key or of its team is reached."""

    status = 429
    fault: Fault = "client"

    def __init__(self, message: str, retry_after: int, code: str) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds."""
        self.code = code


class Admission(msgspec.Struct):
    """A request that runs, and what is reserved for it."""

    meters: tuple[Meter, ...]
    begun: float
    use: Use
    warnings: tuple[str, ...] = ()
    """A sentence for each limit that is nearly reached."""
    settled: bool = False


class Limiter:
    """All limits of this process."""

    def __init__(self, counters: LimitCounters, store: Store, clock: Callable[[], float]) -> None:
        self._counters = counters
        self._store = store
        self._clock = clock
        self._holds = Holds(counters, clock)
        self._meters: dict[Identity, tuple[Meter, ...]] = {}
        self._generation = counters.generation
        self._known: dict[str, asyncio.Task[None]] = {}
        """Budget counters of this process that include the earlier spending from receipts."""
        self._tasks: set[asyncio.Task[None]] = set()

    def meters(self, identity: Identity) -> tuple[Meter, ...]:
        """The limits of a key and its team. Empty: nothing needs to be counted."""
        if not identity.limits and not identity.team_limits:
            return ()
        found = self._meters.get(identity)
        if found is None:
            if len(self._meters) >= _MAX_CACHED:
                self._meters.clear()
            found = self._meters[identity] = meters(identity)
        return found

    async def admit(self, limits: tuple[Meter, ...], use: Use) -> Admission:
        """Reserve `use`, or raise LimitReached."""
        for _ in range(_MAX_SWITCHES):
            await self._holds.count_in_new_slot()
            generation = self._counters.generation
            now = self._clock()
            for meter in limits:
                if isinstance(meter, BudgetMeter):
                    await self._count_earlier_spending_once(meter, now)
            admission = await self._reserve(limits, use, now)
            if self._counters.generation == generation:
                break
            # Other counters took over meanwhile, and they did not know yet what was spent before.
            await self.settle(admission, None)
        else:
            admission = await self._reserve(limits, use, self._clock())
        return admission

    async def _reserve(self, limits: tuple[Meter, ...], use: Use, now: float) -> Admission:
        parts = [meter.reserve(now, use, self._holds) for meter in limits]
        admission = Admission(limits, now, use)
        try:
            values = await self._counters.add([addition for part in parts for addition in part])
        except BaseException:
            self.settle_later(admission, None)
            raise
        levels: list[tuple[Meter, Level]] = []
        for meter, part in zip(limits, parts, strict=True):
            levels.append((meter, meter.level(now, use, values[: len(part)])))
            values = values[len(part) :]
        if reached := [(meter, level) for meter, level in levels if level.reached]:
            await self.settle(admission, None)
            raise _refusal(*max(reached, key=lambda found: found[1].resets), now)
        admission.warnings = tuple(_warnings(levels))
        return admission

    async def settle(self, admission: Admission, actual: Use | None) -> None:
        """Replace what was reserved by `actual`. None: the request did not run."""
        if admission.settled:
            return
        admission.settled = True
        now = self._clock()
        additions: list[Addition] = []
        for meter in admission.meters:
            additions += meter.settle(admission.begun, now, admission.use, actual, self._holds)
        if not additions:
            return
        try:
            await self._counters.add(additions)
        except DragomanError as error:
            if actual is not None:
                log.warning("the use of a request is not counted: %s", error.message)

    def settle_later(self, admission: Admission, actual: Use | None) -> None:
        """Settle in the background, for a request whose client has left."""
        if not admission.settled:
            self._start(self.settle(admission, actual))

    async def close(self) -> None:
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._holds.close()

    async def _count_earlier_spending_once(self, meter: BudgetMeter, now: float) -> None:
        """Add the earlier spending that the receipts know to a budget, once for all processes.

        A budget may be set in mid-month, or the counters may be new.
        """
        if self._generation != self._counters.generation or len(self._known) >= _MAX_CACHED:
            self._generation = self._counters.generation
            self._known.clear()
        counter = meter.spent(now, 0)
        task = self._known.get(counter.counter)
        if task is None:
            task = self._known[counter.counter] = self._start(
                self._count_earlier_spending(meter, counter, now)
            )
        if not task.done():
            await asyncio.shield(task)

    async def _count_earlier_spending(self, meter: BudgetMeter, counter: Addition, now: float) -> None:
        try:
            if await self._is_counted(counter):
                return
            try:
                rows = await self._store.usage(meter.query(now))
            except DragomanError:
                # Give the claim back: another process may try.
                await self._counters.add([earlier_spending_claim(counter, -1, self._clock())])
                raise
            money = meter.budget.unit == "money"
            past = sum(row.micros if money else row.input + row.output for row in rows)
            await self._counters.add_earlier_spending(meter.spent(now, past))
        except DragomanError as error:
            log.warning("what was spent before is not counted: %s", error.message)
            self._known.pop(counter.counter, None)  # the next request tries again

    async def _is_counted(self, counter: Addition) -> bool:
        """Has another process added the earlier spending? Waits for a process that is adding it.

        If not, this process has the claim.
        """
        for _ in range(_CLAIM_POLLS):
            now = self._clock()
            known, claims = await self._counters.add(
                [earlier_spending_mark(counter, 0), earlier_spending_claim(counter, 1, now)]
            )
            if known:
                return True
            if claims == 1:
                return False
            await self._counters.add([earlier_spending_claim(counter, -1, now)])
            await asyncio.sleep(_CLAIM_POLL)
        raise StoreError("another process takes long to count it")

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _refusal(meter: Meter, level: Level, now: float) -> LimitReached:
    wait = max(1, math.ceil(level.resets - now))
    if level.under_way:
        why = (
            f"{meter.owner}: the limit of {meter.shown} is taken by requests under way; try again in {wait} s"
        )
    else:
        used = f" ({meter.words(level.used)} used)" if isinstance(meter, BudgetMeter) else ""
        why = (
            f"{meter.owner}: the limit of {meter.shown} is reached{used}; it resets at "
            f"{shown_time(level.resets)} (in {wait} s)"
        )
    spent = isinstance(meter, BudgetMeter) and not level.under_way
    return LimitReached(why, wait, "insufficient_quota" if spent else "rate_limit_exceeded")


def _warnings(levels: list[tuple[Meter, Level]]) -> list[str]:
    found: list[str] = []
    for meter, level in levels:
        if level.used >= _WARN_AT * level.most:
            until = "" if level.under_way else f", resets {shown_time(level.resets)}"
            percent = 100 * level.used // level.most
            found.append(f"{meter.owner}: {percent}% of {meter.shown} used{until}")
    return found
