"""Counters of limits while the shared ones are gone, and when they are back."""

import asyncio
from collections.abc import Sequence

from dragoman.access.counters import LimitCounters, earlier_spending_mark
from dragoman.shared import LocalState
from dragoman.store import Addition, StoreError

LATER = 9000.0


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Shared(LocalState):
    gone = False

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        if self.gone:
            raise StoreError("gone")
        return await super().add(additions)


def setup() -> tuple[Clock, Shared, LimitCounters]:
    clock = Clock()
    shared = Shared(clock)
    return clock, shared, LimitCounters(shared, clock, clock)


def test_what_was_counted_alone_is_added_when_the_counters_are_back() -> None:
    async def run() -> None:
        clock, shared, counters = setup()
        assert await counters.add([Addition("rate", 3, LATER)]) == [3]
        shared.gone = True
        assert await counters.add([Addition("rate", 1, LATER), Addition("held", -2, LATER)]) == [1, -2]
        await shared_add(shared, Addition("rate", 5, LATER))
        shared.gone = False
        assert await counters.add([Addition("rate", 1, LATER)]) == [2]  # it is not tried all the time
        clock.now += 6
        assert await counters.add([Addition("rate", 0, LATER), Addition("held", 0, LATER)]) == [10, -2]
        assert counters.problem == ""

    asyncio.run(run())


def test_past_spending_is_not_added_twice() -> None:
    async def run() -> None:
        clock, shared, counters = setup()
        spent = Addition("spent", 0, LATER)
        await counters.add_earlier_spending(spent._replace(amount=700))
        shared.gone = True
        await counters.add([Addition("any", 0, LATER)])
        await counters.add_earlier_spending(
            spent._replace(amount=700)
        )  # from receipts, for this process alone
        assert await counters.add([spent._replace(amount=20)]) == [720]
        shared.gone = False
        clock.now += 6
        assert await counters.add([spent]) == [720]

    asyncio.run(run())


def test_counters_that_were_lost_are_left_to_the_receipts() -> None:
    async def run() -> None:
        clock, shared, counters = setup()
        spent = Addition("spent", 0, LATER)
        shared.gone = True
        await counters.add([Addition("any", 0, LATER)])
        before = counters.generation
        await counters.add_earlier_spending(spent._replace(amount=700))
        await counters.add([spent._replace(amount=20)])
        shared.gone = False
        clock.now += 6
        assert await counters.add([spent, earlier_spending_mark(spent, 0)]) == [0, 0]
        assert counters.generation > before  # so that the past, with these 20, is counted again

    asyncio.run(run())


def test_a_failed_recovery_loses_nothing() -> None:
    async def run() -> None:
        clock, shared, counters = setup()
        shared.gone = True
        await counters.add([Addition("rate", 4, LATER)])
        clock.now += 6
        assert await counters.add([Addition("rate", 1, LATER)]) == [5]
        shared.gone = False
        clock.now += 6
        assert await counters.add([Addition("rate", 0, LATER)]) == [5]

    asyncio.run(run())


async def shared_add(shared: Shared, addition: Addition) -> None:
    """Another process, which still reaches the counters, adds to them."""
    was, shared.gone = shared.gone, False
    await shared.add([addition])
    shared.gone = was
