"""The list of messages of a request, as bytes: how far another request says the same, and what it adds.

The list is held in two parts. All but the last few messages are settled, and are compared as they lie there.
The last few come again a little different, since an agent moves its cache marks along: of these it is known
where each one ends. What a list adds to another one is all that is held of it beside the pieces of that one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .pieces import Body, Whole, join_short

LATELY = 6
"""So many of the last places are known where another list may part from this one."""

_BEGINS = b'{"role":'
"""A message, as nearly everybody writes one."""
_NEXT = b"," + _BEGINS
_BLANKS = b" \t\r\n"
_BETWEEN = _BLANKS + b","

_MARKS = (
    b',"cache_control":{"type":"ephemeral"}}]}',
    b',"cache_control":{"type":"ephemeral","ttl":"1h"}}]}',
    b',"cache_control":{"type":"ephemeral","ttl":"5m"}}]}',
)
"""How a message ends whose last part has a cache mark."""
_UNMARKED = b"}]}"
_MARK = b'"cache_control":'

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


Read = Callable[[bytes | memoryview], list[Any]]
"""Reads a JSON list of messages. Raises `msgspec.DecodeError` for anything else."""


class Added(msgspec.Struct, frozen=True):
    """What a list says behind the messages of another one."""

    json: bytes
    messages: list[Any]
    ends: list[int]
    """Where they end in `json`; of many perhaps only the last few."""


class Listed(msgspec.Struct, frozen=True):
    """The list of messages of a request, and what stands around it."""

    early: list[memoryview]
    """The list up to the end of the last message that is settled."""
    late: memoryview
    """All behind that, up to the end of the last message."""
    ends: list[int]
    """Where messages end in `late`; first of all the last one of `early`, at 0."""
    first: int
    """So many messages are settled, one at least."""
    start: int
    """So many bytes are."""
    head: memoryview | None
    """What stands before the list in the body. None where its place is not certain."""
    tail: memoryview
    """What stands behind its last message."""
    place: int
    """Where it begins in the body, or may begin."""
    size: int
    """Of the body."""

    def __deepcopy__(self, memo: object) -> Listed:
        return self  # nothing in it changes, and a view cannot be copied

    def shared(self, body: Body, place: int) -> int:
        """How many of `ends` a list that begins at `place` reaches with the same bytes: nearly all, or 0."""
        at = place
        for piece in self.early:
            if not body.startswith(piece, at):
                return 0
            at += len(piece)
        late, ends = self.late, self.ends
        reached = len(ends)
        while reached > 1 and not body.startswith(late[: ends[reached - 1]], at):
            reached -= 1
        return reached

    def unmarked(self, body: Body, place: int, reached: int) -> Listed | None:
        """The list up to the message at the next end, if `body` has that without its only cache mark, on its
        last part. That the message is plain but for it is for others to know."""
        if reached == len(self.ends):
            return None
        begins = self.ends[reached - 1]
        message = bytes(self.late[begins : self.ends[reached]])
        mark = next((mark for mark in _MARKS if message.endswith(mark)), None)
        if mark is None:
            return None
        message = message[: -len(mark)] + _UNMARKED
        if _MARK in message or not body.startswith(message, place + self.start + begins):
            return None
        late = memoryview(b"".join((self.late[:begins], message)))
        return msgspec.structs.replace(self, late=late, ends=[*self.ends[:reached], len(late)])

    def same_around(self, body: Body, place: int) -> bool:
        """Does `body` say the same before and behind its list?"""
        head = self.head
        return head is not None and place == self.place and body.startswith(head) and body.endswith(self.tail)

    def longer(self, reached: int, added: Added, head: memoryview, tail: memoryview, size: int) -> Listed:
        """The list that goes on with what is `added` after so many of the ends."""
        ends = self.ends[:reached]
        end = ends[-1]
        late = memoryview(b"".join((self.late[:end], added.json)))
        for at in added.ends:
            ends.append(end + at)
        early, start = self.early, self.start
        settled = len(ends) - LATELY
        if settled > 0:
            stop = ends[settled]
            early = [*early, late[:stop]]
            join_short(early)
            start += stop
            ends = [at - stop for at in ends[settled:]]
            late = late[stop:]
        first = self.first + reached + len(added.messages) - len(ends)
        return Listed(early, late, ends, first, start, head, tail, len(head), size)

    def item(self, at: int) -> bytes | None:
        """The JSON of the message at that place, where it is one of the last few."""
        number = at - self.first + 1
        if number < 1:
            return None
        return bytes(self.late[self.ends[number - 1] : self.ends[number]]).lstrip(_BETWEEN)

    @property
    def body(self) -> Whole | None:
        """All of the request, if it is known how it begins."""
        return None if self.head is None else Whole([self.head, *self.early, self.late, self.tail])

    def json(self) -> Whole:
        """The list."""
        return Whole([*self.early, self.late, b"]"])


def listed(body: Body, given: memoryview, count: int, place: int, *, certain: bool) -> Listed:
    """The list `given` of `count` messages, which is all new. It begins at `place` of `body`, if that is
    `certain`, and else may do so."""
    items = _late(body, place, place + len(given)) if certain and count >= LATELY else None
    ends = _ends(given, items or _items(given))
    start, stop = ends[0], ends[-1]
    data = memoryview(body)
    head, tail = (data[:place], data[place + stop :]) if certain else (None, data[:0])
    early, late = [given[:start]], given[start:stop]
    ends, first = [end - start for end in ends], count - len(ends) + 1
    return Listed(early, late, ends, first, start, head, tail, place, len(body))


def added(json: bytes, read: Read) -> Added | None:
    """What `json` adds to a list, from the comma before its first message on; None if it is no such thing."""
    if not json:
        return Added(json, [], [])
    if not json.startswith(b","):
        return None
    given = b"".join((b"[", memoryview(json)[1:], b"]"))
    try:
        messages = read(given)
    except msgspec.DecodeError:
        return None
    return Added(json, messages, _added_ends(json, given, len(messages))) if messages else None


def _added_ends(json: bytes, given: bytes, count: int) -> list[int]:
    """Where the messages end in `json`; as a list of their own they are `given`.

    What is looked for stands in no string, since its first quote would end that. Where it does stand inside
    of a message, and between two others not, a place is wrong: nothing that goes on from there is a list.
    """
    before, *parts = json.split(_NEXT)
    if before or len(parts) != count:
        return _ends(given, _items(given))
    ends: list[int] = []
    at = 0
    for part in parts:
        at += len(_NEXT) + len(part)
        ends.append(at)
    return ends


def _late(body: Body, start: int, stop: int) -> list[msgspec.Raw] | None:
    """The last few items of the list between `start` and `stop`, found from its end.

    What is looked for stands in no string, since its first quote would end that, and no word can follow.
    Where it begins an object inside of another one, what follows is no list.
    """
    at = stop
    for _ in range(LATELY):
        at = body.rfind(_BEGINS, start, at)
        if at < 0:
            return None
    try:
        items = _items(b"[" + body[at:stop])
    except msgspec.DecodeError:
        return None
    return items if len(items) == LATELY else None


def _ends(given: memoryview | bytes, items: list[msgspec.Raw]) -> list[int]:
    """Where the last of `items`, which stand at the end of the list `given`, end in it."""
    data = memoryview(given)
    end = len(data) - 1
    ends: list[int] = []
    for item in items[: -LATELY - 1 : -1]:
        while data[end - 1] in _BLANKS:
            end -= 1
        ends.append(end)
        end -= len(item)
        while data[end - 1] in _BLANKS:
            end -= 1
        end -= 1  # the comma, or what opens the list
    return ends[::-1]
