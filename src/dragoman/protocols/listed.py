"""The list of messages of a request, as bytes: how far another request says the same, and what it adds.

The list is held in two parts. All but the last few messages are settled, and are compared as they lie there.
The last few come again a little different, since an agent moves its cache marks along: of these it is known
where each one ends. What a list adds to another one is all that is held of it beside the pieces of that one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from .pieces import Body, Whole, join_short

LATELY = 6
"""So many of the last places are known where another list may part from this one, or up to twice as many:
what is before them is settled several turns at a time."""

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


_LAST_MARK = _spaced(_MARK + rb' : \{ "type" : "ephemeral" (?:, "ttl" : "(?:1h|5m)" )?\}(?= \} \] \}\Z)')
"""The cache mark on the last part of a message, which is the last that is said of that."""
_LAST_ROLE = _spaced(_ROLE + rb' : "[a-z]*" \} , (?=\{)')
"""The end of a message whose members are sorted by their names, up to the beginning of the next one."""

_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


Read = Callable[[bytes | memoryview], list[Any]]
"""Reads a JSON list of messages. Raises `msgspec.DecodeError` for anything else."""


class Listed(msgspec.Struct, frozen=True):
    """The list of messages of a request, and what stands around it."""

    early: list[memoryview]
    """The list up to the end of the last message that is settled."""
    late: bytes
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
        late, ends = memoryview(self.late), self.ends
        reached = len(ends)
        while reached > 1 and not body.startswith(late[: ends[reached - 1]], at):
            reached -= 1
        return reached

    def unmarked(self, body: Body, place: int, reached: int) -> int:
        """How long the message behind that end is in `body`, if it is the same but for the cache mark on
        its last part; 0 if not. That it is plain, and has no other mark, is for others to know."""
        if reached == len(self.ends):
            return 0
        late, begins, ends = self.late, self.ends[reached - 1], self.ends[reached]
        at = late.rfind(_MARK, begins, ends)
        mark = _LAST_MARK.match(late, at, ends) if at >= 0 else None
        comma = late.rfind(b",", begins, at)
        if mark is None or late[comma + 1 : at].strip(_BLANKS):
            return 0
        start, before, after = (
            place + self.start + begins,
            memoryview(late)[begins:comma],
            late[mark.end() : ends],
        )
        same = body.startswith(before, start) and body.startswith(after, start + len(before))
        return len(before) + len(after) if same else 0

    def longer(
        self, reached: int, json: bytes, known: int, read: Read, head: memoryview, tail: memoryview
    ) -> tuple[list[Any], Listed] | None:
        """What is new, and the list that goes on with `json` after so many of the ends, from the comma before
        its first message on; None if it is no such thing. So much of it is a message that is `known`."""
        ends = self.ends[:reached]
        end = ends[-1]
        messages: list[Any] = []
        if known:
            ends.append(end + known)
        if len(json) > known:
            if not json.startswith(b",", known):
                return None
            given = b"".join((b"[", memoryview(json)[known + 1 :], b"]"))
            try:
                messages = read(given)
            except msgspec.DecodeError:
                return None
            if not messages:
                return None
            ends += _new_ends(json, known, end, given, len(messages))
        late = self.late[:end] + json
        early, start = self.early, self.start
        first = self.first + reached + len(messages) + (known > 0) - len(ends)
        settled = len(ends) - LATELY
        # Of more messages than that, perhaps not all ends are known.
        if settled > LATELY or len(messages) > LATELY:
            stop = ends[settled]
            early = [*early, memoryview(late)[:stop]]
            join_short(early)
            start += stop
            ends = [at - stop for at in ends[settled:]]
            late = late[stop:]
            first += settled
        size = len(head) + start + len(late) + len(tail)
        return messages, Listed(early, late, ends, first, start, head, tail, len(head), size)

    def item(self, at: int) -> bytes | None:
        """The JSON of the message at that place, where it is one of the last few."""
        number = at - self.first + 1
        if number < 1:
            return None
        return self.late[self.ends[number - 1] : self.ends[number]].lstrip(_BETWEEN)

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
    items = _late(body, place, place + len(given)) if certain and count > LATELY else None
    ends = _ends(given, items or _items(given))
    start, stop = ends[0], ends[-1]
    data = memoryview(body)
    head, tail = (data[:place], data[place + stop :]) if certain else (None, data[:0])
    early, late = [given[:start]], bytes(given[start:stop])
    ends, first = [end - start for end in ends], count - len(ends) + 1
    return Listed(early, late, ends, first, start, head, tail, place, len(body))


def _new_ends(json: bytes, known: int, base: int, given: bytes, count: int) -> list[int]:
    """Where the `count` messages behind the `known` one end, counted from so far before `json`; of many
    perhaps only the last few. They are also the list `given`."""
    # What is looked for stands in no string, since its first quote would end that. Where it does stand inside
    # of a message, and between two others not, a place is wrong: nothing that goes on from there is a list.
    ends: list[int] = []
    at = known
    while (at := json.find(_NEXT, at + 1)) > 0:
        ends.append(base + at)
    ends.append(base + len(json))
    if len(ends) == count:
        return ends
    return [base + known + end for end in _ends(given, _items(given))]  # not written as by nearly everybody


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
