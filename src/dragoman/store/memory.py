"""Keep responses in memory while a client's connection is open, and never in the store.

Over a WebSocket, a client may continue from a response by its id although it sent `store: false`. All
connections share one size limit. The least recently used entries are dropped first. A client whose response
was dropped gets `previous_response_not_found`, and sends the whole history.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from .types import EntryKey, StoredEntry

_OVERHEAD = 256
"""Estimated memory of an entry besides its value, in bytes."""


class Memories:
    """The memories of all connections of one process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.size = 0
        """Estimated size in bytes."""
        self._values: OrderedDict[tuple[Memory, EntryKey], bytes] = OrderedDict()

    def open(self) -> Memory:
        """Open the memory of a new connection."""
        return Memory(self)

    def get(self, memory: Memory, key: EntryKey) -> bytes | None:
        value = self._values.get((memory, key))
        if value is not None:
            self._values.move_to_end((memory, key))
        return value

    def put(self, memory: Memory, entry: StoredEntry) -> None:
        self.drop(memory, entry.key)
        self._values[memory, entry.key] = entry.value
        memory.keys.add(entry.key)
        self.size += len(entry.value) + _OVERHEAD
        while self.size > self._most:
            owner, key = next(iter(self._values))
            self.drop(owner, key)

    def drop(self, memory: Memory, key: EntryKey) -> None:
        value = self._values.pop((memory, key), None)
        if value is not None:
            memory.keys.discard(key)
            self.size -= len(value) + _OVERHEAD


class Memory:
    """The entries of one connection."""

    __slots__ = ("_all", "keys")

    def __init__(self, memories: Memories) -> None:
        self._all = memories
        self.keys: set[EntryKey] = set()

    def get(self, keys: Sequence[EntryKey]) -> dict[EntryKey, bytes]:
        """The values of `keys`. Missing keys are left out."""
        found = ((key, self._all.get(self, key)) for key in keys)
        return {key: value for key, value in found if value is not None}

    def put(self, entries: Sequence[StoredEntry]) -> None:
        for entry in entries:
            self._all.put(self, entry)

    def drop(self, key: EntryKey) -> None:
        self._all.drop(self, key)

    def close(self) -> None:
        """Drop all entries. Call this when the connection closes."""
        for key in tuple(self.keys):
            self.drop(key)
