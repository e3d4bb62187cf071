"""Where connections read into: one buffer for all, and for a long body one that becomes the body.

What is in the shared one is understood before the next connection reads. A long body is put where it stays:
the system writes into a `bytearray`, and that is handed out as it is, not copied. It is used again once
nobody refers to it, nor to a view of it. So nobody has to give it back, and whoever keeps it, or a few bytes
of it, need not know: it is never written to again. Fresh memory costs more than all of that.
"""

from __future__ import annotations

from sys import getrefcount

SHARED = 64 * 1024
FIRST = 8 * 1024
"""So much is read at first of a request that may well be long: its head, and little that must be moved."""
LARGEST = 1024 * 1024
_MOST = 64
"""About as many as are held of the conversations and exchanges of late, so that one comes free when another
is needed: all of a new one is filled with zeros first, and that is as much work as reading into it."""
_SPARE = 8
"""So many may lie about that are of no use at the moment."""


class Buffers:
    """Those of one listener."""

    __slots__ = ("_made", "first", "shared")

    def __init__(self) -> None:
        self.shared = memoryview(bytearray(SHARED))
        self.first = self.shared[:FIRST]
        self._made: list[bytearray] = []
        """The latest, whoever has them: the one that was taken last is the last."""

    def take(self, size: int) -> bytearray:
        """One of `size` bytes that nobody else has. What is in it now means nothing."""
        made = self._made
        spare = 0
        # One with room for so many bytes, or nearly so many, is not wasted on them.
        least, most = size - size // 8, size + size // 4
        for at in range(len(made) - 1, -1, -1):
            if getrefcount(made[at]) != _ALONE:
                continue
            if least <= made[at].__alloc__() <= most:
                found = made.pop(at)
                made.append(found)
                # It stays where it is, mostly: one that grows gets an eighth more than it needs.
                if size > len(found):
                    found += bytes(size - len(found))
                else:
                    del found[size:]
                return found
            spare += 1
            if spare > _SPARE:
                del made[at]
        fresh = bytearray(size)
        if size > SHARED:  # others are soon made
            made.append(fresh)
            del made[:-_MOST]
        return fresh


_nobodys = [bytearray()]
_ALONE = getrefcount(_nobodys[0])
"""To a buffer that only such a list has. A view refers to it as well, and so does a view of that."""
