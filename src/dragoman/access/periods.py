"""Windows of the clock (UTC) in which limits count, and how their ends are shown."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from ..config.limits import Period

_DAY = 86_400


class Window(NamedTuple):
    """A period with its own counter."""

    name: str
    begins: float
    ends: float
    """Seconds since the epoch."""


def window(now: float, seconds: int) -> Window:
    """The minute, hour or day of `now`."""
    return _window(int(now // seconds), seconds)


@lru_cache(maxsize=64)
def _window(index: int, seconds: int) -> Window:
    return Window(f"{seconds}s{index}", float(index * seconds), float((index + 1) * seconds))


def period(now: float, length: Period) -> Window:
    """The day or month of `now`.

    >>> period(0.0, "month")
    Window(name='1970-01', begins=0.0, ends=2678400.0)
    """
    return _period(int(now // _DAY), length)


@lru_cache(maxsize=64)
def _period(number: int, length: Period) -> Window:
    day = datetime.fromtimestamp(number * _DAY, UTC)
    if length == "day":
        return Window(f"{day:%Y-%m-%d}", day.timestamp(), day.timestamp() + _DAY)
    first = day.replace(day=1)
    following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return Window(f"{first:%Y-%m}", first.timestamp(), following.timestamp())


def shown_time(at: float) -> str:
    """
    >>> shown_time(0.0)
    '1970-01-01T00:00:00Z'
    """
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
