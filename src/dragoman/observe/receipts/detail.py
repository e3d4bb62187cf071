"""The details of a receipt: the attempts, the notices, and each call before and after mending."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ...model.messages import Notice
from ...tools.receipts import CallReceipt
from ...tools.rules import Fix
from ..caching import PromptFingerprint
from ..tap import AttemptTrack, Track
from .summary import microseconds


class AttemptDetail(msgspec.Struct, frozen=True):
    """One attempt at one target."""

    target: str
    why: str
    """Why the router chose this target."""
    outcome: str
    error: str | None
    status: int | None
    """The HTTP status that the failure has for the client."""
    seconds: float
    key: str = ""
    """The fingerprint of the key that the upstream got; empty if it got none."""


class CallDetail(msgspec.Struct, frozen=True):
    """One tool call, before and after mending."""

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
    """`before` or `after` is cut to the size that the store keeps."""
    rules: tuple[str, ...] = ()
    """All rules that fired: those of `fixes`, and those about the call itself."""
    fixes: tuple[Fix, ...] = ()
    problems: tuple[str, ...] = ()
    dropped: str | None = None
    recovered: str | None = None
    started: float | None = None
    """`started` and `ended` are seconds after the start of the exchange."""
    ended: float | None = None
    held_seconds: float = 0.0
    held_characters: int = 0
    fragments: int = 0
    offered: bool = True
    """False: the client did not declare the tool."""


class Detail(msgspec.Struct, frozen=True):
    """The part of a receipt that only `/exchanges/{id}` shows. The store keeps it as JSON."""

    attempts: tuple[AttemptDetail, ...] = ()
    notices: tuple[Notice, ...] = ()
    tool_calls: tuple[CallDetail, ...] = msgspec.field(default=(), name="calls")
    limits: tuple[str, ...] = ()
    """Limits of the key and its team that are nearly reached, or that cannot be counted."""
    prompt: PromptFingerprint | None = None
    """The fingerprint of the request that the upstream got."""
    cached: int | None = None
    """Tokens that the upstream read from its cache; None: it did not say."""


Shorten = Callable[[str], str]


def detail(track: Track, shorten: Shorten | None = None) -> Detail:
    """The details of `track`. `shorten` cuts a call's arguments to the size that is kept."""
    calls = track.receipts
    return Detail(
        attempts=tuple([_attempt(one) for one in track.attempts]),
        notices=tuple(track.notices),
        tool_calls=tuple([call_detail(receipt, track.began, shorten) for receipt in calls]) if calls else (),
        limits=track.limit_warnings,
        prompt=track.prompt,
        cached=track.usage.cache_read,
    )


def _attempt(one: AttemptTrack) -> AttemptDetail:
    failure = one.failure
    return AttemptDetail(
        target=one.choice.key,
        why=one.choice.why,
        outcome=failure.kind.value if failure else "running" if one.seconds is None else "ok",
        error=failure.message if failure else None,
        status=failure.status if failure else None,
        seconds=microseconds(one.elapsed() if one.seconds is None else one.seconds),
        key=one.key,
    )


def call_detail(receipt: CallReceipt, began: float = 0.0, shorten: Shorten | None = None) -> CallDetail:
    """The details of one call. Its times are relative to `began`."""
    before, after, rules = receipt.received, receipt.sent, receipt.rules
    if shorten is not None:
        before, after = shorten(before), shorten(after)
    shortened = before is not receipt.received or after is not receipt.sent
    return CallDetail(
        id=receipt.id,
        name=receipt.name,
        upstream_id=receipt.upstream_id,
        upstream_name=receipt.upstream_name,
        complete=receipt.complete,
        valid=receipt.complete and not receipt.problems,
        before=before,
        after=after,
        shortened=shortened,
        rules=tuple(dict.fromkeys(rules)) if rules else (),
        fixes=receipt.fixes,
        problems=receipt.problems,
        dropped=receipt.dropped,
        recovered=receipt.recovered,
        started=_after(receipt.started, began),
        ended=_after(receipt.ended, began),
        held_seconds=microseconds(receipt.held_seconds),
        held_characters=receipt.held_characters,
        fragments=receipt.fragments,
        offered=receipt.offered,
    )


def _after(moment: float | None, began: float) -> float | None:
    return None if moment is None else microseconds(moment - began)
