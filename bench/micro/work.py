"""One stage of the core at work: what is run, and how many events, fragments or messages that is."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


def _nothing() -> None:
    pass


class Work(msgspec.Struct, frozen=True):
    """One stage at work."""

    name: str
    per: str
    units: int
    run: Callable[[], object]
    prepare: Callable[[], object] = _nothing
    """Done before each run, and not counted."""
