"""Detects an agent in a loop: the same calls with the same results at the end of the history.

Nothing is stored between requests: an agent sends its whole history with each request.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

_decode = json.JSONDecoder(strict=False).decode
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

Turn = tuple[str, str, str]  # the tool, its canonical arguments, the text of its result


class Repetition(msgspec.Struct, frozen=True):
    """The history ends with `turns`, in this order, `count` times in a row."""

    count: int
    turns: tuple[Turn, ...]


def repeated(history: Sequence[Turn]) -> Repetition | None:
    """The repetition at the end of a history: one call, or two calls in alternation.

    >>> repeated([("Read", '{"a":1}', "x")] * 3).count
    3
    """
    for period in (1, 2):
        count = _count(history, period)
        if count > 1:
            return Repetition(count, tuple(history[-period:]))
    return None


def _count(history: Sequence[Turn], period: int) -> int:
    """How many times in a row the last `period` turns are at the end."""
    same = 0
    for index in range(len(history) - 1, period - 1, -1):
        if history[index] != history[index - period]:
            break
        same += 1
    return same // period + 1 if len(history) >= period else 0


def canonical(arguments: str) -> str:
    """Arguments in one form, for comparing: keys sorted, no spaces between tokens.

    >>> canonical('{ "b": 1, "a": [true] }')
    '{"a":[true],"b":1}'

    Text that is not JSON is compared as it is, without the blanks around it.
    """
    try:
        return _encode(_decode(arguments))
    except (ValueError, RecursionError):
        return arguments.strip()
