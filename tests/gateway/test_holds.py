"""Amounts that are held while requests run, and what becomes of them when a process is killed."""

import asyncio

from dragoman.access.holds import SLOT, Holds
from dragoman.shared import LocalState


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


async def value_of(holds: Holds, counters: LocalState, name: str = "streams") -> int:
    """What all processes hold, as a request sees it."""
    await holds.count_in_new_slot()
    (value, *_) = await counters.add(holds.place(name, 1))
    await counters.add(holds.release(name, 1))
    return value - 1


def test_a_hold_counts_as_long_as_its_process_lives() -> None:
    async def run() -> None:
        clock = Clock()
        counters = LocalState(clock)
        killed, alive = Holds(counters, clock), Holds(counters, clock)
        for holds in (killed, alive):
            await holds.count_in_new_slot()
            await counters.add(holds.place("streams", 1))
        assert await value_of(alive, counters) == 2
        # The first process is killed. The second goes on, and counts its hold in every new slot.
        seen: list[int] = []
        for _ in range(6):
            clock.now += SLOT / 2
            seen.append(await value_of(alive, counters))
        assert seen[0] == 2
        assert seen[-3:] == [1, 1, 1]
        await counters.add(alive.release("streams", 1))
        assert await value_of(alive, counters) == 0
        await killed.close()
        await alive.close()

    asyncio.run(run())


def test_holds_are_given_back_after_any_time() -> None:
    async def run() -> None:
        for later in (0, 1, SLOT, SLOT + 1, 2 * SLOT, 10 * SLOT, -SLOT):
            clock = Clock()
            counters = LocalState(clock)
            holds = Holds(counters, clock)
            await holds.count_in_new_slot()
            await counters.add(holds.place("streams", 5))
            clock.now += later
            await holds.count_in_new_slot()
            await counters.add(holds.release("streams", 5))
            seen: list[int] = []
            for _ in range(4):
                seen.append(await value_of(holds, counters))
                clock.now += SLOT
            # A clock that was set back may see a slot once more. That is over with the slot.
            assert seen == [0, 0, 0, 0] if later >= 0 else seen[-1] == 0
            await holds.close()

    asyncio.run(run())
