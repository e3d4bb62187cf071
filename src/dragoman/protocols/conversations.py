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

# All bounds together: about four times as many bytes are held, with what was worked out of them.
MOST_BYTES = 12 * 1024 * 1024
MOST = 64
# So much at the end of a beginning tells one conversation from another in nearly all cases.
_TELLS = 64
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
    at: int
    """Where the list begins in the body."""
    ends: dict[int, int]
    """Where the last beginnings end, by their number of messages."""


class Conversation:
    """One request's body and what was read out of it."""

    __slots__ = ("at", "body", "ends", "history", "name")

    def __init__(self, name: str, body: bytes, cut: Cut, history: History) -> None:
        self.name = name
        self.body = body
        self.at = cut.at
        self.ends = cut.ends
        self.history = history

    def shared(self, body: bytes, at: int) -> int:
        """How many messages a list that begins `at` has in common with this one: 0, or nearly all."""
        first = min(self.ends)
        end = self.ends[first]
        shift = at - self.at
        if body[end + shift - _TELLS : end + shift] != self.body[end - _TELLS : end]:
            return 0
        if not body.startswith(self.body[self.at : end], at):
            return 0
        for count in sorted(self.ends)[1:]:
            further = self.ends[count]
            if not body.startswith(self.body[end:further], end + shift):
                break
            first, end = count, further
        return first


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
        return self._continued(body, name) or _new(body, name)

    def keep(self, body: bytes, name: str, cut: Cut, history: History) -> None:
        """For the requests to come. The conversation that began the same has done its work."""
        if cut.before is not None and id(cut.before) in self._kept:
            self._forget(cut.before)
        if not cut.ends:
            return
        conversation = Conversation(name, body, cut, history)
        self._kept[id(conversation)] = conversation
        self._size += len(body)
        while len(self._kept) > self._most or (self._size > self._most_bytes and len(self._kept) > 1):
            self._forget(next(iter(self._kept.values())))

    def _forget(self, conversation: Conversation) -> None:
        del self._kept[id(conversation)]
        self._size -= len(conversation.body)

    def _continued(self, body: bytes, name: str) -> Cut | None:
        for conversation in reversed(self._kept.values()):
            if conversation.name == name:
                count = conversation.shared(body, conversation.at)
                if count:
                    cut = _without(body, name, conversation, count, conversation.at)
                    if cut is not None:
                        return cut
        for at in _places(body, name):
            for conversation in reversed(self._kept.values()):
                count = conversation.shared(body, at) if conversation.name == name else 0
                if count:
                    cut = _without(body, name, conversation, count, at)
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


def _without(body: bytes, name: str, before: Conversation, count: int, at: int) -> Cut | None:
    """`body` without its first `count` messages, which are those of `before`; None if that is not so."""
    end = before.ends[count] + at - before.at
    rest = body[:at] + _STAND_IN + body[end:]
    members = _members(rest)
    given = members.get(name, msgspec.Raw())
    if len(given) < len(_STAND_IN) or not rest.startswith(bytes(given), at):
        return None
    items = _items(given)[1:]
    gone = end - at - len(_STAND_IN)
    ends = {n: e + at - before.at for n, e in before.ends.items() if n <= count}
    ends |= {n: e + at + gone for n, e in _ends(given, items, count).items()}
    latest = count + len(items) - LATELY
    return Cut(members, items, before, count, at, {n: e for n, e in ends.items() if n > latest})


def _new(body: bytes, name: str) -> Cut | None:
    members = _members(body)
    given = members.get(name)
    if given is None or memoryview(given)[0] != ord("["):
        return None
    items = _items(given)
    if not items:
        return None
    whole = bytes(given)
    at = next((at for at in _places(body, name) if body.startswith(whole, at)), None)
    ends = {} if at is None else {n: e + at for n, e in _ends(given, items, 0).items()}
    return Cut(members, items, None, 0, at or 0, ends)


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
