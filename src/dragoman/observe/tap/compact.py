"""A compact form of an exchange's records: nearly all of them are chunks, and most are never read.

A chunk is stored as its bytes and its time, and becomes a record again when somebody reads it. Any other
record is stored unchanged (`RECORD`).
"""

from __future__ import annotations

from array import array
from typing import cast

from .records import ClientBytes, Record, UpstreamBytes, UpstreamRequest

RECORD, RECEIVED, SENT, KEEPALIVE = range(4)

Packed = Record | bytes


def records(kinds: bytearray, times: array[float], packed: list[Packed]) -> list[Record]:
    """All records in order. Threads may call this while the event loop adds more records."""
    found: list[Record] = []
    call = 0
    for kind, t, item in zip(kinds, times, packed, strict=False):
        if kind == RECEIVED:
            found.append(UpstreamBytes(t, call, cast(bytes, item)))
        elif kind == RECORD:
            found.append(cast(Record, item))
            call += isinstance(item, UpstreamRequest)
        else:
            found.append(ClientBytes(t, cast(bytes, item), kind == KEEPALIVE))
    return found
