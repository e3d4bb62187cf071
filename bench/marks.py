"""Marks in long conversations, by which the upstream notices a lost part.

Every part has a mark, and every turn states the number of marks so far. The answer repeats that number, so
that a completely lost turn is noticed, too.
"""

from __future__ import annotations

import re

from .answers import ANTHROPIC

MARK, THOUGHT, SIGNATURE = "#mark", "#thought", "c2lnbmVk"
_SO_FAR = b" so far"
_TOLD = re.compile(rb"(\d+) marks(?: and (\d+) thoughts)?" + _SO_FAR)


class Tally:
    """Creates marks and counts them."""

    def __init__(self, marks: int) -> None:
        self._marks = marks
        self._thoughts = 0

    def mark(self) -> str:
        self._marks += 1
        return MARK

    def thought(self) -> str:
        self._thoughts += 1
        return THOUGHT

    def told(self) -> str:
        thoughts = f" and {self._thoughts} thoughts" if self._thoughts else ""
        return f"{self._marks} marks{thoughts} so far"


def told(request: bytes) -> str:
    """The last turn's note about its conversation; empty in a short question."""
    end = request.rfind(_SO_FAR) + len(_SO_FAR)
    found = _TOLD.search(request, max(0, end - 48), end)
    return found[0].decode() if found else ""


def lost(request: bytes, protocol: str) -> str:
    """The missing or superfluous parts of a request to an upstream of this protocol.

    Reasoning and its signatures go back to their issuer. A Chat upstream does not need them.
    """
    found = _TOLD.fullmatch(told(request).encode())
    if found is None:
        return ""
    thoughts = int(found[2] or 0) if protocol == ANTHROPIC else 0
    wanted = {MARK: int(found[1]), THOUGHT: thoughts, SIGNATURE: thoughts}
    there = {sign: request.count(sign.encode()) for sign in wanted}
    return ", ".join(
        f"{there[sign]} of {wanted[sign]} {sign}" for sign in wanted if there[sign] != wanted[sign]
    )
