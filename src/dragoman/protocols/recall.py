"""A long request of any protocol: what the last one of its conversation had is not read again.

Each protocol says how its list of messages is read in one go, and how a request is made of what stands
around that; finding what is known, and keeping what was read for the next turn, is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ..errors import BadRequest
from ..messages import Message, Request
from .conversations import Cut, ReadTools
from .fields import Obj
from .history import History, Values
from .history import Read as ReadOne
from .listed import Read
from .memory import MEMORY, WORTH_IT, read_members
from .pieces import Body
from .plain import Plain

T = TypeVar("T")

Follow = Callable[[bytes | msgspec.Raw, int, dict[str, int], Mapping[int, Message]], Message]
"""Makes a message that is not plain out of its JSON, its place in the list, the calls so far, to which it
adds its own, and those messages so far that are not plain. Raises `BadRequest` or `FieldByField`."""


class FieldByField(Exception):
    """There is something in a request that is only understood with all of it at hand."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How a protocol's long requests are read."""

    name: str
    """Of the member that is the list of messages."""
    read_list: Read
    read_tools: ReadTools | None = None
    leading: Callable[[Obj], tuple[Message, ...]]
    """The messages that stand elsewhere in the request."""
    history: Callable[[Cut, tuple[Message, ...]], History]
    request: Callable[[Obj, History, str], Request]
    """Of all members, with the list as `Values`, and the path."""
    gone_on: Callable[[Request, Obj, History, str], Request]
    """The same where another request said the same around its messages."""


def recalled(body: Body, path: str, way: Way) -> Request | None:
    """The request that `body` is; None where it has to be read field by field, be it to complain exactly."""
    if len(body) < WORTH_IT:
        return None
    try:
        with MEMORY.reading:
            return _read(body, path, way)
    except (ValueError, RecursionError, BadRequest, FieldByField):
        return None


def _read(body: Body, path: str, way: Way) -> Request | None:
    name = way.name
    cut = MEMORY.conversations.cut(body, name, way.read_list, way.read_tools)
    if cut is None:
        return None
    if cut.members is None:
        assert cut.before is not None
        before = cut.before.request
        assert before.raw is not None
        history = way.history(cut, cut.before.history.leading)
        request = way.gone_on(before, {**before.raw.value, name: Values(history)}, history, path)
    else:
        members = read_members(cut.members, name)
        history = way.history(cut, way.leading(members))
        members[name] = Values(history)
        request = way.request(members, history, path)
    MEMORY.keep(name, cut, history, request)
    return request


def reader(kind: type[T], plain: Callable[[T], Plain | None]) -> Read:
    """Reads a list of such messages, each of which `plain` makes a plain one of; None for those it does not,
    or that are no such message."""
    all_of, one_of = msgspec.json.Decoder(list[kind]).decode, msgspec.json.Decoder(kind).decode
    items = msgspec.json.Decoder(list[msgspec.Raw]).decode

    def alone(item: msgspec.Raw) -> Plain | None:
        try:
            return plain(one_of(item))
        except msgspec.ValidationError:
            return None

    def read(given: bytes | memoryview) -> list[Plain | None]:
        try:
            return [plain(message) for message in all_of(given)]
        except msgspec.ValidationError:
            return [alone(item) for item in items(given)]

    return read


def read_history(
    cut: Cut,
    leading: tuple[Message, ...],
    protocol: str,
    read: ReadOne,
    follow: Follow,
    ahead: Sequence[Any] = (),
) -> History:
    """The conversation of a request whose list is read as plain messages, and None for those that are not.
    `read` makes one of these a neutral one, if somebody asks for that. What stands `ahead` of them in a list
    of which nothing is known is no message."""
    if cut.before is None:
        history = History(protocol, read, cut.read, cut.listed, leading, ahead=ahead)
    else:
        history = cut.before.history.begun(cut.count, cut.listed, leading)
    calls, unusual = history.calls, {**history.unusual()}
    plain: list[Plain | None] = cut.messages
    for at, message in enumerate(plain, cut.count):
        if message is None or not _is_paired(message, at, history, unusual):
            plain[at - cut.count] = None
            unusual[at] = follow(history.item(at), at, calls, unusual)
    history.add(plain, unusual)
    return history


def _is_paired(message: Plain, at: int, history: History, unusual: Mapping[int, Message]) -> bool:
    """Has every result of a plain message a plain call? What answers another kind of call is another kind of
    result."""
    content: Any = message.content
    if message.kind == "said":
        for part in content:
            if part.kind == "call":
                history.calls.setdefault(part.id, at)
            elif part.kind == "thoughts":
                history.thoughts[at] = True
        return True
    for part in content:
        if part.kind == "result":
            called = history.calls.get(part.call_id)
            if called is None or called in unusual:
                return False
    return True
