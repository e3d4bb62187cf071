"""Conversations that went on lately, known by the bytes of their requests.

An agent's next request is its last one with a little more at the end. So the list of messages is looked for
where it began before, and compared as bytes: what is the same need not be read at all. A token is put in its
place, and only what is left goes through the JSON reader. Where the token comes out as the first item of
the list, the bytes it stands for are the beginning of that list: after the same bytes, a parser is in the
same state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from .history import LATELY, History

# Of bodies; about three times as many bytes are held, with what was worked out of them.
MOST_BYTES = 12 * 1024 * 1024
MOST = 64
_TELLS = 256
"""Bytes that are compared before all are."""
_PIECE = 32 * 1024
_PLACES = 16
"""So often is the name of the list looked for: it may stand in prompts and schemas as well."""

_STAND_IN = b'["\\u0000the messages that are known\\u0000"'
"""Begins a list as no client does; whoever does fools nobody but itself, with messages of its own."""
_BLANKS = b" \t\r\n"
_OPENS = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*(?=\[)")

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Cut(msgspec.Struct):
    """A request's body, cut into its members and the items of its list of messages."""

    members: dict[str, msgspec.Raw]
    """The list stands for itself among them: whoever reads it puts something else in its place."""
    items: list[msgspec.Raw]
    """Of the list, those that are not known."""
    before: Conversation | None
    """The conversation that began the same."""
    count: int
    """How many messages of the list are known from it."""
    data: bytes | msgspec.Raw
    """Has the list in it."""
    start: int
    """Where the list begins in that."""
    ends: dict[int, int]
    """Where its last beginnings end, by their number of messages."""
    place: int
    """Where the list begins in the body, or may begin."""
    size: int
    """Of the body, which all this holds."""


class Conversation:
    """The list of messages of one request, and what was read out of it."""

    __slots__ = ("_head", "_tail", "data", "ends", "history", "name", "place", "size", "start")

    def __init__(self, name: str, cut: Cut, history: History) -> None:
        self.name = name
        self.data = cut.data
        self.start = cut.start
        self.ends = cut.ends
        self.place = cut.place
        self.size = cut.size
        self.history = history
        end = min(self.ends.values())
        self._head = self._bytes(self.start, min(self.start + _TELLS, end))
        self._tail = self._bytes(max(self.start, end - _TELLS), end)

    def shared(self, body: bytes, place: int) -> int:
        """How many messages a list that begins at `place` has in common with this one: 0, or nearly all."""
        shift, known, end = place - self.start, 0, self.start
        tail = min(self.ends.values()) - len(self._tail)
        # A few bytes tell one conversation from another in nearly all cases.
        if not (body.startswith(self._tail, tail + shift) and body.startswith(self._head, place)):
            return 0
        for count in sorted(self.ends):
            if not self._same(body, shift, end, self.ends[count]):
                break
            known, end = count, self.ends[count]
        return known

    def _same(self, body: bytes, shift: int, start: int, end: int) -> bool:
        """Piece by piece: memory for all of it at once would be taken from the system every time."""
        pieces = range(start, end, _PIECE)
        return all(body.startswith(self._bytes(at, min(at + _PIECE, end)), at + shift) for at in pieces)

    def _bytes(self, start: int, end: int) -> bytes:
        return bytes(memoryview(self.data)[start:end])


