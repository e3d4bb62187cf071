"""Reduce an answer to the neutral form: one module per protocol, named like its folder in `protocols/`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from ..shape import ReducedAnswer

_Read = Callable[[bytes], ReducedAnswer]
_STOP_FALLBACKS = {"stop_sequence": "end_turn"}


@dataclass(frozen=True, slots=True)
class Reducer:
    """The functions that reduce a stream and a whole body of one protocol."""

    stream: _Read
    whole: _Read
    stop_fallbacks: Mapping[str, str]
    """Neutral stop reasons that the protocol lacks, and the ones that clients get instead."""


@cache
def reducer_of(protocol: str) -> Reducer:
    module = import_module(f".{protocol.replace('-', '_')}", __package__)
    return Reducer(module.stream, module.whole, getattr(module, "STOP_FALLBACKS", _STOP_FALLBACKS))
