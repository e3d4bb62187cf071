"""Count requests, tokens, running requests and spending against limits."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec

from ..config.limits import MICRO, Budget, Rate, UsageLimits
from ..store import Addition, UsageQuery
from .holds import Holds
from .identity import Identity
from .periods import Window, period, window

_SOON = 5.0
"""Seconds after which a client should try again if running requests hold what it needs."""


class Use(NamedTuple):
    """What a request uses, or may use."""

    tokens: int = 0
    micros: int | None = 0
    """Millionths of a US dollar; None if the price is unknown."""


class Level(NamedTuple):
    """How far a limit is used, before the request that asks."""

    used: int
    most: int
    resets: float
    """Seconds since the epoch."""
    under_way: bool = False
    """Would there be room if the running requests were over?"""

    @property
    def reached(self) -> bool:
        return self.used >= self.most


class Meter(Protocol):
    """One limit of one key or team."""

    @property
    def owner(self) -> str:
        """`key NAME` or `team NAME`."""
        ...

    @property
    def shown(self) -> str:
        """The limit in words."""
        ...

    def reserve(self, now: float, use: Use, holds: Holds) -> list[Addition]:
        """Additions that count a request which may use `use`."""
        ...

    def level(self, now: float, use: Use, values: list[int]) -> Level:
        """The level, from the new values of the counters of `reserve`."""
        ...

    def settle(self, begun: float, now: float, use: Use, actual: Use | None, holds: Holds) -> list[Addition]:
        """Additions that replace `use` by what was used in fact. None: the request is refused."""
        ...


class RateMeter(msgspec.Struct, frozen=True):
    """Requests or tokens in a window of the clock."""

    owner: str
    what: str
    """`requests`, `tokens`, or `token counts`: requests that only count tokens."""
    rate: Rate

    @property
    def shown(self) -> str:
        return f"{str(self.rate).replace('/', f' {self.what}/')}"

    def reserve(self, now: float, use: Use, holds: Holds) -> list[Addition]:
        return [self._addition(now, self._amount(use))]

    def level(self, now: float, use: Use, values: list[int]) -> Level:
        return Level(values[0] - self._amount(use), self.rate.most, window(now, self.rate.seconds).ends)

    def settle(self, begun: float, now: float, use: Use, actual: Use | None, holds: Holds) -> list[Addition]:
        left = 0 if actual is None else self._amount(actual)
        if left == self._amount(use) or window(begun, self.rate.seconds).ends <= now:
            return []  # the window is over, and its counter is no longer read
        return [self._addition(begun, left - self._amount(use))]

    def _amount(self, use: Use) -> int:
        return use.tokens if self.what == "tokens" else 1

    def _addition(self, now: float, amount: int) -> Addition:
        at = window(now, self.rate.seconds)
        return Addition(f"{self.owner}:{self.what}:{at.name}", amount, at.ends)


class StreamMeter(msgspec.Struct, frozen=True):
    """Requests at the same time."""

    owner: str
    most: int

    @property
    def shown(self) -> str:
        return f"{self.most} requests at once"

    @property
    def _name(self) -> str:
        return f"{self.owner}:streams"

    def reserve(self, now: float, use: Use, holds: Holds) -> list[Addition]:
        return holds.place(self._name, 1)

    def level(self, now: float, use: Use, values: list[int]) -> Level:
        return Level(values[0] - 1, self.most, now + 1, under_way=True)

    def settle(self, begun: float, now: float, use: Use, actual: Use | None, holds: Holds) -> list[Addition]:
        return holds.release(self._name, 1)


class BudgetMeter(msgspec.Struct, frozen=True):
    """Money or tokens in a day or month: what is spent, and what running requests reserve."""

    owner: str
    budget: Budget

    @property
    def shown(self) -> str:
        return str(self.budget)

    @property
    def _hold(self) -> str:
        return f"{self.owner}:reserved {self.budget.unit}"

    def window(self, now: float) -> Window:
        return period(now, self.budget.period)

    def spent(self, now: float, amount: int) -> Addition:
        """Adds to what is spent in the day or month of `now`."""
        at = self.window(now)
        return Addition(f"{self.owner}:spent {self.budget.unit}:{at.name}", amount, at.ends)

    def query(self, now: float) -> UsageQuery:
        """What receipts say was spent in the day or month of `now`."""
        kind, _, name = self.owner.partition(" ")
        since = self.window(now).begins
        return UsageQuery(since=since, key=name) if kind == "key" else UsageQuery(since=since, team=name)

    def reserve(self, now: float, use: Use, holds: Holds) -> list[Addition]:
        return [self.spent(now, 0), *holds.place(self._hold, self._amount(use))]

    def level(self, now: float, use: Use, values: list[int]) -> Level:
        spent, reserved = values[0], max(0, values[1] - self._amount(use))
        if spent < self.budget.most <= spent + reserved:
            return Level(spent + reserved, self.budget.most, now + _SOON, under_way=True)
        return Level(spent + reserved, self.budget.most, self.window(now).ends)

    def settle(self, begun: float, now: float, use: Use, actual: Use | None, holds: Holds) -> list[Addition]:
        released = holds.release(self._hold, self._amount(use))
        amount = 0 if actual is None else self._amount(actual)
        return [self.spent(now, amount), *released] if amount else released

    def _amount(self, use: Use) -> int:
        return use.tokens if self.budget.unit == "tokens" else use.micros or 0

    def words(self, amount: int) -> str:
        """An amount of this budget, in words."""
        return f"${amount / MICRO:.4f}" if self.budget.unit == "money" else f"{amount} tokens"


def meters(identity: Identity) -> tuple[Meter, ...]:
    """All limits of a key and of its team."""
    owners = [(f"key {identity.name}", identity.limits)] if identity.name else []
    if identity.team:
        owners.append((f"team {identity.team}", identity.team_limits))
    return tuple(meter for owner, limits in owners for meter in _meters_of(owner, limits))


def _meters_of(owner: str, limits: UsageLimits) -> list[Meter]:
    found: list[Meter] = [BudgetMeter(owner, budget) for budget in limits.budgets]
    if limits.rate is not None:
        found.append(RateMeter(owner, "requests", limits.rate))
    if limits.tokens is not None:
        found.append(RateMeter(owner, "tokens", limits.tokens))
    if limits.streams is not None:
        found.append(StreamMeter(owner, limits.streams))
    return found
