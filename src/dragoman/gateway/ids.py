"""The ids of exchanges: random, and drawn many at a time, so that not every request asks the system."""

from __future__ import annotations

import os

_AT_ONCE = 64
_BYTES = 8
_drawn: list[str] = []
# Two processes must never draw from the same.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)


def new_id() -> str:
    """Sixteen hexadecimal digits that nobody has seen before."""
    if not _drawn:
        _drawn.extend(os.urandom(_AT_ONCE * _BYTES).hex(" ", _BYTES).split())
    return _drawn.pop()
