"""A conversation as it is read: most of its messages only when somebody asks for them.

An agent sends its whole history with every turn. What the last request already had is known by its bytes
(`conversations.py`), and of the rest a plain message is left as it is: a writer that can do without a
`Message` never makes one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast, overload

import msgspec

from ..errors import BadRequest
from ..messages import Message
from .listed import Listed
from .pieces import Whole
from .plain import Plain

T = TypeVar("T")

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode

_NOTHING: dict[int, Any] = {}
"""Stays so."""

Read = Callable[[bytes | msgspec.Raw, int], Message]
"""Makes a message out of its JSON and its place among the messages of the request."""
ReadAll = Callable[[bytes], list[Any]]
"""Reads a list of messages that was read before: of those that were plain it gives the same."""


def decoded(item: bytes | msgspec.Raw, at: int) -> Any:
    """What the message at that place of the list says. That it is JSON is known, but there are numbers that
    only those can take who leave them as they are."""
    try:
        return msgspec.json.decode(item)
    except msgspec.DecodeError as error:
        raise BadRequest(f"cannot be read: {error}", f"messages[{at}]") from None


class History(Sequence[Message]):
    """The messages of one request: those that stand elsewhere in it (`leading`), then those of its list."""

    __slots__ = (
        "__weakref__", "_called", "_data", "_held", "_listed", "_made", "_notes", "_read",
        "_read_all", "_unusual", "ahead", "calls", "gone_on", "leading", "marked", "protocol", "read_more",
        "size", "thoughts", "told", "usual",
    )  # fmt: skip

    def __init__(
        self,
        protocol: str,
        read: Read,
        read_all: ReadAll,
        listed: Listed,
        leading: tuple[Message, ...],
        ahead: Sequence[Any] = (),
    ) -> None:
        self.protocol = protocol
        """Over which it came."""
        self.leading = leading
        self.ahead = ahead
        """What stands in the list before the first message, and is none: Codex has its tools there."""
        self.size = 0
        """So many messages are in the list."""
        self.calls: dict[str, int] = {}
        """Those of the list, each with the place of the first message that has it, in the order of these. Who
        goes on from here adds its own behind them."""
        self._called = 0
        """So many of these are ours."""
        self.gone_on = False
        """Did it begin like another one?"""
        self.told = -1
        """The last of the list that is a system's and not plain; -1 if there is none."""
        self.marked: dict[int, int] = {}
        """Which of the list are plain but for the cache marks on them, and how many these are."""
        self.thoughts: dict[int, bool] = {}
        """Which of the list are plain and hold thoughts, and is there a signature on all of these?"""
        self.usual: set[int] = set()
        """Where turns of the list begin that were found to be one call, perhaps after some words, and its
        result, all plain: nobody who writes them has to look again. Not of what was known before."""
        self.read_more: ReadAll | None = None
        """Reads what is added to the list when it goes on, where it is known who does so best."""
        self._read = read
        self._read_all = read_all
        self._listed = listed
        self._data: Mapping[int, msgspec.Raw] = _NOTHING
        """The JSON of all of the list, once one of its first was asked for."""
        self._held: tuple[list[Plain | None], int] = ([], 0)
        """The plain messages, with None for those that are not plain, but for so many of the first: these are
        read again if somebody asks. Always replaced as one: another thread may be going on from here."""
        self._unusual: dict[int, Message] = _NOTHING
        self._made: dict[int, Message] = {}
        self._notes: dict[str, tuple[int, Any, Any, bool]] = {}
        """What was worked out of how many messages of the list, under which key; did cache marks matter?"""

    def begun(
        self, count: int, listed: Listed, leading: tuple[Message, ...], *, unmarked: bool = False
    ) -> History:
        """Another conversation that begins with the first `count` messages of the list, the last of them
        perhaps `unmarked`: without its cache mark."""
        other = History(self.protocol, self._read, self._read_all, listed, leading, self.ahead)
        other.gone_on = True
        other.read_more = self.read_more
        other.size = count
        other.calls = self._first_calls(count)
        other._called = len(other.calls)
        plain, first = self._held
        other._held = plain[: max(0, count - first)], min(first, count)
        same, size = count - unmarked, self.size
        if self.marked and min(self.marked) < same:
            other.marked = _without(self.marked, range(same, size))
        if self.thoughts:
            other.thoughts = _without(self.thoughts, range(same, size))
        if self._unusual:
            other._unusual = _without(self._unusual, range(same, size))
            other.told = self.told if self.told < same else _last_told(other._unusual)
        if self._made:
            other._made = _without(self._made, range(same, size))
        for name, note in self._notes.copy().items():  # another thread may be writing this one
            most = same if note[3] else count
            other._notes[name] = note if note[0] <= most else (most, *note[1:])
        return other

    def _first_calls(self, count: int) -> dict[str, int]:
        """The calls of the first `count` messages: the very same, of which there may be many, where there are
        no others."""
        calls = self.calls
        if len(calls) == self._called and next(reversed(calls.values()), -1) < count:
            return calls
        calls = calls.copy()
        while len(calls) > self._called or next(reversed(calls.values()), -1) >= count:
            calls.popitem()
        return calls

    def add(
        self,
        plain: Sequence[Plain | None],
        unusual: Mapping[int, Message],
        made: Mapping[int, Message] = _NOTHING,
    ) -> None:
        """The messages that were not known: then all are there. `made` are plain ones that others than those
        who read them now could not make of their JSON alone."""
        self._held[0].extend(plain)
        self.size += len(plain)
        self._called = len(self.calls)
        if unusual:
            self._unusual = {**self._unusual, **unusual}
        if made:
            self._made.update(made)

    def noted(self, name: str, key: Any) -> tuple[int, Any]:
        """What was worked out of a beginning of the list, and how many of its messages are still the same."""
        found = self._notes.get(name)
        return (found[0], found[2]) if found is not None and found[1] == key else (0, None)

    def note(self, name: str, key: Any, result: Any, *, marks: bool = False) -> None:
        """Something that was worked out of all messages of the list, with or without the `marks` on them."""
        self._notes[name] = (self.size, key, result, marks)

    def plain(self, index: int) -> Plain | None:
        """The message at `index`, where it is plain, with or without cache marks."""
        at = index - len(self.leading)
        return self.plain_at(at) if at >= 0 else None

    def plain_at(self, at: int) -> Plain | None:
        """The same for a place of the list."""
        plain, first = self.plain_ones(at)
        return plain[at - first]

    def plain_ones(self, at: int) -> tuple[Sequence[Plain | None], int]:
        """The last messages of the list, with None for those that are not plain, and the place of the first
        of them, which is not behind `at`."""
        held = self._held
        return held if at >= held[1] else self._remember()

    def plains(self, start: int) -> Sequence[Plain | None]:
        """The same for all messages from `start` on."""
        at = start - len(self.leading)
        plain, first = self.plain_ones(max(at, 0))
        return plain[at - first :] if at >= 0 else [None] * -at + [*plain]

    @property
    def at_hand(self) -> int:
        """From the message at this index on, none has to be read again."""
        return len(self.leading) + self._held[1]

    def forget(self, count: int) -> None:
        """The first `count` of the list are not likely to be asked for again, and there are their bytes."""
        plain, first = self._held
        if count > first:
            self._held = plain[count - first :], count

    def _remember(self) -> tuple[list[Plain | None], int]:
        again = self._read_all(b"".join(self.json().pieces))
        plain, first = self._held
        known = [None if at in self._unusual else again[at] for at in range(first)]
        self._held = held = [*known, *plain], 0
        return held

    def unusual(self) -> Mapping[int, Message]:
        """The messages of the list that are not plain, by their places in it."""
        return self._unusual

    def value(self, at: int) -> Any:
        """What a message of the list says."""
        return decoded(self.item(at), at)

    def item(self, at: int) -> bytes | msgspec.Raw:
        """The JSON of a message of the list."""
        data = self._listed.item(at) if not self._data else self._data[at]
        if data is None:
            self._data = dict(enumerate(_items(b"".join(self.json().pieces)), -len(self.ahead)))
            data = self._data[at]
        return data

    def json(self) -> Whole:
        """The list as it came."""
        return self._listed.json()

    @property
    def body(self) -> Whole | None:
        """The whole request, where it is in pieces that are held in any case."""
        return self._listed.body if self.gone_on else None

    def changed(self, messages: Mapping[int, Message]) -> History:
        """The same conversation with other messages in some places."""
        first = min(messages) - len(self.leading)
        leading = tuple(messages.get(at, old) for at, old in enumerate(self.leading))
        other = self.begun(max(0, first), self._listed, leading)
        other.gone_on = self.gone_on
        other.size = self.size
        other.marked = self.marked
        other.thoughts = self.thoughts
        other._data = self._data
        plain, held_from = self._held
        other._held = (plain := plain.copy()), held_from
        other._made = self._made.copy()
        other._unusual = self._unusual.copy()
        for index, message in messages.items():
            at = index - len(self.leading)
            if at >= 0:
                other._unusual[at] = message
            if at >= held_from:
                plain[at - held_from] = None
        return other

    def __len__(self) -> int:
        return len(self.leading) + self.size

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Message, ...]: ...
    def __getitem__(self, index: int | slice) -> Message | tuple[Message, ...]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
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
        made = self._unusual.get(at) or self._made.get(at)
        if made is None:
            made = self._made[at] = self._read(self.item(at), at)
        return made


