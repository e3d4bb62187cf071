"""What a receipt says beside the summary: what was tried, and each call before and after."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...model.messages import Notice
from ...tools.receipts import CallReceipt
from ...tools.rules import Fix
from ..tap import Track, Try
from .summary import microseconds


class AttemptDetail(msgspec.Struct, frozen=True):
    """One target that was tried."""

    target: str
    why: str
    """What led the router there."""
    outcome: str
    error: str | None
    status: int | None
    """What its failure is to a client."""
    seconds: float


class CallDetail(msgspec.Struct, frozen=True):
    """One tool call, before and after."""

    id: str
    name: str
    upstream_id: str
    upstream_name: str
    complete: bool
    valid: bool
    before: str
    """The arguments as the upstream sent them."""
    after: str
    """The arguments as the client got them."""
    shortened: bool = False
    """There was more of `before` or `after` than is kept."""
    rules: tuple[str, ...] = ()
    """All that fired: those of `fixes`, and those about the call itself."""
    fixes: tuple[Fix, ...] = ()
    problems: tuple[str, ...] = ()
    dropped: str | None = None
    recovered: str | None = None
    started: float | None = None
    """Seconds after the exchange began; so is `ended`."""
    ended: float | None = None
    held_seconds: float = 0.0
    held_characters: int = 0
    fragments: int = 0
    offered: bool = True
    """False: the client did not declare the tool."""


class Detail(msgspec.Struct, frozen=True):
    """What a receipt says beside the summary."""

    attempts: tuple[AttemptDetail, ...] = ()
    notices: tuple[Notice, ...] = ()
    tool_calls: tuple[CallDetail, ...] = msgspec.field(default=(), name="calls")


Shorten = Callable[[str], str]


def detail(track: Track, shorten: Shorten | None = None) -> Detail:
    """What is known of `track`; `shorten` gives what is kept of a call's arguments."""
    calls = track.receipts
    return Detail(
        tuple([_attempt(one) for one in track.tries]),
        tuple(track.notices),
        tuple([call_detail(receipt, track.began, shorten) for receipt in calls]) if calls else (),
    )


def _attempt(one: Try) -> AttemptDetail:
    failure, seconds = one.failure, one.seconds
    if seconds is None:
        return AttemptDetail(one.target, one.why, "running", None, None, microseconds(one.so_far()))
    if failure is None:
        return AttemptDetail(one.target, one.why, "ok", None, None, microseconds(seconds))
    kind, message, status = failure.kind.value, failure.message, failure.status
    return AttemptDetail(one.target, one.why, kind, message, status, microseconds(seconds))


def call_detail(receipt: CallReceipt, began: float = 0.0, shorten: Shorten | None = None) -> CallDetail:
    """One call; its times are counted from `began`."""
    before, after, rules = receipt.received, receipt.sent, receipt.rules
    if shorten is not None:
        before, after = shorten(before), shorten(after)
    shortened = before is not receipt.received or after is not receipt.sent
    # Not by name: see `summary`.
    return CallDetail(
        receipt.id,
        receipt.name,
        receipt.upstream_id,
        receipt.upstream_name,
        receipt.complete,
        receipt.complete and not receipt.problems,
        before,
        after,
        shortened,
        tuple(dict.fromkeys(rules)) if rules else (),
        receipt.fixes,
        receipt.problems,
        receipt.dropped,
        receipt.recovered,
        _after(receipt.started, began),
        _after(receipt.ended, began),
        microseconds(receipt.held_seconds),
        receipt.held_characters,
        receipt.fragments,
        receipt.offered,
    )


def _after(moment: float | None, began: float) -> float | None:
    return None if moment is None else microseconds(moment - began)
