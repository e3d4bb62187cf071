"""Where connections read into: one buffer for all, and one of its own for a body that takes several reads.

What is in the shared one is understood before the next connection reads. A long body stays where the system
put it until all of it is there, and is copied once. Buffers are used again: fresh memory costs more than
copying does, and memory that nothing was read into costs nothing.
"""

from __future__ import annotations

import mmap

_SIZE = 1024 * 1024
_MOST_SPARE = 4


class Buffers:
    """Those of one listener."""

    __slots__ = ("_spare", "shared")

    def __init__(self) -> None:
        self.shared = _fresh()
        self._spare: list[memoryview] = []

    def lend(self) -> memoryview:
        """The one that was just read into, with all that is in it; the others share another from now on."""
        lent, self.shared = self.shared, self._spare.pop() if self._spare else _fresh()
        return lent

    def give_back(self, buffer: memoryview) -> None:
        if len(self._spare) < _MOST_SPARE:
            self._spare.append(buffer)


class Inbox:
    """A body that is coming: `left` bytes, into `buffer` from `begin` on."""

    __slots__ = ("_begin", "_end", "buffer", "left")

    def __init__(self, buffer: memoryview, begin: int, left: int) -> None:
        self.buffer = buffer
        self.left = left
        self._begin = self._end = begin

    @property
    def held(self) -> int:
        return self._end - self._begin

    def room(self) -> memoryview:
        """Where the next of it goes. There is no room for anything else: what follows is another request."""
        return self.buffer[self._end : self._end + self.left]

    def came(self, size: int) -> bool:
        """True: it is over, or the buffer is full. Take what there is."""
        self._end += size
        self.left -= size
        return not self.left or self._end == len(self.buffer)

    def take(self) -> bytes:
        taken = bytes(self.buffer[self._begin : self._end])
        self._begin = self._end = 0
        return taken


def _fresh() -> memoryview:
    return memoryview(mmap.mmap(-1, _SIZE, access=mmap.ACCESS_COPY))
