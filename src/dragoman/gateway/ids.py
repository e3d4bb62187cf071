"""Random ids for exchanges. One system call draws many of them."""

from __future__ import annotations

import os

# Ids per system call: `os.urandom` costs more than everything else here.
_BATCH = 64
_BYTES = 8
_drawn: list[str] = []
# After a fork, parent and child would hand out the same ids.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_drawn.clear)


def new_id() -> str:
    """Sixteen random hexadecimal digits."""
    if not _drawn:
        _drawn.extend(os.urandom(_BATCH * _BYTES).hex(" ", _BYTES).split())
    return _drawn.pop()
