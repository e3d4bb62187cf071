"""Count what one exchange adds to the scores of the targets that it tried.

The kinds of counts, and what is counted once:

- `answer`: each attempt, by how it ended: `ok`, `cancelled`, or the kind of failure;
- `quality`: each attempt that says something about its target: `good` or `poor`;
- `call`: each tool call, by how it came from the model (`CALL_CLASSES`);
- `rule`: each call that the rule mended;
- `reask`: each attempt whose model had to repeat calls;
- `first_event`: each attempt with content, by the time from its start to the first content.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

from ...routing.health import TARGET_SPECIFIC, TRANSIENT
from ...store import ScoreCount
from ...tools.receipts import CallReceipt
from ..tap import AttemptTrack, Track

ANSWER, QUALITY, CALL, RULE, REASK, FIRST_EVENT = (
    "answer", "quality", "call", "rule", "reask", "first_event",
)  # fmt: skip
GOOD, POOR, ASKED = "good", "poor", "asked"
OK, CANCELLED = "ok", "cancelled"

CALL_CLASSES = ("valid", "mended", "leaked", "invalid", "invented", "ghost", "duplicate", "cut")
"""How a call came. Each call is in one class, so that the shares add up to all calls."""
UNUSABLE = frozenset({"invalid", "invented", "cut"})
"""Classes of calls that the client cannot use."""
FIRST_EVENT_LIMITS = (0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120)
"""Seconds: the upper limits of the buckets. Each is at most twice the one before, for a fair median."""
LATER = "later"
_LIMIT_NAMES = (*(f"{limit:g}" for limit in FIRST_EVENT_LIMITS), LATER)
_ITS_FAULT = frozenset(kind.value for kind in TRANSIENT | TARGET_SPECIFIC)
"""Failures that count against the target. Others are the client's mistakes, or the client left."""
_RUN_ELSEWHERE = frozenset({"server-side", "searched"})
_DROPPED_AS = {"ghost": "ghost", "duplicate": "duplicate", "cut": "cut", "unreadable": "invalid"}
"""The class of a dropped call, by the reason."""


def call_class(receipt: CallReceipt) -> str | None:
    """How a call came from the model. None: it was no call for the client, so nothing checked it.

    The provider or Dragoman ran such a call: a web search.
    """
    dropped = receipt.dropped
    if dropped in _RUN_ELSEWHERE:
        return None
    if dropped in _DROPPED_AS:
        return _DROPPED_AS[dropped]
    wrong = "invalid" if receipt.offered else "invented"
    if dropped == "reasked" and not receipt.complete:
        # An answer that was cut is not asked for again. Without problems, this is a search beside the call.
        return wrong if receipt.problems else None
    if not receipt.complete:
        return "cut"
    if receipt.problems:
        return wrong
    if receipt.recovered is not None:
        return "leaked"
    return "mended" if receipt.rules else "valid"


def score_counts(track: Track) -> tuple[ScoreCount, ...]:
    """What a finished exchange adds."""
    if not track.attempts:
        return ()
    last = track.attempts[-1]
    # An answer that another attempt replaced was never shown: only the calls of the last one are known.
    answering = last if last.translated else _last_translated(track.attempts)
    counts: list[ScoreCount] = []
    for attempt in track.attempts:
        ended = track.outcome if attempt is last else OK
        found = _attempt(attempt, ended, track.receipts if attempt is answering else ())
        counts += [_count(attempt.choice.key, kind, name) for kind, name in found]
    return tuple([count for count in counts if count.model])  # a request about files names no model


def _last_translated(attempts: Sequence[AttemptTrack]) -> AttemptTrack | None:
    return next((one for one in reversed(attempts) if one.translated), None)


@lru_cache(1024)
def _count(target: str, kind: str, name: str) -> ScoreCount:
    """One occurrence. Cached: most exchanges count the same few things, and making them takes longer."""
    upstream, _, model = target.partition("/")
    return ScoreCount(upstream, model, kind, name, 1)


def _attempt(attempt: AttemptTrack, ended: str, calls: Sequence[CallReceipt]) -> list[tuple[str, str]]:
    """The kind and the name of each count. `ended`: how it ended if it has no failure of its own."""
    outcome = ended if attempt.failure is None else attempt.failure.kind.value
    found = [(ANSWER, outcome)]
    reasked = poor = False
    for receipt in calls:
        came = call_class(receipt)
        if came is None:
            continue
        found.append((CALL, came))
        found += [(RULE, rule) for rule in dict.fromkeys(receipt.rules)]
        poor |= came in UNUSABLE
        reasked |= receipt.dropped == "reasked"
    if reasked:
        found.append((REASK, ASKED))
    if outcome == OK:
        found.append((QUALITY, POOR if poor or reasked else GOOD))
    elif outcome in _ITS_FAULT:
        found.append((QUALITY, POOR))
    if attempt.first_event is not None:
        found.append((FIRST_EVENT, _LIMIT_NAMES[bisect_left(FIRST_EVENT_LIMITS, attempt.first_event)]))
    return found
