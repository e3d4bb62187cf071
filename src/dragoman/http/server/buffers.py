"""Where connections read into: one buffer for all, and for a long body one that becomes the body.

What is in the shared one is understood before the next connection reads. A long body is put where it stays:
the system writes into a `bytearray`, and that is handed out as it is, not copied. It is used again once
nobody refers to it, nor to a view of it. So nobody has to give it back, and whoever keeps it, or a few bytes
of it, need not know: it is never written to again. Fresh memory costs more than all of that.
"""

from __future__ import annotations

from sys import getrefcount

SHARED = 64 * 1024
LARGEST = 1024 * 1024
_MOST = 64
"""About as many as are held of the conversations and exchanges of late, so that one comes free when another
is needed: all of a new one is filled with zeros first, and that is as much work as reading into it."""
_SPARE = 8
"""So many may lie about that are of no use at the moment."""


class Buffers:
    """Those of one listener."""

    __slots__ = ("_made", "shared")

    def __init__(self) -> None:
        self.shared = memoryview(bytearray(SHARED))
        self._made: list[bytearray] = []
        """The latest, whoever has them: the one that was taken last is the last."""

    def take(self, size: int) -> bytearray:
        """One of `size` bytes that nobody else has. What is in it now means nothing."""
        made = self._made
        spare = 0
        for at in range(len(made) - 1, -1, -1):
            if _references(made, at) != _ALONE:
                continue
            if _is_near(made[at].__alloc__(), size):
                found = made.pop(at)
                made.append(found)
                _resize(found, size)
                return found
            spare += 1
            if spare > _SPARE:
                del made[at]
        fresh = bytearray(size)
        if size > SHARED:  # others are soon made
            made.append(fresh)
            del made[:-_MOST]
        return fresh


class Inbox:
    """A body that is coming, or a portion of it: `held` bytes of `buffer` are there."""

    __slots__ = ("_room", "buffer", "held")

    def __init__(self, buffer: bytearray, begun: memoryview) -> None:
        self.buffer = buffer
        self.held = len(begun)
        self._room = memoryview(buffer)
        self._room[: self.held] = begun

    def room(self) -> memoryview:
        """Where the next of it goes. There is no room for anything else: what follows is another request."""
        self._room = memoryview(self.buffer)[self.held :]
        return self._room

    def came(self, size: int) -> bool:
        """True: all of it is there, and nobody looks into the buffer any more."""
        self.held += size
        self._room.release()  # whoever was given it still has it
        return self.held == len(self.buffer)


def _is_near(room: int, size: int) -> bool:
    """Is a buffer with `room` for so many bytes, or nearly so many, not wasted on `size` of them?"""
    return size - size // 8 <= room <= size + size // 4


def _resize(buffer: bytearray, size: int) -> None:
    """It stays where it is, but for now and then: one that grows gets an eighth more than it needs."""
    if size > len(buffer):
        buffer += bytes(size - len(buffer))
    else:
        del buffer[size:]


def _references(buffers: list[bytearray], at: int) -> int:
    return getrefcount(buffers[at])


_ALONE = _references([bytearray()], 0)
"""To a buffer that only such a list has. A view refers to it as well, and so does a view of that."""
