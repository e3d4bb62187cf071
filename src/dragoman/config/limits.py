"""Limits of a key or a team: the values, and how a config or a command line writes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

Unit = Literal["money", "tokens"]
Period = Literal["day", "month"]

MICRO = 1_000_000
"""Money is counted in millionths of a US dollar: sums of whole numbers are exact."""

_SCALE = {"": 1, "k": 1_000, "m": 1_000_000, "b": 1_000_000_000}
_SECONDS = {"min": 60, "hour": 3600, "day": 86_400}
_SPELLINGS = {"minute": "min", "m": "min", "h": "hour", "d": "day", "mo": "month"}
_AMOUNT = r"(\d+(?:\.\d+)?)\s*([kKmMbB]?)"
_RATE = re.compile(rf"{_AMOUNT}\s*/\s*([a-z]+)")
_BUDGET = re.compile(rf"(\$?)\s*{_AMOUNT}\s*(tokens?|usd)?\s*/\s*([a-z]+)", re.IGNORECASE)


class Rate(msgspec.Struct, frozen=True):
    """At most this many in each window of the clock. A window starts with the minute, hour or day (UTC)."""

    most: int
    seconds: int

    def __str__(self) -> str:
        period = next(name for name, seconds in _SECONDS.items() if seconds == self.seconds)
        return f"{_shown(self.most)}/{period}"


class Budget(msgspec.Struct, frozen=True):
    """At most this much money, or this many tokens, in each day or month (UTC)."""

    most: int
    """In tokens, or in millionths of a US dollar."""
    unit: Unit
    period: Period

    def __str__(self) -> str:
        if self.unit == "money":
            return f"${self.most / MICRO:.10g}/{self.period}"
        return f"{_shown(self.most)} tokens/{self.period}"


class UsageLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one key or one team may use. Without a value, there is no limit."""

    rate: Rate | None = None
    """Requests."""
    tokens: Rate | None = None
    streams: int | None = None
    """Requests at the same time."""
    budgets: tuple[Budget, ...] = ()

    def __bool__(self) -> bool:
        return self != NO_LIMITS

    def shown(self) -> list[str]:
        """Each limit as a config would write it."""
        found = [f"{budget}" for budget in self.budgets]
        if self.rate is not None:
            found.append(f"{self.rate.most} requests/{str(self.rate).partition('/')[2]}")
        if self.tokens is not None:
            found.append(str(self.tokens).replace("/", " tokens/"))
        if self.streams is not None:
            found.append(f"{self.streams} at once")
        return found


NO_LIMITS = UsageLimits()


def parse_rate(text: str) -> Rate:
    """
    >>> parse_rate("60/min"), str(parse_rate("200k / minute"))
    (Rate(most=60, seconds=60), '200k/min')
    """
    found = _RATE.fullmatch(text.strip())
    period = _period(found[3]) if found else ""
    if found is None or period not in _SECONDS:
        raise ValueError('must be a number per min, hour or day, such as "60/min" or "200k/min"')
    return Rate(_whole(float(found[1]) * _SCALE[found[2].lower()]), _SECONDS[period])


def parse_budget(text: str) -> Budget:
    """
    >>> str(parse_budget("50/month")), str(parse_budget("2M tokens/day"))
    ('$50/month', '2M tokens/day')
    """
    found = _BUDGET.fullmatch(text.strip())
    period = _period(found[5]) if found else ""
    if found is None or period not in ("day", "month"):
        raise ValueError('must be US dollars or tokens per day or month, such as "50/month", "2M tokens/day"')
    dollars, amount, scale, unit = found[1], float(found[2]), _SCALE[found[3].lower()], found[4] or ""
    if unit.lower().startswith("token"):
        if dollars:
            raise ValueError("must be dollars or tokens, not both")
        return Budget(_whole(amount * scale), "tokens", period)
    return Budget(_positive(amount * scale * MICRO), "money", period)


def one_per_period(budgets: Sequence[Budget]) -> tuple[Budget, ...]:
    """The budgets. Two for the same unit and period would contradict each other."""
    kinds = [(budget.unit, budget.period) for budget in budgets]
    if len(kinds) != len(set(kinds)):
        raise ValueError("has two budgets of the same kind for the same period: keep one")
    return tuple(budgets)


def _period(word: str) -> str:
    return _SPELLINGS.get(word.lower(), word.lower())


def _whole(amount: float) -> int:
    if abs(amount - round(amount)) > 1e-6:
        raise ValueError(f"must be a whole number, not {amount:g}: a window counts whole ones")
    return _positive(amount)


def _positive(amount: float) -> int:
    number = round(amount)
    if not 0 < number < 2**53:
        raise ValueError("must be more than 0, and a number that can be counted")
    return number


def _shown(number: int) -> str:
    for suffix, scale in (("B", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)):
        if number >= scale and number % (scale // 10) == 0:
            return f"{number / scale:g}{suffix}"
    return str(number)
