"""Something that was read before, and what was worked out of it since."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Known:
    """A JSON value by its bytes."""

    __slots__ = ("_notes", "data", "key", "value")

    def __init__(self, data: bytes, value: Any, key: bytes) -> None:
        self.data = data
        self.key = key
        """What it is looked up by."""
        self.value = value
        self._notes: dict[str, tuple[Any, Any]] = {}

    def note(self, name: str, key: Any, make: Callable[[], tuple[T, bool]]) -> T:
        """What `make` gave for the same `key`, or gives now; it also says whether to remember that."""
        found = self._notes.get(name)
        if found is not None and found[0] == key:
            return found[1]
        result, keep = make()
        if keep:
            self._notes[name] = (key, result)
        return result

    def once(self, name: str, make: Callable[[], T]) -> T:
        """The same for what depends on nothing else: it is always remembered."""
        found = self._notes.get(name)
        if found is None:
            found = self._notes[name] = (None, make())
        return found[1]
