"""The counters of limits: shared ones, and those of this process while the shared ones cannot be reached.

When they are back, what this process has counted alone is added to them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from ..config.types import LimitsConfig
from ..model.errors import DragomanError
from ..shared import Counters, LocalState
from ..store import Addition

log = logging.getLogger("dragoman.gateway")

_PAUSE = 5.0
"""Seconds until shared counters that failed are tried again. Each try may take a while."""
_PAST, _CLAIM = ":past", ":claim"
_CLAIM_SECONDS = 10.0


def past_mark(counter: Addition, amount: int) -> Addition:
    """The counter that says whether `counter`, of a budget, holds what was spent before it began."""
    return Addition(counter.counter + _PAST, amount, counter.expires)


def claim(counter: Addition, amount: int, now: float) -> Addition:
    """The counter that says which process counts what was spent before. It ends: the process may die."""
    return Addition(counter.counter + _CLAIM, amount, now + _CLAIM_SECONDS)


class LimitsUnavailable(DragomanError):
    """The shared counters cannot be reached, and the config says to refuse requests then."""

    status = 503


class LimitCounters:
    """`Counters` that go on without the shared ones, if the config allows it."""

    def __init__(self, shared: Counters, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._shared = shared
        self._monotonic = monotonic
        self._local = LocalState(clock)
        self.paused_until = float("-inf")
        self._past: dict[str, int] = {}
        """What `add_past` has added to counters of this process."""
        self.generation = 0
        """Increases when the counters may have been reset. Past spending must then be counted again."""
        self.config = LimitsConfig()
        self.problem = ""
        """Why the shared counters are not used at the moment; empty if they are."""

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        if self._monotonic() >= self.paused_until:
            try:
                if self.problem:
                    await self._recover()
                return await self._shared.add(additions)
            except DragomanError as error:
                self._failed(error)
        if self.config.when_unshared == "refuse":
            # The log says why. Addresses of services are not for clients.
            raise LimitsUnavailable(
                "limits cannot be checked at the moment, and limits.when_unshared is refuse: try again, or "
                "ask the operator of this gateway"
            )
        return await self._local.add(additions)

    async def add_past(self, spent: Addition) -> None:
        """Add what receipts say was spent before, and note in `past_mark` that this is done."""
        await self.add([past_mark(spent, 1), spent])
        if self.problem:
            self._past[spent.counter] = self._past.get(spent.counter, 0) + spent.amount

    def counters_were_reset(self) -> None:
        """Call this when the shared counters may be empty: their server was restarted."""
        self.generation += 1

    async def _recover(self) -> None:
        """Add to the shared counters what this process has counted alone, without the past."""
        counted = self._local.taken()
        marked = {one.counter for one in counted}
        budgets = [one for one in counted if past_mark(one, 0).counter in marked]
        # A claim of this process alone would keep the others from counting.
        own = (_PAST, _CLAIM)
        plain = [one for one in counted if one not in budgets and not one.counter.endswith(own)]
        try:
            marks = await self._shared.add([past_mark(one, 0) for one in budgets]) if budgets else []
            # A shared counter without its mark is empty. This spending will be added from the receipts.
            spent = [
                one._replace(amount=one.amount - self._past.get(one.counter, 0))
                for one, mark in zip(budgets, marks, strict=True)
                if mark
            ]
            if both := [one for one in (*plain, *spent) if one.amount]:
                await self._shared.add(both)
        except DragomanError:
            await self._local.add(counted)
            raise
        log.warning("limits are shared again")
        self.problem = ""
        self._past.clear()
        self.generation += 1

    def _failed(self, error: DragomanError) -> None:
        self.paused_until = self._monotonic() + _PAUSE
        if not self.problem:
            self.generation += 1
            what = "requests of limited keys are refused" if self.config.when_unshared == "refuse" else ""
            log.warning("limits are not shared: %s; %s", error.message, what or "each process counts alone")
        self.problem = error.message
