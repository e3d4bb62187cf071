"""An agent that goes in circles: the same calls with the same results at the end of a history.

Nothing is remembered between requests: an agent sends its whole history with each one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

_decode = json.JSONDecoder(strict=False).decode
_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode

Turn = tuple[str, str, str]  # the tool, its canonical arguments, the text of its result


class Repetition(msgspec.Struct, frozen=True):
    """`turns`, in this order, happened `count` times in a row up to the end of the history."""

    count: int
    turns: tuple[Turn, ...]


def repeated(history: Sequence[Turn]) -> Repetition | None:
    """The calls that a history ends with over and over: one call, or two by turns.

    >>> repeated([("Read", '{"a":1}', "x")] * 3).count
    3
    """
    for period in (1, 2):
        count = _count(history, period)
        if count > 1:
            return Repetition(count, tuple(history[-period:]))
    return None


def _count(history: Sequence[Turn], period: int) -> int:
    """How often the last `period` turns stand at the end, one time after the other."""
    same = 0
    for index in range(len(history) - 1, period - 1, -1):
        if history[index] != history[index - period]:
            break
        same += 1
    return same // period + 1 if len(history) >= period else 0


def canonical(arguments: str) -> str:
    """Arguments so that the same ones read the same: keys in order, no spaces between tokens.

    >>> canonical('{ "b": 1, "a": [true] }')
    '{"a":[true],"b":1}'

    Text that is not JSON is compared as it is, but for the blanks around it.
    """
    try:
        return _encode(_decode(arguments))
    except (ValueError, RecursionError):
        return arguments.strip()
