"""Orders the targets of a route by how reliable they were. Pure.

Only what was measured moves a target. Each target with enough answers has an interval for its true share of
good answers. A target comes before another one only if its whole interval is above the other's. Targets with
too few answers keep their places.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")

MIN_ANSWERS = 50
"""The fewest recent answers that say something: with 50, an interval is at most 27 percentage points wide."""
HALF_LIFE = 7
"""Days after which an answer counts half. Providers change their servers and models within weeks."""
WINDOW = 28
"""Days that count at all. An answer that is four half-lives old counts a sixteenth."""
Z95 = 1.959963984540054
"""The quantile of the normal distribution for intervals of 95 %."""


class Interval(NamedTuple):
    """Where a true share probably is. Both limits are in 0…1."""

    low: float
    high: float


def wilson(good: float, total: float, z: float = Z95) -> Interval:
    """Wilson's score interval for a share. Unlike the usual one, it is right for few samples and for 0 and 1.

    `total` must be above 0. Both numbers may be sums of weights.
    """
    share, square = good / total, z * z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = z / (1 + square / total) * math.sqrt(share * (1 - share) / total + square / (4 * total * total))
    # The limits of 0 and of all are exact. Rounding must not make them a little more or less.
    low = 0.0 if good <= 0 else max(0.0, middle - half)
    return Interval(low, 1.0 if good >= total else min(1.0, middle + half))


def percent(share: float) -> str:
    """A share for people. Only all is 100.0%, and only nothing is 0.0%."""
    return f"{share if share in (0, 1) else min(0.999, max(0.001, share)):.1%}"


class Rating(NamedTuple):
    """How many recent answers of a target were good. Older ones count less: these are no whole numbers."""

    good: float
    total: float

    @property
    def enough(self) -> bool:
        return self.total >= MIN_ANSWERS

    @property
    def sentence(self) -> str:
        """For a receipt."""
        if not self.enough:
            return f"too few recent answers to compare ({self.total:.0f} of {MIN_ANSWERS})"
        low, high = wilson(self.good, self.total)
        good = percent(self.good / self.total)
        return (
            f"{good} of {self.total:.0f} recent answers good, 95% interval {percent(low)} to {percent(high)}"
        )


UNKNOWN = Rating(0.0, 0.0)


def decayed(days: Iterable[tuple[int, int, int]], today: int) -> Rating:
    """The rating from counts by day: the day, its good answers, and all its answers."""
    good = total = 0.0
    for day, day_good, day_total in days:
        age = max(0, today - day)
        if age <= WINDOW:
            weight = 0.5 ** (age / HALF_LIFE)
            good, total = good + weight * day_good, total + weight * day_total
    return Rating(good, total)


def by_reliability(
    items: Sequence[Item], keys: Sequence[str], ratings: Mapping[str, Rating]
) -> list[tuple[Item, str]]:
    """`items` in the order to try them, each with the reason for its place. `keys` find their ratings."""
    rated = [ratings.get(key, UNKNOWN) for key in keys]
    places = [place for place, rating in enumerate(rated) if rating.enough]
    order = list(range(len(items)))
    for place, best in zip(places, _best_first(places, rated), strict=True):
        order[place] = best
    return [(items[place], rated[place].sentence) for place in order]


def _best_first(places: Sequence[int], rated: Sequence[Rating]) -> list[int]:
    """The first that nothing left is certainly better than, and so on. Doubt keeps the configured order."""
    intervals = {place: wilson(*rated[place]) for place in places}
    left = list(places)
    found: list[int] = []
    while left:
        highest = max(intervals[place].low for place in left)
        best = next(place for place in left if intervals[place].high >= highest)
        left.remove(best)
        found.append(best)
    return found
