"""Finding exchanges: those in memory (running, or not written yet) and those in the store, as one list."""

from __future__ import annotations

import base64
import binascii
import contextlib
import math
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import msgspec

from ...model.errors import BadRequest
from ...store import Store, Wanted
from ..tap import Track
from .summary import Summary, summary

USUAL = 100
MOST = 1000
MOST_WORDS = 32
"""In `q`. Each is one more condition for the store."""
_LONGEST = 1000  # characters in one parameter
_YES = frozenset({"1", "true", "yes"})
_NO = frozenset({"", "0", "false", "no"})


def asked_for(said: Mapping[str, str]) -> Wanted:
    """What a query string asks for. Raises BadRequest, which names what cannot be read."""
    status = _text(said, "status")
    by_number = status is not None and status.isdecimal()
    return Wanted(
        since=_number(said, "since") or 0.0,
        before=_number(said, "before") or float("inf"),
        after=_cursor(_text(said, "cursor")),
        client=_text(said, "client"),
        profile=_text(said, "profile"),
        model=_text(said, "model"),
        outcome=None if by_number else status,
        status=_status(status) if status and by_number else None,
        rule=_text(said, "rule"),
        slow=_number(said, "slow"),
        failed=_flag(said, "failed"),
        mended=_flag(said, "mended"),
        words=_words(said),
        limit=max(1, min(MOST, int(_number(said, "limit") or USUAL))),
    )


class Page(msgspec.Struct, frozen=True):
    """Some exchanges, newest first, and where the next ones begin."""

    exchanges: list[Summary]
    next: str | None


async def find(wanted: Wanted, tracks: Iterable[Track], store: Store) -> Page:
    """`tracks` are the ones in memory: they are newer than what the store says of them."""
    here = [summary(track) for track in tracks]
    found = {said.id: said for said in here if fits(said, wanted)}
    known = {said.id for said in here}
    rows = await store.receipts(msgspec.structs.replace(wanted, limit=wanted.limit + 1))
    for row in rows:
        if row.id not in known:
            found[row.id] = msgspec.json.decode(row.summary, type=Summary)
    newest = sorted(found.values(), key=lambda said: (said.at, said.id), reverse=True)
    page = newest[: wanted.limit]
    more = len(newest) > wanted.limit
    return Page(page, _behind(page[-1]) if more else None)


def fits(said: Summary, wanted: Wanted) -> bool:
    """What the store does by SQL."""
    exact = ("client", "profile", "outcome", "status")
    if any(getattr(wanted, name) not in (None, getattr(said, name)) for name in exact):
        return False
    tests = (
        wanted.since <= said.at < wanted.before,
        wanted.after is None or (said.at, said.id) < wanted.after,
        wanted.model is None or fnmatchcase(said.model, wanted.model),
        wanted.rule is None or wanted.rule in said.rules,
        wanted.slow is None or said.seconds >= wanted.slow,
        not wanted.failed or said.failed,
        not wanted.mended or said.mended > 0,
        all(word in said.words for word in wanted.words),
    )
    return all(tests)


def _text(said: Mapping[str, str], name: str) -> str | None:
    value = said.get(name)
    if not value:
        return None
    if len(value) > _LONGEST:
        raise BadRequest(f"{name} is longer than {_LONGEST} characters")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadRequest(f"{name} is not UTF-8") from None
    return value


def _words(said: Mapping[str, str]) -> tuple[str, ...]:
    words = tuple(dict.fromkeys((_text(said, "q") or "").lower().split()))
    if len(words) > MOST_WORDS:
        raise BadRequest(f"q holds {len(words)} words; it takes at most {MOST_WORDS}")
    return words


def _status(digits: str) -> int:
    if len(digits) > 3:
        raise BadRequest(f"status must be an outcome or an HTTP status such as 502, not {digits[:40]!r}")
    return int(digits)


def _number(said: Mapping[str, str], name: str) -> float | None:
    value = _text(said, name)
    if value is None:
        return None
    with contextlib.suppress(ValueError):
        number = float(value)
        if math.isfinite(number):
            return number
    raise BadRequest(f"{name} must be a number, not {value[:40]!r}")


def _flag(said: Mapping[str, str], name: str) -> bool:
    value = said.get(name, "").lower()
    if value in _YES or value in _NO:
        return value in _YES
    raise BadRequest(f"{name} must be 1 or 0, not {value[:40]!r}")


def _behind(last: Summary) -> str:
    return base64.urlsafe_b64encode(f"{last.at!r} {last.id}".encode()).decode().rstrip("=")


def _cursor(text: str | None) -> tuple[float, str] | None:
    if not text:
        return None
    try:
        at, _, id = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode().partition(" ")
        return float(at), id
    except (ValueError, binascii.Error):
        raise BadRequest("cursor is not one that `next` gave") from None
