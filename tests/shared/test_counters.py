"""The contract of shared counters: this process alone, batches, and a store."""

import asyncio
from collections.abc import Callable, Sequence

import pytest

from dragoman.shared import BatchedCounters, Counters, LocalState
from dragoman.store import Addition, StoreError, open_store


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


ENGINES: dict[str, Callable[[Clock], Counters]] = {
    "local": LocalState,
    "batched": lambda clock: BatchedCounters(LocalState(clock)),
    "store": lambda clock: open_store(None, now=clock),
    "batched store": lambda clock: BatchedCounters(open_store(None, now=clock)),
}
EVERY = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)


@EVERY
def test_counters_add_and_end_with_their_time(engine: Callable[[Clock], Counters]) -> None:
    async def run() -> None:
        clock = Clock()
        counters = engine(clock)
        assert await counters.add([Addition("a", 2, 1100.0), Addition("b", 5, 1200.0)]) == [2, 5]
        # The time of a counter is that of its first addition.
        assert await counters.add([Addition("a", 1, 9000.0), Addition("b", -7, 9000.0)]) == [3, -2]
        assert await counters.add([Addition("a", 0, 9000.0)]) == [3]
        clock.now = 1100.0
        assert await counters.add([Addition("a", 4, 1300.0), Addition("b", 1, 1300.0)]) == [4, -1]

    asyncio.run(run())


@EVERY
def test_additions_at_the_same_time_see_each_other(engine: Callable[[Clock], Counters]) -> None:
    async def run() -> None:
        counters = engine(Clock())
        both = [Addition("a", 1, 9000.0), Addition("b", 10, 9000.0)]
        found = await asyncio.gather(*[counters.add(both) for _ in range(20)])
        assert sorted(found) == [[number, 10 * number] for number in range(1, 21)]

    asyncio.run(run())


def test_a_batch_fails_for_all_and_the_next_one_works() -> None:
    class Failing(LocalState):
        broken = True

        async def add(self, additions: Sequence[Addition]) -> list[int]:
            await asyncio.sleep(0)
            if self.broken:
                raise StoreError("gone")
            return await super().add(additions)

    async def run() -> None:
        shared = Failing(Clock())
        counters = BatchedCounters(shared)
        one = [Addition("a", 1, 9000.0)]
        results = await asyncio.gather(*[counters.add(one) for _ in range(3)], return_exceptions=True)
        assert [type(result) for result in results] == [StoreError] * 3
        shared.broken = False
        assert await counters.add(one) == [1]

    asyncio.run(run())


def test_a_request_that_is_cancelled_does_not_stop_the_others() -> None:
    async def run() -> None:
        counters = BatchedCounters(LocalState(Clock()))
        first = asyncio.create_task(counters.add([Addition("a", 1, 9000.0)]))
        second = asyncio.create_task(counters.add([Addition("a", 1, 9000.0)]))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == [2]

    asyncio.run(run())
