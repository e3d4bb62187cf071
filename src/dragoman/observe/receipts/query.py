"""Find exchanges: those in memory (running, or not written yet) and those in the store, as one list."""

from __future__ import annotations

import base64
import binascii
import contextlib
import math
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import msgspec

from ...model.errors import BadRequest
from ...store import ReceiptQuery, Store
from ..tap import Track
from .summary import ExchangeSummary, summary

USUAL = 100
MOST = 1000
MAX_WORDS = 32
"""The most words in `q`. Each is one more SQL condition."""
_LONGEST = 1000  # characters in one parameter
_YES = frozenset({"1", "true", "yes"})
_NO = frozenset({"", "0", "false", "no"})


def parse_query(query: Mapping[str, str]) -> ReceiptQuery:
    """Parse the query string of `GET /exchanges`. Raises BadRequest with the name of a wrong parameter."""
    status = text_parameter(query, "status")
    by_number = status is not None and status.isdecimal()
    return ReceiptQuery(
        since=number_parameter(query, "since") or 0.0,
        before=number_parameter(query, "before") or float("inf"),
        after=cursor_parameter(query),
        client=text_parameter(query, "client"),
        profile=text_parameter(query, "profile"),
        key=text_parameter(query, "key"),
        team=text_parameter(query, "team"),
        upstream=text_parameter(query, "upstream"),
        session=text_parameter(query, "session"),
        model=text_parameter(query, "model"),
        outcome=None if by_number else status,
        status=_status(status) if status and by_number else None,
        rule=text_parameter(query, "rule"),
        slow=number_parameter(query, "slow"),
        failed=_flag(query, "failed"),
        mended=_flag(query, "mended"),
        words=_words(query),
        limit=max(1, min(MOST, int(number_parameter(query, "limit") or USUAL))),
    )


class Page(msgspec.Struct, frozen=True):
    """Some exchanges, newest first, and the cursor of the next page."""

    exchanges: list[ExchangeSummary]
    next: str | None
    lost: int = 0
    """Receipts that could not be written since the gateway started: the list has gaps."""


async def find(wanted: ReceiptQuery, tracks: Iterable[Track], store: Store) -> Page:
    """One page of matching exchanges. `tracks` are those in memory: they are newer than the store's."""
    here = [summary(track) for track in tracks]
    found = {entry.id: entry for entry in here if matches(entry, wanted)}
    known = {entry.id for entry in here}
    rows = await store.receipts(msgspec.structs.replace(wanted, limit=wanted.limit + 1))
    for row in rows:
        if row.id not in known:
            found[row.id] = msgspec.json.decode(row.summary, type=ExchangeSummary)
    newest = sorted(found.values(), key=lambda entry: (entry.at, entry.id), reverse=True)
    page = newest[: wanted.limit]
    more = len(newest) > wanted.limit
    return Page(page, page_end(page[-1].at, page[-1].id) if more else None)


def matches(entry: ExchangeSummary, wanted: ReceiptQuery) -> bool:
    """Does an exchange in memory match? The store does the same with SQL."""
    exact = ("client", "profile", "outcome", "status", "key", "team", "upstream", "session")
    if any(getattr(wanted, name) not in (None, getattr(entry, name)) for name in exact):
        return False
    tests = (
        wanted.since <= entry.at < wanted.before,
        wanted.after is None or (entry.at, entry.id) < wanted.after,
        wanted.model is None or fnmatchcase(entry.model, wanted.model),
        wanted.rule is None or wanted.rule in entry.rules,
        wanted.slow is None or entry.seconds >= wanted.slow,
        not wanted.failed or entry.failed,
        not wanted.mended or entry.mended > 0,
        all(word in entry.words for word in wanted.words),
    )
    return all(tests)


def text_parameter(query: Mapping[str, str], name: str) -> str | None:
    """A parameter of a query string; None without a value. Raises BadRequest for what no store can hold."""
    value = query.get(name)
    if not value:
        return None
    if len(value) > _LONGEST:
        raise BadRequest(f"{name} is too long: at most {_LONGEST} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"{name} is not UTF-8") from None
    return value


def _words(query: Mapping[str, str]) -> tuple[str, ...]:
    words = tuple(dict.fromkeys((text_parameter(query, "q") or "").lower().split()))
    if len(words) > MAX_WORDS:
        raise BadRequest(f"q has {len(words)} words; at most {MAX_WORDS} are allowed")
    return words


def _status(digits: str) -> int:
    if len(digits) > 3:
        raise BadRequest(f"status must be an outcome or an HTTP status such as 502, not {digits[:40]!r}")
    return int(digits)


def number_parameter(query: Mapping[str, str], name: str) -> float | None:
    value = text_parameter(query, name)
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        number = float(value)
        if math.isfinite(number):
            return number
    raise BadRequest(f"{name} must be a number, not {value[:40]!r}")


def _flag(query: Mapping[str, str], name: str) -> bool:
    value = query.get(name, "").lower()
    if value in _YES or value in _NO:
        return value in _YES
    raise BadRequest(f"{name} must be 1 or 0, not {value[:40]!r}")


def page_end(at: float, id: str) -> str:
    """Marks the end of a page: its last entry."""
    return base64.urlsafe_b64encode(f"{at!r} {id}".encode()).decode().rstrip("=")


def cursor_parameter(query: Mapping[str, str]) -> tuple[float, str] | None:
    """What `page_end` made: the last entry of the page before."""
    text = text_parameter(query, "cursor")
    if not text:
        return None
    try:
        at, _, id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(" ")
        return float(at), id
    except (ValueError, binascii.Error):
        raise BadRequest("cursor is not valid: use the value of `next` from an earlier page") from None
