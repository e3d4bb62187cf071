"""A conversation as it is read: most of its messages only when somebody asks for them.

An agent sends its whole history with every turn. What the last request already had is known by its bytes
(`conversations.py`), and of the rest a plain message is left as it is: a writer that can do without a
`Message` never makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast, overload

import msgspec

from ..messages import Message
from .pieces import Whole
from .plain import Plain
from .turns import Pairing

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode

Read = Callable[[Any, int], Message]
"""Makes a message out of its JSON and its place among the messages of the request."""

# An agent moves its cache marks along: the last few messages of a turn come again a little different.
LATELY = 6


class Beginning:
    """The first so many messages of a conversation, and what was worked out of them."""

    __slots__ = ("_notes",)

    def __init__(self) -> None:
        self._notes: dict[str, tuple[Any, Any]] = {}

    def noted(self, name: str, key: Any) -> Any:
        found = self._notes.get(name)
        return found[1] if found is not None and found[0] == key else None

    def keep(self, name: str, key: Any, result: Any) -> None:
        self._notes[name] = (key, result)


class History(Sequence[Message]):
    """The messages of one request: those that stand elsewhere in it (`leading`), then those of its list."""

    def __init__(self, read: Read, leading: tuple[Message, ...] = ()) -> None:
        self.leading = leading
        self.pairing = Pairing()
        self.beginnings: dict[int, Beginning] = {}
        """By the number of messages of the list; for the last few places only."""
        self._read = read
        self.body: Whole | None = None
        """The whole request, where it is in pieces that are held in any case."""
        self._list = Whole([b"[]"])
        self._data: dict[int, msgspec.Raw] = {}
        """The JSON of some of them; that of the others stands in the list."""
        self._plain: list[Plain | None] = []
        self._unusual: dict[int, Message] = {}
        self._made: dict[int, Message] = {}

    def begun(self, count: int, leading: tuple[Message, ...]) -> History:
        """Another conversation that begins with the first `count` messages of the list."""
        other = History(self._read, leading)
        other.pairing = self.pairing.until(count)
        other.beginnings = {at: known for at, known in self.beginnings.items() if at <= count}
        other._data = {at: data for at, data in self._data.items() if at < count}
        other._plain = self._plain[:count]
        other._unusual = {at: message for at, message in self._unusual.items() if at < count}
        other._made = {at: message for at, message in self._made.items() if at < count}
        return other

    def listed(self, json: Whole, items: Mapping[int, msgspec.Raw]) -> None:
        """The JSON of the whole list, and that of some of its items by their places."""
        self._list = json
        self._data |= items

    def add(self, plain: Sequence[Plain | None], unusual: Mapping[int, Message]) -> None:
        """The messages that were not known: then all are there."""
        self._plain += plain
        self._unusual |= unusual
        count = len(self._plain)
        places = range(max(1, count - LATELY + 1), count + 1)
        self.beginnings = {at: self.beginnings.get(at) or Beginning() for at in places}

    def known(self, name: str, key: Any) -> tuple[int, Any]:
        """The longest beginning for which something was kept, by its number of messages, and that."""
        for count in sorted(self.beginnings, reverse=True):
            found = self.beginnings[count].noted(name, key)
            if found is not None:
                return count, found
        return 0, None

    def plain(self, index: int) -> Plain | None:
        """The message at `index`, where it is plain."""
        at = index - len(self.leading)
        return self._plain[at] if at >= 0 else None

    @property
    def plain_ones(self) -> Sequence[Plain | None]:
        """The list, with None in the places of messages that are not plain."""
        return self._plain

    def plains(self, start: int) -> list[Plain | None]:
        """The same for all messages from `start` on."""
        at = start - len(self.leading)
        return self._plain[at:] if at >= 0 else [None] * -at + self._plain

    def unusual(self) -> Mapping[int, Message]:
        """The messages of the list that are not plain, by their places in it."""
        return self._unusual

    def value(self, at: int) -> Any:
        """The JSON of a message of the list."""
        if at not in self._data:
            self._data = dict(enumerate(_items(b"".join(self._list.pieces))))
        return msgspec.json.decode(self._data[at])

    def json(self) -> Whole:
        """The list as it came."""
        return self._list

    def changed(self, messages: Mapping[int, Message]) -> History:
        """The same conversation with other messages in some places."""
        first = min(messages) - len(self.leading)
        other = self.begun(max(0, first), self.leading)
        if first < 0:
            other.leading = tuple(messages.get(at, old) for at, old in enumerate(self.leading))
            other.beginnings = {}
        other._list = self._list
        other._data = self._data
        other._plain = self._plain.copy()
        other._unusual = self._unusual.copy()
        for index, message in messages.items():
            if index >= len(self.leading):
                other._plain[index - len(self.leading)] = None
                other._unusual[index - len(self.leading)] = message
        return other

    def __len__(self) -> int:
        return len(self.leading) + len(self._plain)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        if index < 0:
            index += len(self)
        if index < 0:
            raise IndexError(index)
        at = index - len(self.leading)
        return self.leading[index] if at < 0 else self._message(at)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (History, tuple)):
            return NotImplemented
        return tuple(self) == tuple(cast("Sequence[Message]", other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def _message(self, at: int) -> Message:
        if self._plain[at] is None:
            return self._unusual[at]
        made = self._made.get(at)
        if made is None:
            made = self._made[at] = self._read(self.value(at), at)
        return made


class Values(Sequence[Any]):
    """The JSON of the messages of a history's list, for those who want them as they came."""

    def __init__(self, history: History) -> None:
        self.history = history

    def __len__(self) -> int:
        return len(self.history) - len(self.history.leading)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return self.history.value(range(len(self))[index])

    def json(self) -> Whole:
        """All of them as they came."""
        return self.history.json()

    def unusual(self) -> Iterator[tuple[int, Any]]:
        """Those of messages that are not plain, with their places."""
        return ((at, m.raw.value) for at, m in self.history.unusual().items() if m.raw is not None)

    def __eq__(self, other: object) -> bool:
        return (
            list(self) == list(cast("Sequence[Any]", other)) if isinstance(other, (Values, list)) else False
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))
