"""Conversations that went on lately, known by the bytes of their requests.

An agent's next request is its last one with a little more at the end of its list of messages. So the list is
looked for where it began before, and compared as bytes: what is the same need not be read at all. A token is
put in its place, and only what is left goes through the JSON reader. That is sound because after the same
bytes, a parser is in the same state:

- Where everything around the list is the same too, only the new messages are read, after the token. If that
  is a list, the parser is behind it where it was behind the last one, and what follows says the same.
- Otherwise all that is not known is read. Where the token comes out as the first item of the list, the bytes
  it stands for are the beginning of that list.
- Where nothing is known, a token for the whole list saves one way through it, if a look tells where it ends;
  another one does so for the list of tools. Where a token comes out as the member, and stands nowhere else,
  there is its place; and what it stands for must be read as one list.
"""

from __future__ import annotations

import re
from codecs import utf_8_decode
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, TypeVar

import msgspec

from ..messages import Request
from .history import History
from .known import Known
from .listed import Listed, Read, listed, without_blanks
from .pieces import Body

B = TypeVar("B", bytes, Body)

ReadTools = Callable[[memoryview], Any]
"""Reads a JSON list of tools, at least so far that it is known to be one. Raises `msgspec.DecodeError` for
anything else."""

# Of bodies; about twice as many bytes are held, with what was worked out of them.
MOST_BYTES = 12 * 1024 * 1024
MOST = 64
_TELLS = 256
"""Bytes that are compared before all are."""
_PLACES = 16
"""So often is the name of the list looked for: it may stand in prompts and schemas as well."""

_STAND_IN = b'["\\u0000the messages that are known\\u0000"'
"""Begins a list as no client does; whoever does fools nobody but itself, with messages of its own."""
_TOOLS = "tools"
_LONG = ("system", _TOOLS)
"""What else is long in a request, and may come before the messages or behind them."""
_LITTLE = 1024
"""Bytes that all other members take together, or less."""
_SOME = 32 * 1024
_BLANKS = b" \t\r\n"
_LIST_BEGINS = re.compile(rb"\s*:\s*(?=\[)")
_LONG_BEGINS = re.compile(rb"\s*:\s*(?=[\[\"])")
"""Not so a property of a schema: that is an object."""
_BEHIND = re.compile(rb'\s*(?:,\s*"\w+"\s*:|\}\s*\Z)')
"""What follows a member: no string looks like that, since the next quote would end it."""

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Cut(msgspec.Struct):
    """A request's body, cut into its members and the messages of its list."""

    members: dict[str, Any] | None
    """As JSON, but for tools that were read already. The list stands for itself among them: whoever reads it
    puts something else in its place. None where all others are what they were in the conversation that began
    the same."""
    messages: list[Any]
    """Those that are not known, as their reader gives them."""
    before: Conversation | None
    """The conversation that began the same."""
    count: int
    """How many messages of the list are known from it."""
    unmarked: bool
    """Has the last of these lost its cache mark?"""
    listed: Listed
    read: Read
    """Who reads the list, by which requests of one protocol are told from those of another."""


