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
  another one does so for the list of tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from ..messages import Request
from .history import History
from .known import Known
from .listed import Listed, Read, listed
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
_TOKEN = _STAND_IN + b"]"
_SYSTEM = b'"system":'
_TOOLS = b'"tools":'
"""What else is long in a request, and may come before the messages or behind them."""
_BLANKS = b" \t\r\n"
_OPENS = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*(?=\[)")

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


class Conversation:
    """One request and its list of messages."""

    __slots__ = ("at", "history", "known", "listed", "name", "request", "start", "tell")

    def __init__(
        self, name: str, listed: Listed, history: History, request: Request, known: Sequence[Known]
    ) -> None:
        self.name = name
        self.listed = listed
        self.history = history
        self.request = request
        self.known = known
        """What is remembered of its members."""
        # A few bytes tell one conversation from another in nearly all cases: those around the beginning of a
        # message, where it has an id, or words of its own. How messages end is often the same in many.
        before = listed.early[-1][-_TELLS:]
        self.tell = b"".join((before, listed.late[:_TELLS]))
        self.at = listed.start - len(before)
        """Where these bytes are in the list."""
        self.start = listed.place + self.at
        """Where they usually are in a body."""

    def gone_on(self, body: Body, place: int, read: Read) -> Cut | None:
        """What `body`, which has the same tell, says after as much of this one as it begins with, if its list
        begins at `place`."""
        listed = self.listed
        reached = listed.shared(body, place)
        if not reached:
            return None
        # An agent moves its cache mark along: the last message comes again without it.
        marks = self.history.marked.get(listed.first + reached - 1, 0)
        known = listed.unmarked(body, place, reached) if marks == 1 else 0
        head, tail, cut = listed.head, listed.tail, None
        if head is not None and place == listed.place and body.startswith(head) and body.endswith(tail):
            cut = self._new_messages(body, reached, known, read, head)
        return cut or self._new_members(body, reached, known, place, read)

    def _new_messages(self, body: Body, reached: int, known: int, read: Read, head: memoryview) -> Cut | None:
        """`body`, which says the same around its messages, without the first ones, and so much that is known
        behind them."""
        listed = self.listed
        start = listed.place + listed.start + listed.ends[reached - 1]
        stop = len(body) - len(listed.tail)
        if start + known > stop:
            return None
        json = _checked(bytes(memoryview(body)[start:stop]))
        new = listed.longer(reached, json, known, read, head, listed.tail)
        if new is None:
            return None
        messages, longer = new
        return Cut(None, messages, self, listed.first + reached - 1 + (known > 0), known > 0, longer)

    def _new_members(self, body: Body, reached: int, known: int, place: int, read: Read) -> Cut | None:
        """The same, whatever stands around its messages; None if they are not the beginning of its list."""
        listed = self.listed
        data, start = memoryview(body), place + listed.start + listed.ends[reached - 1]
        rest = b"".join((data[:place], _STAND_IN, data[start + known :]))
        members = _members(_checked(rest))
        given = bytes(members.get(self.name, b""))
        if len(given) < len(_STAND_IN) or not rest.startswith(given, place):
            return None
        behind = given[len(_STAND_IN) : -1].rstrip(_BLANKS)
        json = b"".join((data[start : start + known], behind))
        head, tail = memoryview(rest)[:place], memoryview(rest)[place + len(_STAND_IN) + len(behind) :]
        new = listed.longer(reached, json, known, read, head, tail)
        if new is None:
            return None
        messages, longer = new
        return Cut(members, messages, self, listed.first + reached - 1 + (known > 0), known > 0, longer)


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
            if body.startswith(kept.tell, kept.start) and kept.name == name:
                cut = kept.gone_on(body, kept.listed.place, read)
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
            if kept.listed.place == found.place or kept.name != name:
                continue
            cut = (
                kept.gone_on(body, found.place, read)
                if body.startswith(kept.tell, found.place + kept.at)
                else None
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
        return Cut(found.members, messages, None, 0, False, new)

    def keep(
        self, name: str, cut: Cut, history: History, request: Request, known: Sequence[Known] = ()
    ) -> None:
        """For the requests to come. The conversation that began the same has done its work."""
        if cut.before is not None and self._kept.pop(id(cut.before), None) is not None:
            self._size -= cut.before.listed.size
        conversation = Conversation(name, cut.listed, history, request, known)
        self._kept[id(conversation)] = conversation
        self._size += cut.listed.size
        while len(self._kept) > self._most or (self._size > self._most_bytes and len(self._kept) > 1):
            self._size -= self._kept.pop(next(iter(self._kept))).listed.size


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


def _checked(data: B) -> B:
    """`data`, if it is text. All else the JSON reader checks, also in what is not read."""
    if not data.isascii():
        data.decode()
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


def _found(body: Body, name: str) -> _Found | None:
    members = _members(body)
    given = memoryview(members.get(name, b"-"))
    if given[0] != ord("["):
        return None
    place = _certain_places(body, members).get(name, 0)
    return _Found(members, given, place or _likely_place(body, given, name), place > 0)


def _guessed(body: Body, name: str, before: int, *, tools: bool) -> _Found | None:
    """The same with a token for the list among the members, if a look tells where it ends: behind it there
    may be others, and then it does not. If it is a list, what is left of the body was read rightly. `before`
    is where the list began in another request: in a new conversation of the same agent it does so again.
    There may be another token for the `tools`."""
    key = f'"{name}":['.encode()
    begins = before >= len(key) and body.startswith(key, before + 1 - len(key))
    start = before if begins else next(_places(body, name), 0)
    stop = _likely_stop(body, start) if start else 0
    if stop < start + 2:
        return None
    data, messages = memoryview(body), (start, stop, name)
    offered = _likely_tools(body, start, stop) if tools else ()
    members = _around(data, sorted((messages, (*offered, "tools")))) if offered else None
    if members is not None:
        return _Found(members, data[start:stop], start, True, data[slice(*offered)])
    members = _around(data, [messages])
    return _Found(members, data[start:stop], start, True) if members is not None else None


def _around(data: memoryview, lists: list[tuple[int, int, str]]) -> dict[str, Any] | None:
    """The members of a body with tokens for `lists`, each with where it begins and ends and its name; None if
    one of them is not in its place."""
    rest: list[bytes | memoryview] = []
    places: dict[str, int] = {}
    at = moved = 0
    for start, stop, name in lists:
        rest += (data[at:start], _TOKEN)
        places[name] = start + moved
        moved += len(_TOKEN) - (stop - start)
        at = stop
    body = b"".join((*rest, data[at:]))
    try:
        members = _members(body)
    except msgspec.DecodeError:
        return None
    return members if places.items() <= _certain_places(body, members).items() else None


def _likely_tools(body: Body, start: int, stop: int) -> tuple[int, int] | tuple[()]:
    """Where the list of tools begins and is likely to end in a body with messages from `start` to `stop`;
    nothing where there is no telling, as where the system prompt, which may be a list too, stands behind."""
    at = body.find(_TOOLS, 0, start)
    begins, ends = (0, start) if at >= 0 else (stop, len(body))
    if at < 0:
        at = body.find(_TOOLS, stop)
    end = body.rfind(b'}],"', at, ends) + 2 if at >= 0 else 0
    first = at + len(_TOOLS)
    if end < first or not body.startswith(b"[", first) or body.find(_SYSTEM, begins, at) < 0:
        return ()
    return first, end


def _likely_stop(body: Body, start: int) -> int:
    """Where the list that begins at `start` is likely to end; 0 where there is no telling."""
    behind = [body.rfind(key, start) for key in (_SYSTEM, _TOOLS) if body.find(key, 0, start) < 0]
    next_list = min((at for at in behind if at >= 0), default=0)
    if next_list:
        return next_list - 1 if body.startswith(b"}],", next_list - 3) else 0
    return body.rfind(b"}]", max(start, len(body) - _TELLS)) + 2


def _certain_places(body: Body, members: dict[str, msgspec.Raw]) -> dict[str, int]:
    """Where the members begin; nothing where that is not certain. It is where nothing stands between them, as
    nearly everybody writes them: then their lengths add up to that of the body, as in no other case."""
    at = 1
    places: dict[str, int] = {}
    for key, value in members.items():
        at += len(key.encode()) + 3
        places[key] = at
        at += len(value) + 1
    return places if at == len(body) else {}


def _likely_place(body: Body, given: memoryview, name: str) -> int:
    begins = bytes(given[:_TELLS])
    return next((place for place in _places(body, name) if body.startswith(begins, place)), 0)
