"""Anthropic's messages read in one go, where they are plain; the others one field at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from ....messages import Message, Opaque, Text, ToolCall, ToolResult
from ... import ids
from ...conversations import Cut
from ...fields import as_object
from ...history import History, decoded
from ...plain import Asked, Call, Plain, Result, Said, Words
from ...turns import Pairing
from .read_blocks import read_message
from .spelling import inputs

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_UNSAID = msgspec.UNSET


class _Mark(msgspec.Struct, frozen=True, gc=False):
    """A cache mark. What else it says is of no use to anybody."""

    ttl: str | None = None


_Marked = _Mark | None | msgspec.UnsetType


class _Words(Words, tag="text", frozen=True, forbid_unknown_fields=True, gc=False):
    """A `text` block."""

    cache_control: _Marked = _UNSAID


class _Call(Call, tag="tool_use", frozen=True, forbid_unknown_fields=True, gc=False):
    id: _Name
    name: _Name
    cache_control: _Marked = _UNSAID


class _Result(
    Result,
    tag="tool_result",
    rename={"call_id": "tool_use_id"},
    frozen=True,
    forbid_unknown_fields=True,
    gc=False,
):
    call_id: _Name
    content: str | list[_Words]
    is_error: bool = False
    cache_control: _Marked = _UNSAID


class _Unusual(msgspec.Struct, frozen=True, gc=False):
    """What is common enough not to spoil the reading of all messages in one go, though it is not plain."""

    kind: ClassVar[Literal["unusual"]] = "unusual"


class _Thinking(_Unusual, tag="thinking", frozen=True, gc=False): ...


class _Redacted(_Unusual, tag="redacted_thinking", frozen=True, gc=False): ...


class _Image(_Unusual, tag="image", frozen=True, gc=False): ...


class _Document(_Unusual, tag="document", frozen=True, gc=False): ...


class _Told(_Unusual, tag_field="role", tag="system", frozen=True, gc=False):
    content: Literal[""] = ""


class _Said(Said, tag_field="role", tag="assistant", frozen=True, forbid_unknown_fields=True, gc=False):
    content: str | list[_Words | _Call | _Thinking | _Redacted]  # pyright: ignore[reportIncompatibleVariableOverride]


class _Asked(Asked, tag_field="role", tag="user", frozen=True, forbid_unknown_fields=True, gc=False):
    content: str | list[_Words | _Result | _Image | _Document]  # pyright: ignore[reportIncompatibleVariableOverride]


_OURS = ids.OURS
_OURS_BEGIN = _OURS[0][0]
"""All of them do so: one character tells of nearly all ids that they are not ours."""
# Of all that JSON begins with, a quote is the least and a brace the greatest: what is less than the first of
# these is a string, and what is not less than the second is an object.
_BEYOND_STRINGS = bytearray(b"#")
_OBJECTS = bytearray(b"{")
_one = msgspec.json.Decoder(_Said | _Asked).decode
_Message = _Said | _Asked | _Told
_all: Callable[[bytes | memoryview], list[_Message | None]] = msgspec.json.Decoder(list[_Message]).decode  # pyright: ignore[reportAssignmentType]
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read_list(given: bytes | memoryview) -> list[_Message | None]:
    """The messages of a list; None for those that can only be read one field at a time."""
    try:
        return _all(given)
    except msgspec.ValidationError:
        return [_message(item) for item in _items(given)]


def read_history(cut: Cut, leading: tuple[Message, ...]) -> History:
    """The conversation of a request. Raises ValueError, RecursionError or BadRequest for what is wrong."""
    history = _begun(cut, leading)
    plain: list[Plain | None] = cut.messages
    unusual: dict[int, Message] = {}
    calls, marked = history.pairing.calls, history.marked
    for at, message in enumerate(plain, cut.count):
        # All of a long history goes through here: to ask an attribute of one class only is quicker.
        if type(message) is _Said:
            said: Any = message.content
            if said.__class__ is str or _are_said(said, at, calls, marked):
                continue
        elif type(message) is _Asked:
            asked: Any = message.content
            if asked.__class__ is str or _are_asked(asked, at, calls, marked):
                continue
        plain[at - cut.count] = None
        marked.pop(at, None)
        read = unusual[at] = _read(history.item(at), at)
        check_pairs(read, at, history.pairing)
        history.told = history.told or read.role == "system"
    history.add(plain, unusual)
    return history


def _begun(cut: Cut, leading: tuple[Message, ...]) -> History:
    """As much of it as is known."""
    if cut.before is None:
        return History(_read, read_list, cut.listed, leading)
    return cut.before.history.begun(cut.count, cut.listed, leading, unmarked=cut.unmarked)


def _message(item: msgspec.Raw) -> _Said | _Asked | None:
    try:
        return _one(item)
    except msgspec.ValidationError:
        return None


def _are_said(
    parts: list[_Words | _Call | _Unusual], at: int, calls: dict[str, int], marked: dict[int, int]
) -> bool:
    """Is every part of a message of the model's plain? What has a cache mark may be, but that is `marked`."""
    for part in parts:
        if type(part) is _Call:
            id = part.id
            if (id[0] == _OURS_BEGIN and id.startswith(_OURS)) or part.input < _OBJECTS:
                return False
            calls.setdefault(id, at)
            if part.cache_control is not _UNSAID:
                marked[at] = marked.get(at, 0) + 1
        elif type(part) is _Words and part.text < _BEYOND_STRINGS:
            if part.cache_control is not _UNSAID:
                marked[at] = marked.get(at, 0) + 1
        else:
            return False
    return True


def _are_asked(
    parts: list[_Words | _Result | _Unusual], at: int, calls: dict[str, int], marked: dict[int, int]
) -> bool:
    """The same for one of the user's."""
    for part in parts:
        if type(part) is _Result:
            id = part.call_id
            if id not in calls or part.is_error or (id[0] == _OURS_BEGIN and id.startswith(_OURS)):
                return False
            content: Any = part.content
            for words in () if content.__class__ is str else content:
                if words.text >= _BEYOND_STRINGS or words.cache_control is not _UNSAID:
                    return False
            if part.cache_control is not _UNSAID:
                marked[at] = marked.get(at, 0) + 1
        elif type(part) is _Words and part.text < _BEYOND_STRINGS:
            if part.cache_control is not _UNSAID:
                marked[at] = marked.get(at, 0) + 1
        else:
            return False
    return True


def check_pairs(message: Message, at: int, pairing: Pairing) -> None:
    for index, part in enumerate(message.parts):
        if type(part) is Text:
            continue
        if isinstance(part, ToolCall):
            pairing.call(part.id, at)
        elif isinstance(part, ToolResult):
            # In a user message every block is a part, so the positions are the client's.
            pairing.result(part.call_id, f"messages[{at}].content[{index}].tool_use_id")
        elif isinstance(part, Opaque):
            # Kinds of call yet unknown may be answered like any other.
            id = part.raw.value.get("id")
            if isinstance(id, str):
                pairing.call(id, at)


def _read(item: bytes | msgspec.Raw, at: int) -> Message:
    where = f"messages[{at}]"
    return read_message(as_object(decoded(item, at), where), where, inputs(item))
