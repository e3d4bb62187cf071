"""The records of one exchange, kept small: nearly all of them are chunks, and most are never looked at."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import cast

import msgspec

from .records import Asked, Came, Read, Record, Went

WHOLE, CAME, WENT, ALIVE = range(4)


class InPieces(msgspec.Struct, frozen=True):
    """A request. Its body is in pieces, which others may hold as well."""

    request: Read | Asked
    """But for the body."""
    pieces: Sequence[bytes | memoryview]

    def record(self) -> Read | Asked:
        return msgspec.structs.replace(self.request, body=b"".join(self.pieces))


class Kept:
    """A chunk is kept as its bytes and its time, and made a record again when somebody looks."""

    __slots__ = ("_kinds", "_things", "_times")

    def __init__(self) -> None:
        self._things: list[Record | InPieces | bytes] = []
        self._times = array("d")
        self._kinds = bytearray()

    def add(self, kind: int, t: float, thing: Record | InPieces | bytes) -> None:
        """A `WHOLE` record, or the bytes of a chunk."""
        self._things.append(thing)
        self._times.append(t)
        self._kinds.append(kind)

    def records(self) -> list[Record]:
        """All of them, in order. May be asked for in a thread, while more are added."""
        found: list[Record] = []
        call = 0
        for kind, t, thing in zip(self._kinds, self._times, self._things, strict=False):
            if kind == CAME:
                found.append(Came(t, call, cast(bytes, thing)))
            elif kind == WHOLE:
                record = thing.record() if isinstance(thing, InPieces) else cast(Record, thing)
                found.append(record)
                call += isinstance(record, Asked)
            else:
                found.append(Went(t, cast(bytes, thing), kind == ALIVE))
        return found