class Conversation:
    """One request and its list of messages."""

    __slots__ = ("at", "history", "known", "listed", "name", "read", "request", "start", "tell")

    def __init__(
        self, name: str, cut: Cut, history: History, request: Request, known: Sequence[Known]
    ) -> None:
        listed = cut.listed
        self.name = name
        self.read = cut.read
        self.listed = listed
        self.history = history
        self.request = request
        self.known = known
        """What is remembered of its members."""
        # A few bytes tell one conversation from another in nearly all cases: those around the beginning of a
        # message, where it has an id, or words of its own. How messages end is often the same in many.
        before = listed.early[-1][-_TELLS:]
        self.tell = b"".join((before, listed.late[0][:_TELLS])) if listed.late else bytes(before)
        self.at = listed.start - len(before)
        """Where these bytes are in the list."""
        self.start = listed.place + self.at
        """Where they usually are in a body."""

    def gone_on(self, body: Body, place: int) -> Cut | None:
        """What `body`, which has the same tell, says after as much of this one as it begins with, if its list
        begins at `place`."""
        listed = self.listed
        shared = listed.shared(body, place)
        if shared is None:
            return None
        reached, at = shared
        # An agent moves its cache mark along: the last message comes again without it.
        marks = self.history.marked.get(listed.first + reached, 0)
        known = listed.unmarked(body, at, reached) if marks == 1 else b""
        head, tail, cut = listed.head, listed.tail, None
        if head is not None and place == listed.place and body.startswith(head) and body.endswith(tail):
            cut = self._new_messages(body, at, reached, known, head)
        return cut or self._new_members(body, at, reached, known, place)

    def _new_messages(self, body: Body, at: int, reached: int, known: bytes, head: memoryview) -> Cut | None:
        """`body`, which says the same around its messages, without so many of the late ones and those before
        them, up to `at`, and one that is known behind them."""
        tail = self.listed.tail
        start, stop = at + len(known), len(body) - len(tail)
        if start > stop:
            return None
        more = _checked(bytes(memoryview(body)[start:stop]))
        return self._longer(None, reached, known, more, head, tail, len(body))

    def _new_members(self, body: Body, at: int, reached: int, known: bytes, place: int) -> Cut | None:
        """The same, whatever stands around its messages; None if they are not the beginning of its list."""
        data = memoryview(body)
        rest = b"".join((data[:place], _STAND_IN, data[at + len(known) :]))
        members = _members(_checked(rest))
        given = bytes(members.get(self.name, b""))
        if len(given) < len(_STAND_IN) or not rest.startswith(given, place):
            return None
        more = given[len(_STAND_IN) : -1].rstrip(_BLANKS)
        head, tail = memoryview(rest)[:place], memoryview(rest)[place + len(_STAND_IN) + len(more) :]
        return self._longer(members, reached, known, more, head, tail, len(body))

    def _longer(
        self,
        members: dict[str, Any] | None,
        reached: int,
        known: bytes,
        more: bytes,
        head: memoryview,
        tail: memoryview,
        size: int,
    ) -> Cut | None:
        read = self.history.read_more or self.read
        new = self.listed.longer(reached, known, more, read, head, tail, size)
        if new is None:
            return None
        messages, longer = new
        unmarked = known != b""
        return Cut(
            members, messages, self, self.listed.first + reached + unmarked, unmarked, longer, self.read
        )


