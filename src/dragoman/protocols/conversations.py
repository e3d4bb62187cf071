"""Conversations that went on lately, known by the bytes of their requests.

An agent's next request is its last one with a little more at the end of its list of messages. So the list is
looked for where it began before, and compared as bytes: what is the same need not be read at all. A token is
put in its place, and only what is left goes through the JSON reader. That is sound because after the same
bytes, a parser is in the same state:

- Where everything around the list is the same too, only the new messages are read, after the token. If that
  is a list, the parser is behind it where it was behind the last one, and what follows says the same.
- Otherwise all that is not known is read. Where the token comes out as the first item of the list, the bytes
  it stands for are the beginning of that list.
- Where nothing is known, a token for the whole list saves one way through it, if a look tells where it ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from .history import LATELY, History
from .known import Known
from .pieces import Body, Whole, join_short, stretch

# Of bodies; about three times as many bytes are held, with what was worked out of them.
MOST_BYTES = 12 * 1024 * 1024
MOST = 64
_TELLS = 256
"""Bytes that are compared before all are."""
_PLACES = 16
"""So often is the name of the list looked for: it may stand in prompts and schemas as well."""

_STAND_IN = b'["\\u0000the messages that are known\\u0000"'
"""Begins a list as no client does; whoever does fools nobody but itself, with messages of its own."""
_BEGINS = b'{"role":'
"""A message, as nearly everybody writes one."""
_LISTS = (b'"system":', b'"tools":')
"""What else is long in a request, and may come before the messages or behind them."""
_BLANKS = b" \t\r\n"
_OPENS = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*(?=\[)")

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Listed(msgspec.Struct, frozen=True):
    """The list of messages of a request, and what stands around it. Of the body of a request that goes on
    with another one nothing is held but what is new: its pieces are those of the other one."""

    pieces: list[memoryview]
    """The list up to the end of its last message."""
    ends: list[int]
    """Where its last few messages end in that."""
    head: memoryview | None
    """What stands before it in the body. None where its place is not certain."""
    tail: memoryview
    """What stands behind its last message."""
    place: int
    """Where it begins in the body, or may begin."""
    size: int
    """Of the body."""

    @property
    def body(self) -> Whole | None:
        """All of it, if it is known how it begins."""
        return None if self.head is None else Whole([self.head, *self.pieces, self.tail])

    def json(self) -> Whole:
        """The list."""
        return Whole([*self.pieces, b"]"])


class Cut(msgspec.Struct):
    """A request's body, cut into its members and the items of its list of messages."""

    members: dict[str, msgspec.Raw] | None
    """The list stands for itself among them: whoever reads it puts something else in its place. None where
    all others are what they were in the conversation that began the same."""
    given: memoryview | None
    """The list, where nothing of it is known."""
    items: list[msgspec.Raw]
    """Of the list, those that are not known; of one that is all new perhaps only the last few."""
    before: Conversation | None
    """The conversation that began the same."""
    count: int
    """How many messages of the list are known from it."""
    listed: Listed


