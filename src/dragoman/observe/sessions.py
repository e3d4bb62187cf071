"""Sessions: the exchanges of one conversation as one row, and its turns with what the cache did."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import msgspec

from ..store import Receipt, ReceiptQuery, SessionQuery, SessionRow, Store
from .caching import CacheTurn, Explanation, PromptFingerprint, explain_all
from .receipts import ExchangeSummary
from .receipts.query import MOST, USUAL, cursor_parameter, number_parameter, page_end, text_parameter

MAX_TURNS = 1000
"""The newest turns of a session that are shown."""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """One session in a list."""

    session: str
    key: str
    team: str
    profile: str
    """The agent."""
    opening: str
    """The first words of the user; empty if they are not known."""
    first: float
    last: float
    """The start of the first and of the last request, in seconds since the epoch."""
    models: tuple[str, ...]
    turns: int
    failed: int
    input: int
    """Tokens of the whole prompts, including `cached`."""
    cached: int
    output: int
    cost: float | None
    """US dollars of the turns whose price is known; None if none of them has a known price."""
    unpriced: int
    calls: int
    mended: int
    invalid: int


class SessionPage(msgspec.Struct, frozen=True):
    """Some sessions, the one with the newest request first, and the cursor of the next page."""

    sessions: list[Session]
    next: str | None


class SessionTurn(msgspec.Struct, frozen=True):
    """One exchange of a session."""

    exchange: ExchangeSummary
    cache: Explanation


class SessionDetail(msgspec.Struct, frozen=True):
    """A session with its turns, the oldest first."""

    session: Session
    turns: list[SessionTurn]
    left_out: int = 0
    """Older turns that are not listed: they are too many, or no longer kept."""


class _Attempt(msgspec.Struct):
    key: str = ""


class _Detail(msgspec.Struct):
    """What the cache needs of a receipt's details."""

    attempts: tuple[_Attempt, ...] = ()
    prompt: PromptFingerprint | None = None
    cached: int | None = None


_summary = msgspec.json.Decoder(ExchangeSummary).decode
_detail = msgspec.json.Decoder(_Detail).decode


def parse_query(query: Mapping[str, str]) -> SessionQuery:
    """Parse the query string of `GET /sessions`. Raises BadRequest with the name of a wrong parameter."""
    return SessionQuery(
        key=text_parameter(query, "key"),
        since=number_parameter(query, "since") or 0.0,
        after=cursor_parameter(query),
        limit=max(1, min(MOST, int(number_parameter(query, "limit") or USUAL))),
    )


async def find(store: Store, wanted: SessionQuery) -> SessionPage:
    """One page of sessions."""
    rows = await store.sessions(msgspec.structs.replace(wanted, limit=wanted.limit + 1))
    page = rows[: wanted.limit]
    more = len(rows) > wanted.limit
    return SessionPage(
        [_session(row) for row in page], page_end(page[-1].last, page[-1].session) if more else None
    )


async def one(store: Store, wanted: SessionQuery) -> SessionDetail | None:
    """The first session that matches, with its turns."""
    rows = await store.sessions(msgspec.structs.replace(wanted, limit=1))
    if not rows:
        return None
    session = _session(rows[0])
    query = ReceiptQuery(session=session.session, key=wanted.key, details=True, limit=MAX_TURNS)
    receipts = (await store.receipts(query))[::-1]
    # In a thread: a thousand turns take a while, and the loop has streams to serve.
    turns = await asyncio.to_thread(turns_of, receipts)
    return SessionDetail(session, turns, max(0, session.turns - len(turns)))


def turns_of(receipts: Sequence[Receipt]) -> list[SessionTurn]:
    """The turns with their explanations, from receipts in the order of time."""
    shown = [_summary(receipt.summary) for receipt in receipts]
    turns = [
        _turn(entry, _detail(receipt.value or b"{}")) for entry, receipt in zip(shown, receipts, strict=True)
    ]
    return [SessionTurn(entry, cache) for entry, cache in zip(shown, explain_all(turns), strict=True)]


def _turn(entry: ExchangeSummary, of: _Detail) -> CacheTurn:
    return CacheTurn(
        id=entry.id,
        at=entry.at,
        seconds=entry.seconds,
        first_event=entry.first_event,
        target=entry.target,
        credential=of.attempts[-1].key if of.attempts else "",
        failed=entry.failed,
        input=entry.usage.input if entry.usage else None,
        cached=of.cached,
        prompt=of.prompt,
    )


def _session(row: SessionRow) -> Session:
    sums = row.models
    turns, unpriced = sum(one.requests for one in sums), sum(one.unpriced for one in sums)
    return Session(
        session=row.session,
        key=row.key,
        team=row.team,
        profile=row.profile,
        opening=row.opening,
        first=row.first,
        last=row.last,
        models=tuple([one.group for one in sums]),
        turns=turns,
        failed=sum(one.failed for one in sums),
        input=sum(one.input for one in sums),
        cached=sum(one.cached for one in sums),
        output=sum(one.output for one in sums),
        cost=sum(one.micros for one in sums) / 1e6 if unpriced < turns else None,
        unpriced=unpriced,
        calls=sum(one.calls for one in sums),
        mended=sum(one.mended for one in sums),
        invalid=sum(one.invalid for one in sums),
    )