class Values(Sequence[Any]):
    """The JSON of the messages of a history's list, for those who want them as they came."""

    __slots__ = ("history",)

    def __init__(self, history: History) -> None:
        self.history = history

    def __len__(self) -> int:
        return len(self.history.ahead) + self.history.size

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        return self.history.value(range(len(self))[index] - len(self.history.ahead))

    def json(self) -> Whole:
        """All of them as they came."""
        return self.history.json()

    def unusual(self, start: int = 0) -> Iterator[tuple[int, Any]]:
        """Those of messages from `start` on that are not plain, with their places."""
        found = self.history.unusual().items()
        return ((at, m.raw.value) for at, m in found if at >= start and m.raw is not None)

    def untouched(self, name: str, key: Any, is_same: Callable[[Any, int], bool]) -> bool:
        """Would who writes them for `key` leave all of them as they are, of which plain ones are known to be?
        Of a conversation that goes on, only what is new is looked at."""
        count, _ = self.history.noted(name, key)
        if not all(is_same(value, at) for at, value in self.unusual(count)):
            return False
        self.history.note(name, key, None)
        return True

    def __eq__(self, other: object) -> bool:
        return (
            list(self) == list(cast("Sequence[Any]", other)) if isinstance(other, (Values, list)) else False
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(list(self))


def _last_told(messages: Mapping[int, Message]) -> int:
    return max((at for at, message in messages.items() if message.role == "system"), default=-1)


def _without(found: dict[int, T], places: range) -> dict[int, T]:
    """All but those of these places, which are few."""
    others = found.copy()
    for at in places:
        others.pop(at, None)
    return others