class Conversation:
    """The list of messages of one request, and what was read out of it."""

    __slots__ = (
        "_ends", "_head", "_listed", "_tail", "_tail_at",
        "history", "known", "members", "name", "place", "size",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        listed: Listed,
        history: History,
        members: Mapping[str, Any],
        known: Sequence[Known],
    ) -> None:
        self.name = name
        self.history = history
        self.members = members
        """What the request says, member by member."""
        self.known = known
        """Those of them that are remembered."""
        self.place = listed.place
        self.size = listed.size
        self._listed = listed
        said = len(history) - len(history.leading)
        self._ends = dict(enumerate(listed.ends, said - len(listed.ends) + 1))
        """Where its last beginnings end, by their number of messages; the shortest first."""
        # A few bytes tell one conversation from another in nearly all cases.
        self._tail_at = max(0, listed.ends[0] - _TELLS)
        self._head = b"".join(stretch(listed.pieces, 0, min(_TELLS, listed.ends[0])))
        self._tail = b"".join(stretch(listed.pieces, self._tail_at, listed.ends[0]))

    def gone_on(self, body: Body, place: int) -> Cut | None:
        """What `body` says after as much of this one as it begins with, if its list begins at `place`."""
        if not (body.startswith(self._tail, place + self._tail_at) and body.startswith(self._head, place)):
            return None
        count = self._shared(body, place)
        if not count:
            return None
        cut = self._new_items(body, count) if self._same_around(body, place) else None
        return cut or self._new_members(body, count, place)

    def _shared(self, body: Body, place: int) -> int:
        """How many messages a list that begins at `place` shares with this one: nearly all, or 0."""
        pieces, ends = self._listed.pieces, self._listed.ends
        at = place
        # What is long is gone over once; of the last few messages one or two usually came again different.
        for piece in stretch(pieces, 0, ends[0]):
            if not body.startswith(piece, at):
                return 0
            at += len(piece)
        late = memoryview(b"".join(stretch(pieces, ends[0], ends[-1])))
        found = (n for n, end in reversed(self._ends.items()) if body.startswith(late[: end - ends[0]], at))
        return next(found, 0)

    def _same_around(self, body: Body, place: int) -> bool:
        """Does `body` say the same before and behind its list?"""
        listed = self._listed
        if listed.head is None or place != listed.place:
            return False
        return body.startswith(listed.head) and body.endswith(listed.tail)

    def _new_items(self, body: Body, count: int) -> Cut | None:
        """`body`, which says the same around its messages, without the first `count` of them."""
        listed = self._listed
        start, stop = listed.place + self._ends[count], len(body) - len(listed.tail)
        if start > stop:
            return None
        given = _STAND_IN + _checked(body[start:stop]) + b"]"
        try:
            items = _items(given)[1:]
        except msgspec.DecodeError:
            return None
        longer = self._longer(given, items, count)
        around = (listed.head, listed.tail, listed.place, len(body))
        return Cut(None, None, items, self, count, Listed(*longer, *around))

    def _new_members(self, body: Body, count: int, place: int) -> Cut | None:
        """`body` without its first `count` messages; None if they are not at the beginning of its list."""
        data = memoryview(body)
        rest = b"".join((data[:place], _STAND_IN, data[place + self._ends[count] :]))
        members = _members(_checked(rest))
        given = bytes(members.get(self.name, b""))
        if len(given) < len(_STAND_IN) or not rest.startswith(given, place):
            return None
        items = _items(given)[1:]
        pieces, ends = self._longer(given, items, count)
        behind = place + (_ends(given, items) or [len(_STAND_IN)])[-1]
        around = (memoryview(rest)[:place], memoryview(rest)[behind:], place, len(body))
        return Cut(members, None, items, self, count, Listed(pieces, ends, *around))

    def _longer(
        self, given: bytes, items: list[msgspec.Raw], count: int
    ) -> tuple[list[memoryview], list[int]]:
        """The first `count` messages of this list and the new `items` of `given`, and where they end."""
        known = self._ends[count]
        new = _ends(given, items)
        pieces = stretch(self._listed.pieces, 0, known)
        if new:
            pieces.append(memoryview(given)[len(_STAND_IN) : new[-1]])
            join_short(pieces)
        ends = [end for number, end in self._ends.items() if number <= count]
        ends += [known + end - len(_STAND_IN) for end in new]
        return pieces, ends[-LATELY:]


