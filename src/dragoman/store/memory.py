"""What is kept only as long as a client's connection lasts, and never written to the store.

Over a WebSocket a client goes on from a response by its id although it asked not to store it. All
connections share one bound. What was not used for the longest time makes room: the client is then told that
its response is not known, and sends the whole history.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from .types import Entry, Key

_OVERHEAD = 256
"""What an entry costs beside its value, in bytes."""


class Memories:
    """The memories of all connections of one process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 0
        """In bytes, about."""
        self._values: OrderedDict[tuple[Memory, Key], bytes] = OrderedDict()

    def open(self) -> Memory:
        """A memory of its own for a new connection."""
        return Memory(self)

    def get(self, memory: Memory, key: Key) -> bytes | None:
        value = self._values.get((memory, key))
        if value is not None:
            self._values.move_to_end((memory, key))
        return value

    def put(self, memory: Memory, entry: Entry) -> None:
        self.drop(memory, entry.key)
        self._values[memory, entry.key] = entry.value
        memory.keys.add(entry.key)
        self.size += len(entry.value) + _OVERHEAD
        while self.size > self._most:
            owner, key = next(iter(self._values))
            self.drop(owner, key)

    def drop(self, memory: Memory, key: Key) -> None:
        value = self._values.pop((memory, key), None)
        if value is not None:
            memory.keys.discard(key)
            self.size -= len(value) + _OVERHEAD


class Memory:
    """What one connection keeps."""

    __slots__ = ("_all", "keys")

    def __init__(self, memories: Memories) -> None:
        self._all = memories
        self.keys: set[Key] = set()
        """What is there of this connection."""

    def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        """The values there are."""
        found = ((key, self._all.get(self, key)) for key in keys)
        return {key: value for key, value in found if value is not None}

    def put(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._all.put(self, entry)

    def close(self) -> None:
        """The connection is over."""
        for key in tuple(self.keys):
            self._all.drop(self, key)
