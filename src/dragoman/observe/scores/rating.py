"""The ratings of targets, from the counts of recent days."""

from __future__ import annotations

from collections.abc import Mapping

from ...routing.reliability import WINDOW, Rating, decayed
from ...store import ScoreQuery, Store
from ..receipts.score_counts import GOOD, POOR, QUALITY

_DAY = 86_400


async def ratings(store: Store, now: float) -> Mapping[str, Rating]:
    """How many recent answers of each target were good, by `upstream/model`."""
    today = int(now // _DAY)
    rows = await store.scores(ScoreQuery(since=(today - WINDOW) * _DAY, by_day=True))
    days: dict[str, list[tuple[int, int, int]]] = {}
    for row in rows:
        if row.kind == QUALITY and row.name in (GOOD, POOR):
            good = row.count if row.name == GOOD else 0
            days.setdefault(f"{row.upstream}/{row.model}", []).append((row.day, good, row.count))
    return {target: decayed(counted, today) for target, counted in days.items()}
