"""Explain for each turn of a session why the upstream's cache helped, or did not.

A session may hold several conversations at once: an agent, its subagents, and a request for a title. So a
turn is not compared with the turn before it in time, but with the earlier turn that it has most in common
with.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from . import changes
from .changes import CacheTurn, Cause
from .fingerprints import PromptFingerprint

__all__ = ["CacheTurn", "Cause", "Explanation", "explain", "explain_all"]

_LOOK_BACK = 40
"""Earlier turns among which the one to compare with is searched."""
_HIT = 0.75
"""The share of the smaller of two prompts that must come from the cache to count as a hit."""


class Explanation(msgspec.Struct, frozen=True):
    """What is known about the cache at one turn."""

    compared: str | None
    """The id of the exchange that the turn is compared with; None: there is none."""
    hit: bool | None
    """Did the upstream read most of the common prompt from its cache? None: it did not say."""
    cause: str
    """A short name of the cause, `same` if the prompt of the turn before is the beginning of this one."""
    sentence: str
    also: tuple[str, ...] = ()
    """Further causes."""
    same_bytes: int = 0
    """Bytes of the prompt's beginning that stayed the same, counted in whole parts."""
    prompt_bytes: int = 0
    cached: int | None = None
    """Tokens that the upstream read from its cache, as it says; None: it did not say how many it used."""
    input: int | None = None
    changes: tuple[str, ...] = ()
    """What is different from the request before, new messages included."""


def explain_all(turns: Sequence[CacheTurn]) -> list[Explanation]:
    """An explanation for each turn of a session. `turns` are in the order of time."""
    return [explain(_base(turns[max(0, at - _LOOK_BACK) : at], turn), turn) for at, turn in enumerate(turns)]


def explain(before: CacheTurn | None, after: CacheTurn) -> Explanation:
    """Compare a turn with the one before it in its conversation."""
    now = after.prompt
    if now is None:
        return Explanation(
            None, None, "unknown", "Nothing was sent to an upstream, or its fingerprint is not kept."
        )
    size, cached = now.size, after.cached
    if now.continues:
        stored = "The request continues a response that the upstream stored: only the new messages are in it."
        return Explanation(None, None, "stored", stored, (), 0, size, cached, after.input)
    if before is None or before.prompt is None:
        first = "This is the first request of its conversation: there is none before it to compare with."
        return Explanation(None, None, "first", first, (), 0, size, cached, after.input)
    found = [*changes.of_place(before, after), *changes.of_prompt(before.prompt, now)]
    hit = _hit(before, after)
    if not found and hit is not True:
        found = [*changes.of_time(before, after, hit)]
    if not found:
        found = [Cause("same", "The prompt begins as it did before.")]
    return Explanation(
        before.id,
        hit,
        found[0].name,
        found[0].sentence,
        tuple([cause.sentence for cause in found[1:]]),
        changes.same_bytes(before.prompt, now),
        size,
        cached,
        after.input,
        tuple(changes.listed(before.prompt, now)),
    )


def _hit(before: CacheTurn, after: CacheTurn) -> bool | None:
    if after.cached is None or after.input is None:
        return None
    common = min(after.input, before.input or after.input)
    return after.cached > 0 and after.cached >= _HIT * common


def _base(earlier: Sequence[CacheTurn], turn: CacheTurn) -> CacheTurn | None:
    """The earlier turn of the same conversation. The later one, if two have as much in common."""
    best: tuple[tuple[bool, int], CacheTurn] | None = None
    for candidate in reversed(earlier):
        if candidate.prompt is None or turn.prompt is None:
            continue
        shared = _shared(candidate.prompt, turn.prompt)
        if shared and (best is None or shared > best[0]):
            best = shared, candidate
            if shared == (True, candidate.prompt.size):
                break  # it is the beginning of this one: no other has more
    return best[1] if best else None


def _shared(before: PromptFingerprint, after: PromptFingerprint) -> tuple[bool, int] | None:
    """Do both start the same, and how many bytes do they share? None: they are different conversations."""
    old, new = changes.aligned(before, after)
    known = {part.hash for part in old if not changes.is_prompt(part)}
    messages = sum(part.size for part in new if part.hash in known)
    same_start = _has_same_start(before, after)
    if not messages and not same_start:
        return None
    rest = {part.hash for part in (*before.tools, *before.system, *old)}
    return same_start, sum(part.size for part in (*after.tools, *after.system, *new) if part.hash in rest)


def _has_same_start(before: PromptFingerprint, after: PromptFingerprint) -> bool:
    """Is the first message the same, apart from dates and ids?"""
    place = next((place for place in ("m0", "m1") if not changes.is_prompt_at(after, place)), "")
    old, new = before.loose.get(place), after.loose.get(place)
    return old is not None and new is not None and old.ids == new.ids
