"""The records of one exchange, kept small: nearly all of them are chunks, and most are never looked at.

A chunk is kept as its bytes and its time, and made a record again when somebody looks; so is the head of an
answer, as its status. Any other record is kept as it is (`WHOLE`).
"""

from __future__ import annotations

from array import array
from typing import cast

from .records import Answered, Asked, Came, Record, Went

WHOLE, CAME, WENT, ALIVE, STATUS = range(5)


Thing = Record | bytes | int


def records(kinds: bytearray, times: array[float], things: list[Thing]) -> list[Record]:
    """All of them, in order. May be asked for in a thread, while more are added."""
    found: list[Record] = []
    call = 0
    for kind, t, thing in zip(kinds, times, things, strict=False):
        if kind == CAME:
            found.append(Came(t, call, cast(bytes, thing)))
        elif kind == WHOLE:
            found.append(cast(Record, thing))
            call += isinstance(thing, Asked)
        elif kind == STATUS:
            found.append(Answered(t, call, cast(int, thing)))
        else:
            found.append(Went(t, cast(bytes, thing), kind == ALIVE))
    return found
