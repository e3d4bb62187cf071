"""The list of messages of a request, as bytes: how far another request says the same, and what it adds.

The list is held in two parts. All but the last few messages are settled, and are compared as they lie there.
The last few come again a little different, since an agent moves its cache marks along: of these each is held
alone. What a list adds to another one is all that is held of it beside the pieces of that one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import msgspec

from .pieces import Body, Whole, grown

LATELY = 6
"""So many of the last places are known where another list may part from this one, or up to twice as many:
what is before them is settled several turns at a time."""
_ALONE = LATELY - 1
"""So many messages are held alone when others were settled."""

_NEXT = b',{"role":'
"""Begins one more message, as nearly everybody writes it."""
_ROLE = b'"role"'
_MARK = b'"cache_control"'
_BLANKS = b" \t\r\n"
_BETWEEN = _BLANKS + b","
_NEAR = 64
"""Bytes: there are fewer blanks between what belongs together."""


def _spaced(tokens: bytes) -> re.Pattern[bytes]:
    """These, with any blanks where one is."""
    return re.compile(tokens.replace(b" ", rb"\s*"))


_LAST_MARK = _spaced(
    rb", " + _MARK + rb' : \{ "type" : "ephemeral" (?:, "ttl" : "(?:1h|5m)" )?\}(?= \} \] \}\Z)'
)
"""The cache mark on the last part of a message, which is the last that is said of that, and the comma before
it."""
_LAST_ROLE = _spaced(_ROLE + rb' : "[a-z]*" \} , (?=\{)')
"""The end of a message whose members are sorted by their names, up to the beginning of the next one."""

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


Read = Callable[[bytes | memoryview], list[Any]]
"""Reads a JSON list of messages. Raises `msgspec.DecodeError` for anything else."""


class Listed(msgspec.Struct, frozen=True):
    """The list of messages of a request, and what stands around it."""

    early: list[memoryview]
    """The list up to the end of the last message that is settled."""
    late: list[bytes]
    """The messages behind that, each with the comma before it."""
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

    def shared(self, body: Body, place: int) -> tuple[int, int] | None:
        """How many of `late` a list that begins at `place` has as well, and where in `body` they end; None if
        it does not begin the same."""
        at = place
        for piece in self.early:
            if not body.startswith(piece, at):
                return None
            at += len(piece)
        reached = 0
        for message in self.late:
            if not body.startswith(message, at):
                break
            at += len(message)
            reached += 1
        return reached, at

    def unmarked(self, body: Body, at: int, reached: int) -> bytes:
        """The message at that place of `body`, if it is the one behind so many of `late`, but for the cache
        mark on its last part; nothing if not. That it is plain, with no other mark, is for others to know."""
        if reached == len(self.late):
            return b""
        message = self.late[reached]
        comma = message.rfind(b",", 0, message.rfind(_MARK))
        mark = _LAST_MARK.match(message, comma)
        if mark is None:
            return b""
        view = memoryview(message)
        same = b"".join((view[:comma], view[mark.end() :]))
        return same if body.startswith(same, at) else b""

    def longer(
        self,
        reached: int,
        known: bytes,
        more: bytes,
        read: Callable[[bytes], list[Any]],
        head: memoryview,
        tail: memoryview,
        size: int,
    ) -> tuple[list[Any], Listed] | None:
        """What is new, and the list that goes on after so many of `late` with a message that is `known`, if
        there is one, and `more`, from the comma before its first message on; None if it is no such thing. It
        is in a body of that `size`."""
        late = self.late[:reached]
        messages: list[Any] = []
        if known:
            late.append(known)
        if more:
            if not more.startswith(b","):
                return None
            given = b"".join((b"[", memoryview(more)[1:], b"]"))
            try:
                messages = read(given)
            except msgspec.DecodeError:
                return None
            if not messages:
                return None
            late += _apart(more, given, len(messages))
        early, start = self.early, self.start
        count = self.first + reached + (known != b"") + len(messages)
        settled = len(late) - _ALONE
        # Of more messages than that, perhaps not all are apart.
        if settled >= LATELY or len(messages) > LATELY:
            old, late = late[:settled], late[settled:]
            early = grown(early, old)
            start += sum(map(len, old))
        return messages, Listed(early, late, count - len(late), start, head, tail, len(head), size)

    def item(self, at: int) -> bytes | None:
        """The JSON of the message at that place, where it is one of the last few."""
        number = at - self.first
        return self.late[number].lstrip(_BETWEEN) if number >= 0 else None

    @property
    def body(self) -> Whole | None:
        """All of the request, if it is known how it begins."""
        return None if self.head is None else Whole([self.head, *self.early, *self.late, self.tail])

    def json(self) -> Whole:
        """The list."""
        return Whole([*self.early, *self.late, b"]"])


def listed(body: Body, given: memoryview, count: int, place: int, *, certain: bool) -> Listed:
    """The list `given` of `count` messages, which is all new. It begins at `place` of `body`, if that is
    `certain`, and else may do so."""
    items = _late(body, place, place + len(given)) if certain and count > LATELY else None
    ends = _ends(given, items or _items(given))
    start, stop = ends[0], ends[-1]
    data = memoryview(body)
    head, tail = (data[:place], data[place + stop :]) if certain else (None, data[:0])
    late = [bytes(given[end:next_end]) for end, next_end in pairwise(ends)]
    return Listed([given[:start]], late, count - len(late), start, head, tail, place, len(body))


def _apart(more: bytes, given: bytes, count: int) -> list[bytes]:
    """The `count` messages of `more`, each with the comma before it; of many perhaps only the last few, and
    all before them as one. They are also the list `given`."""
    # What is looked for stands in no string, since its first quote would end that. Where it does stand inside
    # of a message, and between two others not, a place is wrong: nothing that goes on from there is a list.
    parts = more.split(_NEXT)
    if len(parts) == count + 1 and not parts[0]:
        return [_NEXT + part for part in parts[1:]]
    ends = _ends(given, _items(given))  # not written as by nearly everybody
    return [more[end:next_end] for end, next_end in pairwise([0, *ends[:-1], len(more)])]


def _late(body: Body, start: int, stop: int) -> list[msgspec.Raw] | None:
    """The last few items of the list between `start` and `stop`, found from its end."""
    at = stop
    for _ in range(LATELY):
        at = body.rfind(_ROLE, start, at)
        if at < 0:
            return None
    begins = _message_at(body, start, at)
    try:
        items = _items(b"[" + body[begins:stop]) if begins else []
    except msgspec.DecodeError:
        return None
    return items if len(items) == LATELY else None


def _message_at(body: Body, start: int, role: int) -> int:
    """Where a message of the list from `start` on is likely to begin, of which that is the role: it is the
    first that is said of it, or the last; 0 where it is neither.

    No string holds that place. There, a quote is escaped or ends it, and no word can follow that: so the
    first quote of `"role"` begins a string where a brace stands before it, and the other one ends a string in
    any case. Where an object begins that is no message, but inside of one, what follows is no list.
    """
    before = without_blanks(body, role)
    if before.endswith(b"{"):
        return body.rfind(b"{", start, role)
    before_it = body.rfind(_ROLE, start, role)
    ends = _LAST_ROLE.match(body, before_it) if before_it >= 0 else None
    return ends.end() if ends is not None else 0


def without_blanks(body: Body, at: int) -> Body:
    """What stands near that place, before it and before any blanks there."""
    return body[max(0, at - _NEAR) : at].rstrip(_BLANKS)


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