class Conversations:
    """The ones that went on lately, bounded in number and in bytes."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._size = 0
        self._kept: dict[int, Conversation] = {}
        """By identity, the latest last."""

    def cut(self, body: Body, name: str, read: Read, read_tools: ReadTools | None = None) -> Cut | None:
        """`body` cut up; None where it has no such list, or an empty one. Raises ValueError for no JSON."""
        # Usually the list begins where it began before.
        for kept in reversed(self._kept.values()):
            if body.startswith(kept.tell, kept.start) and kept.read is read:
                cut = kept.gone_on(body, kept.listed.place)
                if cut is not None:
                    return cut
        last = next(reversed(self._kept.values()), None)
        before = last.listed.place if last is not None else 0
        found = _guessed(_checked(body), name, before, tools=read_tools is not None)
        cut = self._cut(body, name, found, read, read_tools) if found is not None else None
        if cut is None:
            found = _found(body, name)
            cut = self._cut(body, name, found, read, read_tools) if found is not None else None
        return cut

    def _cut(
        self, body: Body, name: str, found: _Found, read: Read, read_tools: ReadTools | None
    ) -> Cut | None:
        """`body` cut up where its list was found; None where it is no list, or an empty one."""
        for kept in reversed(self._kept.values()):
            # Where the place is the same, it was looked at already.
            if kept.listed.place == found.place or kept.read is not read:
                continue
            cut = (
                kept.gone_on(body, found.place) if body.startswith(kept.tell, found.place + kept.at) else None
            )
            if cut is not None:
                return cut
        try:
            if read_tools is not None and found.tools is not None:
                found.members["tools"] = read_tools(found.tools)
            messages = read(found.given)
        except msgspec.DecodeError:
            return None
        if not messages:
            return None
        new = listed(body, found.given, len(messages), found.place, certain=found.certain)
        return Cut(found.members, messages, None, 0, False, new, read)

    def keep(
        self, name: str, cut: Cut, history: History, request: Request, known: Sequence[Known] = ()
    ) -> None:
        """For the requests to come. The conversation that began the same has done its work."""
        if cut.before is not None and self._kept.pop(id(cut.before), None) is not None:
            self._size -= cut.before.listed.size
        conversation = Conversation(name, cut, history, request, known)
        self._kept[id(conversation)] = conversation
        self._size += cut.listed.size
        while len(self._kept) > self._most or (self._size > self._most_bytes and len(self._kept) > 1):
            self._size -= self._kept.pop(next(iter(self._kept))).listed.size


def _places(
    body: Body, name: str, begins: re.Pattern[bytes] = _LIST_BEGINS, stop: int | None = None
) -> Iterator[int]:
    """Where what is called so may begin."""
    key = f'"{name}"'.encode()
    at = 0
    for _ in range(_PLACES):
        at = body.find(key, at, stop) + len(key)
        if at < len(key):
            return
        found = begins.match(body, at)
        if found is not None:
            yield found.end()


def _checked(data: B) -> B:
    """`data`, if it is text. All else the JSON reader checks, also in what is not read."""
    if not data.isascii():
        view, size, at = memoryview(data), len(data), 0
        # Of all at once there would be a copy several times as long, for which memory has to be found.
        while at < size:
            at += utf_8_decode(view[at : at + _SOME], None, at + _SOME >= size)[1]
    return data


class _Found(msgspec.Struct):
    """Where the list of a body stands of which nothing is known."""

    members: dict[str, Any]
    given: memoryview
    """The list, or what looks like it: whoever reads it finds out."""
    place: int
    certain: bool
    """Is that its place?"""
    tools: memoryview | None = None
    """The same of the tools, if they are not among the members."""


def _guessed(body: Body, name: str, before: int, *, tools: bool) -> _Found | None:
    """The list with a token for it among the members, if a look tells where it ends. If it is a list, what is
    left of the body was read rightly. `before` is where the list began in another request: in a new
    conversation of the same agent it does so again. There may be another token for the `tools`."""
    key = f'"{name}":['.encode()
    begins = before >= len(key) and body.startswith(key, before + 1 - len(key))
    start = before if begins else next(_places(body, name), 0)
    if not start:
        return None
    long = {name: start} | {key: at for key in _LONG if (at := _likely_place(body, key, start))}
    places = sorted(long.values())
    behind = dict(pairwise([*places, len(body)]))
    data, stop = memoryview(body), _likely_stop(body, start, behind[start])
    if not stop:
        return None
    first = long.get(_TOOLS, 0) if tools else 0
    last = _likely_stop(body, first, behind[first]) if first else 0
    members = _around(data, {name: (start, stop), _TOOLS: (first, last)}) if last else None
    if members is not None:
        return _Found(members, data[start:stop], start, True, data[first:last])
    members = _around(data, {name: (start, stop)})
    return _Found(members, data[start:stop], start, True) if members is not None else None


def _found(body: Body, name: str) -> _Found | None:
    """The same where only who reads all of the body can tell."""
    members = _members(body)
    given = memoryview(members.get(name, b"-"))
    if given[0] != ord("["):
        return None
    data, begins = memoryview(body), bytes(given[:_TELLS])
    for place in _places(body, name):
        if body.startswith(begins, place) and _around(data, {name: (place, place + len(given))}) is not None:
            return _Found(members, given, place, True)
    return _Found(members, given, 0, False)


def _around(data: memoryview, lists: dict[str, tuple[int, int]]) -> dict[str, Any] | None:
    """The members of a body with tokens for `lists`, each with where it begins and ends; None if one of them
    is not in its place."""
    rest: list[bytes | memoryview] = []
    at = 0
    for name, (start, stop) in sorted(lists.items(), key=itemgetter(1)):
        rest += (data[at:start], _token(name))
        at = stop
    body = b"".join((*rest, data[at:]))
    try:
        members = _members(body)
    except msgspec.DecodeError:
        return None
    for name in lists:
        token = _token(name)
        # What is written like it elsewhere could be taken for it.
        if bytes(members.get(name, b"")) != token or body.count(token) != 1:
            return None
    return members


def _token(name: str) -> bytes:
    return b'["\\u0000the %b\\u0000"]' % name.encode()


def _likely_place(body: Body, name: str, start: int) -> int:
    """Where what is called so is likely to begin, before the messages, which do so at `start`, or behind
    them; 0 where there is none."""
    place = next(_places(body, name, _LONG_BEGINS, start), 0)
    if place:
        return place
    key = f'"{name}"'.encode()
    at = len(body)
    for _ in range(_PLACES):
        at = body.rfind(key, start, at)
        begins = _LONG_BEGINS.match(body, at + len(key)) if at >= 0 else None
        if begins is not None or at < 0:
            return begins.end() if begins is not None else 0
    return 0


def _likely_stop(body: Body, start: int, behind: int) -> int:
    """Where the list that begins at `start` is likely to end, if there is little between it and what is
    `behind` it; 0 where there is no telling. It lists objects, and what is short lists other things."""
    first, at = max(start, behind - _LITTLE), behind
    while (at := body.rfind(b"]", first, at)) > 0:
        if without_blanks(body, at).endswith(b"}") and _BEHIND.match(body, at + 1, behind) is not None:
            return at + 1
    return 0
