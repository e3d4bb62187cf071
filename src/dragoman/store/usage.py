"""Sums over receipts, by the hour: the part that every engine shares.

Each write of receipts adds them to two tables in the same transaction. `usage` has one row for each hour,
key, team, model and upstream, so it stays small and a report never reads receipts. `usage_by_session` has one
more column, the session. If every request is a conversation of its own, it has as many rows as there are
receipts. So only questions about sessions read it, and it is kept no longer than receipts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from .types import Receipt, UsageQuery, UsageRow

HOUR = 3600
GROUPS = ("hour", "key", "team", "model", "upstream")
"""The columns that identify a row of `usage`."""
SESSION_GROUPS = (*GROUPS, "session")
SUMS = UsageRow.__struct_fields__[1:]
_NEVER = 1 << 40

_EXPRESSIONS = {"all": "''", "day": "hour / 24"}


def hour_of(at: float) -> int:
    """The number of the hour, counted from the epoch."""
    return int(at // HOUR)


def sums(receipts: Iterable[Receipt], groups: Sequence[str]) -> list[tuple[Any, ...]]:
    """Rows to add to the table with these `groups`, in the order of the groups."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for receipt in receipts:
        group = (hour_of(receipt.at), *(getattr(receipt, name) for name in groups[1:]))
        row = found.setdefault(group, [0] * len(SUMS))
        for place, value in enumerate(_values(receipt)):
            row[place] += value
    # Every process writes in this order: two that add to the same rows in PostgreSQL cannot block each other.
    return [(*group, *found[group]) for group in sorted(found)]


def _values(receipt: Receipt) -> tuple[int, ...]:
    """What one receipt adds to each of `SUMS`."""
    return (
        1,
        receipt.failed,
        receipt.input,
        receipt.output,
        receipt.cached,
        receipt.reasoning,
        receipt.micros or 0,
        int(receipt.micros is None),
        receipt.calls,
        receipt.mended,
        receipt.invalid,
    )


def statement(query: UsageQuery, schema: str = "") -> tuple[str, list[Any]]:
    """The SQL of a query, with `?` for each value. `schema` goes before the name of a table."""
    conditions = ["hour >= ?", "hour < ?"]
    values: list[Any] = [_bound(query.since, math.floor), _bound(query.until, math.ceil)]
    for name in ("key", "team", "model", "upstream", "session"):
        if (wanted := getattr(query, name)) is not None:
            conditions.append(f"{name} = ?")
            values.append(wanted)
    by_session = query.by == "session" or query.session is not None
    table = "usage_by_session" if by_session else "usage"
    group = _EXPRESSIONS.get(query.by, query.by)
    columns = ", ".join(f"CAST(sum({name}) AS BIGINT)" for name in SUMS)
    where = " AND ".join(conditions)
    return f"SELECT {group}, {columns} FROM {schema}{table} WHERE {where} GROUP BY 1 ORDER BY 1", values


def _bound(seconds: float, whole: Any) -> int:
    """The hour of a limit in time, which may be infinite."""
    return whole(max(-_NEVER, min(_NEVER, seconds / HOUR)))


def rows(query: UsageQuery, found: Iterable[Sequence[Any]]) -> list[UsageRow]:
    """What the engine found, with names for days and hours."""
    return [UsageRow(_label(query, group), *values) for group, *values in found]


def _label(query: UsageQuery, group: Any) -> str:
    if query.by not in ("day", "hour"):
        return group
    seconds, form = (24 * HOUR, "%Y-%m-%d") if query.by == "day" else (HOUR, "%Y-%m-%dT%H")
    try:
        return datetime.fromtimestamp(int(group) * seconds, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        return str(group)  # a clock that was wrong by thousands of years