class Conversations:
    """The ones that went on lately, bounded in number and in bytes."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._size = 0
        self._kept: dict[int, Conversation] = {}
        """By identity, the latest last."""

    def cut(self, body: bytes, name: str) -> Cut | None:
        """`body` cut up; None where it has no such list, or an empty one. Raises ValueError for no JSON."""
        kept = [conversation for conversation in reversed(self._kept.values()) if conversation.name == name]
        # Usually the list begins where it began before.
        known = _continued(body, [(conversation, conversation.place) for conversation in kept])
        if known is not None:
            return known
        new = _new(body, name)
        if new is None:
            return None
        return _continued(body, [(conversation, new.place) for conversation in kept]) or new

    def keep(self, name: str, cut: Cut, history: History) -> None:
        """For the requests to come. The conversation that began the same has done its work."""
        if cut.before is not None and id(cut.before) in self._kept:
            self._forget(cut.before)
        if not cut.ends:
            return
        conversation = Conversation(name, cut, history)
        self._kept[id(conversation)] = conversation
        self._size += conversation.size
        while len(self._kept) > self._most or (self._size > self._most_bytes and len(self._kept) > 1):
            self._forget(next(iter(self._kept.values())))

    def _forget(self, conversation: Conversation) -> None:
        del self._kept[id(conversation)]
        self._size -= conversation.size


def _continued(body: bytes, likely: list[tuple[Conversation, int]]) -> Cut | None:
    """What `body` says after the first of these conversations that it goes on with, at that place."""
    for conversation, place in likely:
        count = conversation.shared(body, place)
        cut = _without(body, conversation, count, place) if count else None
        if cut is not None:
            return cut
    return None


def _places(body: bytes, name: str) -> Iterator[int]:
    """Where the list may begin."""
    key = f'"{name}"'.encode()
    at = 0
    for _ in range(_PLACES):
        at = body.find(key, at) + len(key)
        if at < len(key):
            return
        opens = _OPENS.match(body, at)
        if opens is not None:
            yield opens.end()


def _without(body: bytes, before: Conversation, count: int, place: int) -> Cut | None:
    """`body` without its first `count` messages, which are those of `before`; None if that is not so."""
    shift = place - before.start
    end = before.ends[count] + shift
    rest = body[:place] + _STAND_IN + body[end:]
    members = _checked_members(rest)
    given = members.get(before.name, msgspec.Raw())
    if len(given) < len(_STAND_IN) or not rest.startswith(bytes(given), place):
        return None
    items = _items(given)[1:]
    gone = end - place - len(_STAND_IN)
    ends = {number: at + shift for number, at in before.ends.items() if number <= count}
    ends |= {number: at + place + gone for number, at in _ends(given, items, count).items()}
    late = {number: at for number, at in ends.items() if number > count + len(items) - LATELY}
    return Cut(members, items, before, count, body, place, late, place, len(body))


def _checked_members(body: bytes) -> dict[str, msgspec.Raw]:
    """What is not read is checked by the JSON reader, but for this."""
    if not body.isascii():
        body.decode()
    return _members(body)


def _new(body: bytes, name: str) -> Cut | None:
    members = _checked_members(body)
    given = members.get(name)
    if given is None or memoryview(given)[0] != ord("["):
        return None
    items = _items(given)
    if not items:
        return None
    ends, place = _ends(given, items, 0), _place(body, members, name)
    return Cut(members, items, None, 0, given, 0, ends, place, len(body))


def _place(body: bytes, members: dict[str, msgspec.Raw], name: str) -> int:
    """Where the list is likely to begin: as nearly everybody writes it, there are no blanks."""
    begins = bytes(memoryview(members[name])[:_TELLS])
    place = 1
    for key, value in members.items():
        place += len(key.encode()) + 3
        if key == name:
            break
        place += len(value) + 1
    if body.startswith(begins, place):
        return place
    return next((place for place in _places(body, name) if body.startswith(begins, place)), 0)


def _ends(given: msgspec.Raw, items: list[msgspec.Raw], before: int) -> dict[int, int]:
    """Where the last of `items`, which stand at the end of the list `given`, end in it."""
    data = memoryview(given)
    end = len(data) - 1
    ends: dict[int, int] = {}
    for number in range(len(items), max(0, len(items) - LATELY), -1):
        while data[end - 1] in _BLANKS:
            end -= 1
        ends[before + number] = end
        end -= len(items[number - 1])
        while data[end - 1] in _BLANKS:
            end -= 1
        end -= 1  # the comma, or what opens the list
    return ends
