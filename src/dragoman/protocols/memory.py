"""Agents send their whole history with every turn: what was worked out of a piece of it is remembered.

A message is known by its bytes. The first time, they are read as JSON; when the same bytes come again, the
very same value is given, and what was noted beside it (the neutral message, how it is written for an
upstream) need not be worked out again. So turn n costs what is new in turn n. Values are shared between
requests, which is safe because nobody changes what was read: whoever wants something else makes a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any, TypeVar

import msgspec

from ..messages import Request
from .conversations import Conversations, Cut
from .history import History
from .known import Known
from .later import Unread
from .pieces import Body

T = TypeVar("T")

# Enough for the conversations that are going on; each byte costs about four, with all that is noted.
DEFAULT_MOST = 4 * 1024 * 1024
# Below this, reading a conversation anew costs less than looking whether it is known.
WORTH_IT = 512
# Lists that grow from turn to turn: remembered item by item.
_HISTORIES = ("messages", "input", "contents")
_TOOLS = "tools"
_OPENS = ord("[")
# The rest of a request is settings, but for tools and system prompts. Less is sooner read than looked up.
_LARGE = 128
# What is long is looked up by some of its bytes, and then compared: to hash all of them takes longer.
_LONG = 4096
_STEP = 61

# Any other value may be the same object elsewhere: None, 1, "".
_OWN = (dict, list, Unread)

_decode = msgspec.json.Decoder().decode
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Memory:
    """A bounded memory of JSON by its bytes. What was not asked for in a long time is forgotten."""

    def __init__(self, most: int = DEFAULT_MOST) -> None:
        self._most = most // 2
        self._size = 0
        # Two generations: what is asked for stays in the younger one. Cheaper than an order of all.
        self._young: dict[bytes, Known] = {}
        self._old: dict[bytes, Known] = {}
        self._young_ids: dict[int, Known] = {}
        self._old_ids: dict[int, Known] = {}
        self.conversations = Conversations()
        self.reading = Lock()
        """Held while a conversation is read: it shares with the one it goes on from, and so may one that is
        read in another thread."""

    def read(self, data: bytes) -> Any:
        """The JSON value of `data`. Raises ValueError or RecursionError where it is none."""
        value = self._found(data, _decode)
        return value.values if type(value) is Unread else value

    def unread(self, data: bytes) -> Any:
        """The list that `data`, which must be JSON, is; `Unread` unless it was read before."""
        return self._found(data, Unread)

    def _found(self, data: bytes, make: Callable[[bytes], Any]) -> Any:
        key = data if len(data) < _LONG else data[::_STEP]
        known = self._young.get(key) or self._old.get(key)
        if known is not None and known.data != data:
            key = data  # there is another one like it at all the places that were looked at
            known = self._young.get(key) or self._old.get(key)
        if known is None or known.data != data:
            known = Known(data, make(data), key)
        self.again((known,))
        return known.value

    def known(self, value: Any) -> Known | None:
        """What is known beside a value that was read here; None for any other."""
        return self._young_ids.get(id(value)) or self._old_ids.get(id(value))

    def again(self, several: Iterable[Known]) -> None:
        """The same bytes came again, though nobody had to look at them."""
        for known in several:
            if self._young.get(known.key) is not known:
                self._old.pop(known.key, None)
                self._keep(known)

    def keep(self, name: str, cut: Cut, history: History, request: Request) -> None:
        """A conversation, for the requests to come."""
        if cut.members is None and cut.before is not None:
            known = cut.before.known  # all that is remembered of its members is what it was
            self.again(known)
        else:
            members: dict[str, Any] = request.raw.value if request.raw is not None else {}
            known = [one for value in members.values() if (one := self.known(value)) is not None]
        self.conversations.keep(name, cut, history, request, known)

    def _keep(self, known: Known) -> None:
        size = len(known.data)
        if self._size + size > self._most:
            self._old, self._young = self._young, {}
            self._old_ids, self._young_ids = self._young_ids, {}
            self._size = 0
        self._size += size
        self._young[known.key] = known
        if type(known.value) in _OWN:
            self._young_ids[id(known.value)] = known


MEMORY = Memory()


def read_object(body: Body) -> Any:
    """The JSON of a request, as far as possible out of memory. Raises like `Memory.read`."""
    if len(body) < _LARGE:
        return _decode(body)
    return {key: _decode(d) if len(d) < _LARGE else _member(key, d) for key, d in _split(body).items()}


def read_member(key: str, data: msgspec.Raw | memoryview) -> Any:
    """The JSON of a member of a request that is no list of messages. Raises like `Memory.read`."""
    if len(data) < _LARGE:
        return _decode(data)
    if key == _TOOLS and memoryview(data)[0] == _OPENS:
        return MEMORY.unread(bytes(data))
    return MEMORY.read(bytes(data))


def read_members(members: Mapping[str, Any], name: str) -> dict[str, Any]:
    """All of a request's members but its list of messages called `name`; its tools may be `Unread`. Raises
    like `Memory.read`."""
    return {
        key: None if key == name else read_member(key, data) if type(data) is msgspec.Raw else data
        for key, data in members.items()
    }


def _member(key: str, data: msgspec.Raw) -> Any:
    if key in _HISTORIES and memoryview(data)[0] == _OPENS:
        return [MEMORY.read(bytes(item)) for item in _items(data)]
    return MEMORY.read(bytes(data))


def remembered(value: Any, name: str, make: Callable[[], T]) -> T:
    """What `make` works out of `value` alone."""
    known = MEMORY.known(value)
    return make() if known is None else known.once(name, make)
