"""Counters that are lost and come back: what was spent before is known to each, and counted once."""

import asyncio
from collections.abc import Sequence

import pytest

from dragoman.access.counters import LimitCounters
from dragoman.access.identity import Identity
from dragoman.access.limiter import Limiter, LimitReached
from dragoman.access.meters import Use
from dragoman.config.limits import UsageLimits, parse_budget
from dragoman.shared import LocalState, SharedStateError
from dragoman.store import Addition, Receipt, Store, StoreError, UsageQuery, UsageRow, open_store

NOW = 1_800_014_400.0
ANN = Identity(name="ann", role="user", limits=UsageLimits(budgets=(parse_budget("150 tokens/day"),)))


class Shared:
    """Counters on a server that can be stopped. It forgets all when it is started."""

    def __init__(self) -> None:
        self.state: LocalState | None = LocalState(lambda: NOW)

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        if self.state is None:
            raise SharedStateError("the server is gone")
        return await self.state.add(additions)


class Process:
    def __init__(self, shared: Shared, store: Store) -> None:
        self.passed = 0.0
        self.counters = LimitCounters(shared, lambda: NOW, lambda: self.passed)
        self.limiter = Limiter(self.counters, store, lambda: NOW)

    async def refused(self) -> str:
        """Why the next request is refused; empty if it runs. It uses nothing."""
        try:
            admission = await self.limiter.admit(self.limiter.meters(ANN), Use(10))
        except LimitReached as error:
            return error.message
        await self.limiter.settle(admission, Use())
        return ""


async def spent(store: Store, tokens: int, id: str = "r1") -> None:
    receipt = Receipt(id, NOW - 60, key="ann", input=tokens)
    await asyncio.wrap_future(store.add_receipts(lambda: [receipt]))


@pytest.fixture
def store() -> Store:
    return open_store(None, now=lambda: NOW)


def test_each_switch_keeps_what_was_spent(store: Store) -> None:
    async def scene() -> None:
        shared = Shared()
        found = [Process(shared, store) for _ in range(3)]
        await spent(store, 160)
        assert all(["160 tokens used" in await one.refused() for one in found])
        shared.state = None
        assert all(["160 tokens used" in await one.refused() for one in found])
        shared.state = LocalState(lambda: NOW)
        for one in found:
            one.counters.counters_were_reset()
            one.passed += 10
        # All at once: one of them counts, and the others wait for it.
        said = await asyncio.gather(*[one.refused() for one in found])
        assert all("160 tokens used" in why for why in said), said
        assert not any(one.counters.problem for one in found)
        for one in found:
            await one.limiter.close()
        await store.close()

    asyncio.run(scene())


def test_another_process_counts_if_the_first_cannot(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        """A store that cannot be read."""

        async def usage(self, query: UsageQuery) -> list[UsageRow]:
            raise StoreError("it is locked")

    async def scene() -> None:
        shared = Shared()
        await spent(store, 160)
        first, second = Process(shared, Broken()), Process(shared, store)  # type: ignore[arg-type]
        assert await first.refused() == ""  # requests go on, and the log says what is not counted
        assert "160 tokens used" in await second.refused()
        assert "160 tokens used" in await first.refused()
        for one in (first, second):
            await one.limiter.close()
        await store.close()

    asyncio.run(scene())
