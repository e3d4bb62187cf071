"""What a client understands of an answer: one module per protocol, named like its folder in `protocols/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from ..shape import Answer

_Read = Callable[[bytes], Answer]
_SAID_INSTEAD = {"stop_sequence": "end_turn"}


@dataclass(frozen=True, slots=True)
class Reader:
    """The two readers of a protocol."""

    stream: _Read
    whole: _Read
    said_instead: Mapping[str, str]
    """The stops that the protocol has no word for, and what it says instead."""


@cache
def reader_of(protocol: str) -> Reader:
    """The readers of `protocol`."""
    room = import_module(f".{protocol.replace('-', '_')}", __package__)
    return Reader(room.stream, room.whole, getattr(room, "SAID_INSTEAD", _SAID_INSTEAD))
