"""A report of scores: for each target, shares with their intervals, failures, rules and times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ...model.errors import BadRequest
from ...routing.reliability import wilson
from ...store import ScoreQuery, ScoreRow, Store
from ..receipts.query import text_parameter
from ..receipts.score_counts import (
    ANSWER,
    ASKED,
    CALL,
    CALL_CLASSES,
    CANCELLED,
    FIRST_EVENT,
    FIRST_EVENT_LIMITS,
    GOOD,
    LATER,
    OK,
    POOR,
    QUALITY,
    REASK,
    RULE,
)
from ..usage import row_limit, time_parameter

DAY = 86_400
USUAL = "30d"


class Share(msgspec.Struct, frozen=True):
    """A part of something counted, with the interval in which the true share is, at 95 %."""

    count: int
    of: int
    share: float | None = None
    """None, like the limits, if nothing was counted."""
    low: float | None = None
    high: float | None = None


class FirstEvent(msgspec.Struct, frozen=True):
    """The time from the start of an attempt to the first content of its answer."""

    count: int
    half_within: float | None
    """Half of the answers began within so many seconds. None: nothing was counted, or it took longer."""
    nine_of_ten_within: float | None
    buckets: list[tuple[float | None, int]]
    """The upper end of each group of times in seconds, and how many were in it; None: later than all."""


class TargetScore(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one model of one upstream."""

    upstream: str
    model: str
    """The model's name at the upstream."""
    answers: int
    """Attempts, whatever came of them."""
    cancelled: int
    """Attempts that ended because the client left."""
    good: Share
    """Of the attempts that say something about the target: it did not fail, the client can use every call,
    and no call had to be asked for again."""
    failures: dict[str, int]
    """Failed attempts by kind, the most frequent first."""
    calls: dict[str, Share]
    """Tool calls by how they came from the model."""
    rules: dict[str, int]
    """Calls that each rule mended, the most frequent first."""
    reasked: Share
    """Of the complete answers: those whose model had to repeat calls."""
    first_event: FirstEvent

    @property
    def target(self) -> str:
        return f"{self.upstream}/{self.model}"

    @property
    def total_calls(self) -> int:
        return self.calls[CALL_CLASSES[0]].of


class ScoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a question for scores."""

    since: float
    until: float
    rows: list[TargetScore]
    """The targets with the most answers first."""
    more: int
    """Targets that are left out of `rows`."""


class ScoreRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A question for scores."""

    query: ScoreQuery
    limit: int


def parse(query: Mapping[str, str], now: float) -> ScoreRequest:
    """Read the parameters of `GET /scores`. Raises BadRequest with the name of a wrong one."""
    since = max(0.0, time_parameter(query.get("since") or USUAL, "since", now))
    until = time_parameter(query["until"], "until", now) if query.get("until") else now
    if until <= since:
        raise BadRequest("until must be later than since")
    since -= since % DAY  # counts are kept by the day
    upstream, model = (text_parameter(query, name) for name in ("upstream", "model"))
    wanted = ScoreQuery(since=since, until=until, upstream=upstream, model=model)
    return ScoreRequest(query=wanted, limit=row_limit(query))


async def report(store: Store, wanted: ScoreRequest) -> ScoreReport:
    """Ask the store for the counts."""
    query = wanted.query
    by_target: dict[tuple[str, str], list[ScoreRow]] = {}
    for row in await store.scores(query):
        by_target.setdefault((row.upstream, row.model), []).append(row)
    scores = [_score(*target, rows) for target, rows in by_target.items()]
    scores.sort(key=lambda one: (-one.answers, one.upstream, one.model))
    shown = scores[: wanted.limit]
    return ScoreReport(since=query.since, until=query.until, rows=shown, more=len(scores) - len(shown))


def _score(upstream: str, model: str, rows: Iterable[ScoreRow]) -> TargetScore:
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        counts.setdefault(row.kind, {})[row.name] = row.count
    answers, quality, calls = (counts.get(kind, {}) for kind in (ANSWER, QUALITY, CALL))
    good, total = quality.get(GOOD, 0), quality.get(GOOD, 0) + quality.get(POOR, 0)
    called = sum(calls.get(name, 0) for name in CALL_CLASSES)
    return TargetScore(
        upstream=upstream,
        model=model,
        answers=sum(answers.values()),
        cancelled=answers.get(CANCELLED, 0),
        good=share(good, total),
        failures=_most_first({k: n for k, n in answers.items() if k not in (OK, CANCELLED)}),
        calls={name: share(calls.get(name, 0), called) for name in CALL_CLASSES},
        rules=_most_first(counts.get(RULE, {})),
        reasked=_reasked(counts.get(REASK, {}).get(ASKED, 0), answers),
        first_event=_first_event(counts.get(FIRST_EVENT, {})),
    )


def share(count: int, of: int) -> Share:
    if not of:
        return Share(count, of)
    low, high = wilson(count, of)
    return Share(count, of, count / of, low, high)


def _reasked(asked: int, answers: Mapping[str, int]) -> Share:
    """A failure may follow a repetition: then there are more repetitions than complete answers."""
    return share(asked, max(asked, answers.get(OK, 0)))


def _most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _first_event(counts: Mapping[str, int]) -> FirstEvent:
    buckets: list[tuple[float | None, int]] = [
        (float(limit), counts.get(f"{limit:g}", 0)) for limit in FIRST_EVENT_LIMITS
    ]
    buckets.append((None, counts.get(LATER, 0)))
    total = sum(count for _, count in buckets)
    return FirstEvent(total, _within(buckets, 0.5 * total), _within(buckets, 0.9 * total), buckets)


def _within(buckets: list[tuple[float | None, int]], wanted: float) -> float | None:
    """The first limit within which at least `wanted` of the times are."""
    reached = 0
    for limit, count in buckets:
        reached += count
        if reached and reached >= wanted:
            return limit
    return None
