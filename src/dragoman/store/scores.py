"""Counts for scores, by the day: the part that every engine shares.

Each write of receipts adds their counts to the table `scores` in the same transaction. It has one row for
each day, upstream, model and thing that is counted, so it stays small and a report never reads receipts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from .types import Receipt, ScoreQuery, ScoreRow

DAY = 86_400
GROUPS = ("day", "upstream", "model", "kind", "name")
"""The columns that identify a row."""
_NEVER = 1 << 40


def day_of(at: float) -> int:
    """The number of the day of UTC, counted from the epoch."""
    return int(at // DAY)


def sums(receipts: Iterable[Receipt]) -> list[tuple[Any, ...]]:
    """Rows to add to the table, in the order of their groups."""
    found: dict[tuple[Any, ...], int] = {}
    for receipt in receipts:
        day = day_of(receipt.at)
        for *group, count in receipt.scores:
            key = (day, *group)
            found[key] = found.get(key, 0) + count
    return [(*group, found[group]) for group in sorted(found)]


def statement(query: ScoreQuery, schema: str = "") -> tuple[str, list[Any]]:
    """The SQL of a query, with `?` for each value. `schema` goes before the name of the table."""
    conditions = ["day >= ?", "day < ?"]
    values: list[Any] = [_bound(query.since, math.floor), _bound(query.until, math.ceil)]
    for name in ("upstream", "model"):
        if (wanted := getattr(query, name)) is not None:
            conditions.append(f"{name} = ?")
            values.append(wanted)
    groups = ", ".join(GROUPS if query.by_day else GROUPS[1:])
    day = "" if query.by_day else "0, "
    where = " AND ".join(conditions)
    return (
        f"SELECT {day}{groups}, CAST(sum(count) AS BIGINT) FROM {schema}scores WHERE {where} "
        f"GROUP BY {groups} ORDER BY {groups}",
        values,
    )


def _bound(seconds: float, whole: Any) -> int:
    """The day of a limit in time, which may be infinite."""
    return whole(max(-_NEVER, min(_NEVER, seconds / DAY)))


def rows(found: Iterable[Sequence[Any]]) -> list[ScoreRow]:
    return [ScoreRow(*row) for row in found]
