"""The counters of limits: shared ones, and those of this process while the shared ones cannot be reached.

When the shared counters can be reached again, this process adds to them what it counted meanwhile.

A new counter of a budget begins at 0, although requests before it may have cost something. One process adds
this earlier spending, from the receipts. A *mark* counter says that it was added. A *claim* counter says that
a process is adding it.
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
_MARK, _CLAIM = ":past", ":claim"
_CLAIM_SECONDS = 10.0


def earlier_spending_mark(counter: Addition, amount: int) -> Addition:
    """The mark of the budget counter `counter`: above 0 if earlier spending was added to it."""
    return Addition(counter.counter + _MARK, amount, counter.expires)


def earlier_spending_claim(counter: Addition, amount: int, now: float) -> Addition:
    """The claim to add earlier spending to `counter`. It expires, because the process may die."""
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
        self._earlier: dict[str, int] = {}
        """What `add_earlier_spending` has added to counters of this process."""
        self.generation = 0
        """Increases when the counters may have been reset. Earlier spending must then be added again."""
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

    async def add_earlier_spending(self, spent: Addition) -> None:
        """Add earlier spending, and set the mark."""
        await self.add([earlier_spending_mark(spent, 1), spent])
        if self.problem:
            self._earlier[spent.counter] = self._earlier.get(spent.counter, 0) + spent.amount

    def counters_were_reset(self) -> None:
        """Call this when the shared counters may be empty: their server was restarted."""
        self.generation += 1

    async def _recover(self) -> None:
        """Add to the shared counters what this process has counted alone, without earlier spending."""
        counted = self._local.taken()
        names = {addition.counter for addition in counted}
        budgets = [addition for addition in counted if earlier_spending_mark(addition, 0).counter in names]
        # Marks and claims of this process would keep the other processes from adding earlier spending.
        own = (_MARK, _CLAIM)
        plain = [each for each in counted if each not in budgets and not each.counter.endswith(own)]
        try:
            marks = (
                await self._shared.add([earlier_spending_mark(budget, 0) for budget in budgets])
                if budgets
                else []
            )
            # A shared counter without its mark is empty. This spending will be added from the receipts.
            spent = [
                budget._replace(amount=budget.amount - self._earlier.get(budget.counter, 0))
                for budget, mark in zip(budgets, marks, strict=True)
                if mark
            ]
            if both := [addition for addition in (*plain, *spent) if addition.amount]:
                await self._shared.add(both)
        except DragomanError:
            await self._local.add(counted)
            raise
        log.warning("limits are shared again")
        self.problem = ""
        self._earlier.clear()
        self.generation += 1

    def _failed(self, error: DragomanError) -> None:
        self.paused_until = self._monotonic() + _PAUSE
        if not self.problem:
            self.generation += 1
            what = "requests of limited keys are refused" if self.config.when_unshared == "refuse" else ""
            log.warning("limits are not shared: %s; %s", error.message, what or "each process counts alone")
        self.problem = error.message
