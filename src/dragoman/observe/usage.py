"""Usage: sums over exchanges, by key, team, model, upstream, session or time, and over time."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast, get_args

import msgspec

from ..model.errors import BadRequest
from ..store import Store, UsageGroup, UsageQuery, UsageRow
from .receipts.query import text_parameter
from .times import point_in_time

Step = Literal["day", "hour"]
_STEPS: dict[Step, int] = {"day": 86_400, "hour": 3_600}
GROUPS: tuple[UsageGroup, ...] = get_args(UsageGroup)
FILTERS = ("key", "team", "model", "upstream", "session")
ORDERS: dict[str, Callable[[UsageRow], int]] = {
    "cost": lambda row: row.micros,
    "tokens": lambda row: row.input + row.output,
    "requests": lambda row: row.requests,
    "failed": lambda row: row.failed,
    "mended": lambda row: row.mended,
}
"""The sort key of each order."""
_LISTED = 100
_MAX_LISTED = 10_000
MAX_SERIES = 6
"""Groups with a line of their own over time. A plot has no more distinguishable colours."""
_MAX_STEPS = 1000


class Sums(msgspec.Struct, frozen=True):
    """The sums of one group, or of all."""

    group: str
    requests: int
    failed: int
    input: int
    """Tokens of the whole prompt, including `cached`."""
    cached: int
    output: int
    reasoning: int
    cost: float | None
    """US dollars of the requests whose price is known; None if none of them has a known price."""
    unpriced: int
    """Requests whose price is unknown. Their cost is not in `cost`."""
    calls: int
    mended: int
    invalid: int


class Series(msgspec.Struct, frozen=True):
    """One group over time: its sums at each of the report's times. Times without requests are left out."""

    group: str
    points: list[Sums]


class UsageReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a question for usage."""

    by: UsageGroup
    since: float
    until: float
    rows: list[Sums]
    more: int
    """Groups that are left out of `rows`."""
    total: Sums
    over: Step | None = None
    total_series: list[Sums] = []
    """All groups together, over time."""
    series: list[Series] = []
    """The first groups of `rows`, over time."""


class UsageRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question for usage: which sums, whether over time, and how many rows."""

    query: UsageQuery
    order: str = "cost"
    over: Step | None = None
    limit: int = _LISTED


async def report(store: Store, wanted: UsageRequest) -> UsageReport:
    """Ask the store for the sums."""
    query = wanted.query
    (total,) = [*await store.usage(msgspec.structs.replace(query, by="all")), UsageRow(group="all")][:1]
    rows = _sorted(await store.usage(query), query.by, wanted.order)
    found = UsageReport(
        by=query.by,
        since=query.since,
        until=query.until,
        rows=[_sums(row) for row in rows[: wanted.limit]],
        more=max(0, len(rows) - wanted.limit),
        total=_sums(total),
    )
    if wanted.over is None:
        return found
    first = rows[:MAX_SERIES] if query.by in FILTERS else []
    return msgspec.structs.replace(
        found,
        over=wanted.over,
        total_series=await _points(store, query, wanted.over),
        series=[Series(row.group, await _of(store, query, row.group, wanted.over)) for row in first],
    )


async def _of(store: Store, query: UsageQuery, group: str, over: Step) -> list[Sums]:
    return await _points(store, msgspec.structs.replace(query, **{query.by: group}), over)


async def _points(store: Store, query: UsageQuery, over: Step) -> list[Sums]:
    rows = await store.usage(msgspec.structs.replace(query, by=over))
    return [_sums(row) for row in _sorted(rows, over)]


def _sorted(rows: Sequence[UsageRow], by: UsageGroup, order: str = "cost") -> list[UsageRow]:
    """Times in their order; other groups with the most first."""
    if by in _STEPS:
        return sorted(rows, key=lambda row: row.group)
    keys = (ORDERS[order], *ORDERS.values())
    return sorted(rows, key=lambda row: (*(-key(row) for key in keys), row.group))


def _sums(row: UsageRow) -> Sums:
    priced = row.unpriced < row.requests or not row.requests
    return Sums(
        row.group,
        row.requests,
        row.failed,
        row.input,
        row.cached,
        row.output,
        row.reasoning,
        row.cost if priced else None,
        row.unpriced,
        row.calls,
        row.mended,
        row.invalid,
    )


def parse(query: Mapping[str, str], now: float, usual: str = "7d") -> UsageRequest:
    """Read the parameters of `GET /usage`. Raises BadRequest with the name of a wrong one."""
    by = _one_of(query, "by", GROUPS) or "model"
    over = cast(Step | None, _one_of(query, "over", tuple(_STEPS)))
    since = max(0.0, time_parameter(query.get("since") or usual, "since", now))
    until = time_parameter(query["until"], "until", now) if query.get("until") else now
    if until <= since:
        raise BadRequest("until must be later than since")
    step = over or (by if by in _STEPS else "hour")
    size = _STEPS[step]
    since -= since % size  # sums are kept by the hour, and half a day would look like a bad day
    if over is not None and (until - since) / size > _MAX_STEPS:
        raise BadRequest(f"over={over} gives more than {_MAX_STEPS} points: choose a later since")
    filters = {name: text_parameter(query, name) for name in FILTERS}
    return UsageRequest(
        query=UsageQuery(by=cast(UsageGroup, by), since=since, until=until, **filters),
        order=_one_of(query, "order", tuple(ORDERS)) or "cost",
        over=over,
        limit=row_limit(query),
    )


def time_parameter(text: str, name: str, now: float) -> float:
    """The time of the parameter `name`, in seconds since the epoch. Raises BadRequest."""
    with contextlib.suppress(ValueError):
        number = float(text)
        if math.isfinite(number):
            return number
    found = point_in_time(text, now, utc=True)
    if found is None:
        raise BadRequest(
            f"{name} must be a time ago such as 24h or 7d, or a date such as 2026-05-31, not {text[:40]!r}"
        )
    return found


def _one_of(query: Mapping[str, str], name: str, known: Sequence[str]) -> str | None:
    value = query.get(name)
    if not value:
        return None
    if value not in known:
        raise BadRequest(f"{name} must be one of {', '.join(known)}, not {value[:40]!r}")
    return value


def row_limit(query: Mapping[str, str]) -> int:
    """The parameter `limit`: how many rows to give. Raises BadRequest."""
    text = query.get("limit") or str(_LISTED)
    if not text.isdecimal() or len(text) > 9:
        raise BadRequest(f"limit must be a number, not {text[:40]!r}")
    return max(1, min(_MAX_LISTED, int(text)))