class Conversations:
    """The ones that went on lately, bounded in number and in bytes."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._size = 0
        self._kept: dict[int, Conversation] = {}
        """By identity, the latest last."""

    def cut(self, body: Body, name: str) -> Cut | None:
        """`body` cut up; None where it has no such list, or an empty one. Raises ValueError for no JSON."""
        kept = [conversation for conversation in reversed(self._kept.values()) if conversation.name == name]
        # Usually the list begins where it began before.
        for conversation in kept:
            cut = conversation.gone_on(body, conversation.place)
            if cut is not None:
                return cut
        new = _new(body, name)
        if new is None:
            return None
        found = (conversation.gone_on(body, new.listed.place) for conversation in kept)
        return next((cut for cut in found if cut is not None), new)

    def keep(
        self,
        name: str,
        cut: Cut,
        history: History,
        members: Mapping[str, Any],
        known: Sequence[Known] = (),
    ) -> None:
        """For the requests to come. The conversation that began the same has done its work."""
        if cut.before is not None and id(cut.before) in self._kept:
            self._forget(cut.before)
        conversation = Conversation(name, cut.listed, history, members, known)
        self._kept[id(conversation)] = conversation
        self._size += conversation.size
        while len(self._kept) > self._most or (self._size > self._most_bytes and len(self._kept) > 1):
            self._forget(next(iter(self._kept.values())))

    def _forget(self, conversation: Conversation) -> None:
        del self._kept[id(conversation)]
        self._size -= conversation.size


def _places(body: Body, name: str) -> Iterator[int]:
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


def _checked(data: Body) -> Body:
    """`data`, if it is text. All else the JSON reader checks, also in what is not read."""
    if not data.isascii():
        data.decode()
    return data


def _new(body: Body, name: str) -> Cut | None:
    guessed = _guessed(_checked(body), name)
    if guessed is not None:
        return guessed
    members = _members(body)
    given = memoryview(members.get(name, b"-"))
    if given[0] != ord("["):
        return None
    return _cut(body, name, members, given, _certain_place(body, members, name))


def _guessed(body: Body, name: str) -> Cut | None:
    """The same, if a look tells where the list ends: behind it there may be others, and then it does not."""
    around = _around(body, name)
    if around is None:
        return None
    members, place, stop = around
    try:
        return _cut(body, name, members, memoryview(body)[place:stop], place)
    except msgspec.DecodeError:
        return None


def _cut(body: Body, name: str, members: dict[str, msgspec.Raw], given: memoryview, place: int) -> Cut | None:
    """`body`, whose list `given` begins at `place`, or anywhere if that is 0; None for an empty list."""
    items = (_late(body, place, place + len(given)) if place else None) or _items(given)
    if not items:
        return None
    ends = _ends(given, items)
    if not place:
        pieces = [given[: ends[-1]]]
        listed = Listed(pieces, ends, None, memoryview(b""), _likely_place(body, given, name), len(body))
    else:
        data, behind = memoryview(body), place + ends[-1]
        listed = Listed([data[place:behind]], ends, data[:place], data[behind:], place, len(body))
    return Cut(members, given, items, None, 0, listed)


def _around(body: Body, name: str) -> tuple[dict[str, msgspec.Raw], int, int] | None:
    """The members of `body` with the token for the list, and from where to where that goes, if a look tells.
    Whoever reads the list finds out whether it is one: then what is left of the body was read rightly."""
    start = next(_places(body, name), 0)
    stop = _likely_stop(body, start) if start else 0
    if stop < start + 2:
        return None
    data = memoryview(body)
    rest = b"".join((data[:start], _STAND_IN, b"]", data[stop:]))
    try:
        members = _members(rest)
    except msgspec.DecodeError:
        return None
    known = rest.startswith(members.get(name, b"-"), start) and _certain_place(rest, members, name) == start
    return (members, start, stop) if known else None


def _likely_stop(body: Body, start: int) -> int:
    """Where the list that begins at `start` is likely to end; 0 where there is no telling."""
    behind = [body.rfind(key, start) for key in _LISTS if body.find(key, 0, start) < 0]
    next_list = min((at for at in behind if at >= 0), default=0)
    if next_list:
        return next_list - 1 if body.startswith(b"}],", next_list - 3) else 0
    return body.rfind(b"}]", max(start, len(body) - _TELLS)) + 2


def _certain_place(body: Body, members: dict[str, msgspec.Raw], name: str) -> int:
    """Where the list begins; 0 where that is not certain. It is where nothing stands between members, as
    nearly everybody writes them: then their lengths add up to that of the body, as in no other case."""
    at, place = 1, 0
    for key, value in members.items():
        at += len(key.encode()) + 3
        if key == name:
            place = at
        at += len(value) + 1
    return place if at == len(body) else 0


def _likely_place(body: Body, given: memoryview, name: str) -> int:
    begins = bytes(given[:_TELLS])
    return next((place for place in _places(body, name) if body.startswith(begins, place)), 0)


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
