"""Anthropic's messages read in one go, where they are plain; the others one field at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec.structs import force_setattr

from ....messages import Message, Opaque, Text, ToolCall, ToolResult
from ... import ids, seals
from ...conversations import Cut
from ...fields import as_object
from ...history import History, ReadAll, decoded
from ...plain import BEYOND_STRINGS, OBJECTS, Asked, Call, Result, Said, Thoughts, Told, Words
from ...turns import Pairing
from ..decoder import NAME
from .read_blocks import read_message
from .spelling import inputs

_Name = Annotated[str, msgspec.Meta(min_length=1)]
_UNSAID = msgspec.UNSET
_NOBODY = msgspec.Raw()


class _Mark(msgspec.Struct, frozen=True, gc=False):
    """A cache mark. What else it says is of no use to anybody."""

    ttl: str | None = None


_Marked = _Mark | None | msgspec.UnsetType


class _Words(Words, tag="text", frozen=True, forbid_unknown_fields=True, gc=False):
    """A `text` block. Anthropic's SDK says of most that there are no citations."""

    cache_control: _Marked = _UNSAID
    citations: None = None


class _Call(Call, tag="tool_use", frozen=True, forbid_unknown_fields=True, gc=False):
    id: _Name
    name: _Name
    cache_control: _Marked = _UNSAID
    caller: msgspec.Raw = _NOBODY
    """Who made the call, the model itself or a program of its: for those who speak the same protocol."""


class _Result(
    Result,
    tag="tool_result",
    rename={"call_id": "tool_use_id"},
    frozen=True,
    forbid_unknown_fields=True,
    gc=False,
):
    call_id: _Name
    content: list[_Words]
    is_error: bool = False  # pyright: ignore[reportIncompatibleVariableOverride]
    cache_control: _Marked = _UNSAID


class _Given(_Result, frozen=True, gc=False):
    """The same with a content that is read only if it is a list: usually it is a string, and a long one."""

    content: msgspec.Raw  # pyright: ignore[reportIncompatibleVariableOverride]


class _Thoughts(Thoughts, tag="thinking", rename={"text": "thinking"}, frozen=True, gc=False):
    """A `thinking` block. What else it may say is for those who speak the same protocol."""

    text: msgspec.Raw
    signature: str | None = None


class _Unusual(msgspec.Struct, frozen=True, gc=False):
    """What is common enough not to spoil the reading of all messages in one go, though it is not plain."""

    kind: ClassVar[Literal["unusual"]] = "unusual"


class _Redacted(_Unusual, tag="redacted_thinking", frozen=True, gc=False): ...


class _Image(_Unusual, tag="image", frozen=True, gc=False): ...


class _Document(_Unusual, tag="document", frozen=True, gc=False): ...


class _Told(Told, tag_field="role", tag="system", frozen=True, gc=False):
    """A `system` message. One that changes the effort is for those who look closer."""

    content: msgspec.Raw = msgspec.Raw(b"null")  # pyright: ignore[reportIncompatibleVariableOverride]
    output_config: msgspec.Raw | msgspec.UnsetType = _UNSAID


class _Said(Said, tag_field="role", tag="assistant", frozen=True, forbid_unknown_fields=True, gc=False):
    content: str | list[_Words | _Call | _Thoughts | _Redacted]  # pyright: ignore[reportIncompatibleVariableOverride]


class _Asked(Asked, tag_field="role", tag="user", frozen=True, forbid_unknown_fields=True, gc=False):
    content: str | list[_Words | _Result | _Image | _Document]  # pyright: ignore[reportIncompatibleVariableOverride]


class _AskedGiven(_Asked, frozen=True, gc=False):
    content: str | list[_Words | _Given | _Image | _Document]  # pyright: ignore[reportIncompatibleVariableOverride]


class _SaidUnread(_Said, frozen=True, gc=False):
    """The same with a content that is read only if it is a list: who does not use tools has long strings."""

    content: msgspec.Raw  # pyright: ignore[reportIncompatibleVariableOverride]


class _AskedUnread(_Asked, frozen=True, gc=False):
    content: msgspec.Raw  # pyright: ignore[reportIncompatibleVariableOverride]


_UNREAD = frozenset({_SaidUnread, _AskedUnread})
_NO_WORDS = len('""')
_OURS, _OURS_FROM, _OURS_TO = ids.OURS, ids.OURS_FROM, ids.OURS_TO
_Message = _Said | _Asked | _Told
_ReadAll = Callable[[bytes | memoryview], list[_Message | None]]
_all: _ReadAll = msgspec.json.Decoder(list[_Message]).decode  # pyright: ignore[reportAssignmentType]
_all_given: _ReadAll = msgspec.json.Decoder(list[_Said | _AskedGiven | _Told]).decode  # pyright: ignore[reportAssignmentType]
_all_unread: _ReadAll = msgspec.json.Decoder(list[_SaidUnread | _AskedUnread | _Told]).decode  # pyright: ignore[reportAssignmentType]
_one = msgspec.json.Decoder(_SaidUnread | _AskedUnread).decode
_said_parts = msgspec.json.Decoder(list[_Words | _Call | _Thoughts | _Redacted]).decode
_asked_parts = msgspec.json.Decoder(list[_Words | _Given | _Image | _Document]).decode
_words = msgspec.json.Decoder(list[_Words]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode

_FIRST_SAID = re.compile(rb'"assistant"(\s*,\s*"content"\s*:\s*")?')
"""What the model says first: is it a string?"""
_SOON = 8 * 1024
"""Bytes in which it has usually said something."""
_LAST_STRING = re.compile(rb'"\s*\}\s*\]\Z')
_NEAR = 64
"""Bytes: there are fewer blanks at the end of a list."""


def read_list(given: bytes | memoryview) -> list[_Message | None]:
    """The messages of a list; None for those that can only be read one field at a time. Whoever looks at a
    content, or at a result, has to ask whether it is one that is not read, and a list."""
    return (_read_strings if _are_strings(given) else _read_parts)(given)


def _are_strings(given: bytes | memoryview) -> bool:
    """Is what the model said first a string, and what was said last? Then all is likely to be."""
    first = _FIRST_SAID.search(given, 0, _SOON)
    if first is None or not first[1]:
        return False
    return _LAST_STRING.search(given, max(0, len(given) - _NEAR)) is not None


def _read_strings(given: bytes | memoryview) -> list[_Message | None]:
    """The same where contents are strings."""
    return _read_all(_all_unread, given)


def _read_parts(given: bytes | memoryview) -> list[_Message | None]:
    """The same where they are not."""
    try:
        return _all(given)
    except msgspec.ValidationError:
        return _read_given(given)  # at the first result that is a string, or any that says something unusual


def _read_given(given: bytes | memoryview) -> list[_Message | None]:
    """The same where a result was a string before: it would be so again."""
    return _read_all(_all_given, given)


def _read_all(all: _ReadAll, given: bytes | memoryview) -> list[_Message | None]:
    try:
        return all(given)
    except msgspec.ValidationError:
        return [_message(item) for item in _items(given)]


def _read_again(given: bytes | memoryview) -> list[_Message | None]:
    """The same of what was looked at before."""
    messages = read_list(given)
    for message in messages:
        if isinstance(message, _Told):
            if message.content >= BEYOND_STRINGS:
                _is_list(message)
        elif message is not None:
            for part in _parts(message) or ():
                if type(part) is _Given and part.content >= BEYOND_STRINGS:
                    _is_list(part)
    return messages


def read_history(cut: Cut, leading: tuple[Message, ...]) -> History:
    """The conversation of a request. Raises ValueError, RecursionError or BadRequest for what is wrong."""
    if cut.before is None:
        history = History(NAME, _read, _read_again, cut.listed, leading)
    else:
        history = cut.before.history.begun(cut.count, cut.listed, leading, unmarked=cut.unmarked)
    plain: list[Any] = cut.messages
    if history.read_more is not _read_given:
        history.read_more = _who_reads_more(set(map(type, plain))) or history.read_more
    unusual: dict[int, Message] = {}
    place = 0
    while place < len(plain):
        message, end = plain[place], place
        if type(message) is _Said and message.content.__class__ is list:
            end = _usual_turns(plain, place, cut.count, history)
        elif type(message) in _UNREAD:
            end = _strings(plain, place)
        if end > place:
            place = end
            continue
        at = cut.count + place
        if not _IS_PLAIN[type(message)](message, at, history):
            plain[place] = None
            unusual[at] = _read_unusual(history, at)
        place += 1
    history.add(plain, unusual)
    return history


def _who_reads_more(kinds: set[type]) -> ReadAll | None:
    """Who reads best what follows messages of these kinds; None where that has to be looked at again."""
    if _AskedGiven in kinds:
        return _read_given
    return _read_parts if _UNREAD.isdisjoint(kinds) else None


def _usual_turns(plain: list[Any], start: int, count: int, history: History) -> int:
    """Where the turns from `start` on end that are one call, perhaps after thoughts and some words, and its
    result, with no cache mark but on that, and perhaps a string of the system's. Nearly all turns of an agent
    are so, and go through here with few steps; all others, and ids that may be ours, are for those who look
    closer. There are `count` messages before."""
    calls, usual = history.calls, history.usual
    place, last = start, len(plain) - 1
    while place < last:
        said, asked = plain[place], plain[place + 1]
        # To ask an attribute of one class only is quicker.
        if type(said) is not _Said or not (type(asked) is _Asked or type(asked) is _AskedGiven):
            if type(said) is not _Told or said.content >= BEYOND_STRINGS or said.output_config is not _UNSAID:
                return place
            place += 1
            continue
        parts: Any = said.content
        results: Any = asked.content
        size, at = len(parts), count + place
        if len(results) != 1 or not 0 < size < 4:
            return place
        call, result = parts[-1], results[0]
        if (
            type(call) is not _Call
            or not (type(result) is _Given or type(result) is _Result)
            or result.is_error
            or result.call_id != (id := call.id)
            or _OURS_FROM <= id < _OURS_TO
            or call.input < OBJECTS
            or call.cache_control is not _UNSAID
        ):
            return place
        if size > 1 and (
            type(words := parts[-2]) is not _Words
            or words.text >= BEYOND_STRINGS
            or words.cache_control is not _UNSAID
            or (size == 3 and not _are_thoughts(parts[0], at, history))
        ):
            return place
        content: Any = result.content
        if type(result) is _Result:
            content = (
                content[0].text
                if len(content) == 1 and content[0].cache_control is _UNSAID
                else BEYOND_STRINGS
            )
        if content >= BEYOND_STRINGS:
            return place
        calls.setdefault(id, at)
        usual.add(at)
        if result.cache_control is not _UNSAID:
            history.marked[at + 1] = 1
        place += 2
    return place


def _strings(plain: list[Any], start: int) -> int:
    """Where the messages from `start` on end that are words, each as a string: those of who uses no tools go
    through here with few steps."""
    for place in range(start, len(plain)):
        message = plain[place]
        if type(message) not in _UNREAD:
            return place
        content = message.content
        if content >= BEYOND_STRINGS or len(content) == _NO_WORDS:
            return place
        force_setattr(message, "content", [_Words(content)])  # nobody has seen it as it was
    return len(plain)


def _read_unusual(history: History, at: int) -> Message:
    history.marked.pop(at, None)
    history.thoughts.pop(at, None)
    read = _read(history.item(at), at)
    check_pairs(read, at, Pairing(history.calls))
    if read.role == "system":
        history.told = at
    return read


def _is_told(message: _Told, at: int, history: History) -> bool:
    """Does a system say words and nothing else?"""
    if message.output_config is not _UNSAID:
        return False
    if message.content < BEYOND_STRINGS:
        return True
    if not _is_list(message):
        return False
    content: Any = message.content
    marks = sum([words.cache_control is not _UNSAID for words in content])
    if marks:
        history.marked[at] = marks
    return all(words.text < BEYOND_STRINGS for words in content)


def _message(item: msgspec.Raw) -> _SaidUnread | _AskedUnread | None:
    try:
        return _one(item)
    except msgspec.ValidationError:
        return None


def _is_said(message: _Said, at: int, history: History) -> bool:
    """Is every part of a message of the model's plain? What has a cache mark may be, but that is `marked`."""
    content: Any = message.content
    if content.__class__ is not list and (content := _parts(message)) is None:
        return False
    for part in content:
        # To ask an attribute of one class only is quicker.
        kind: Any = part.__class__
        if kind is _Call:
            id = part.id
            if part.input < OBJECTS or (_OURS_FROM <= id < _OURS_TO and id.startswith(_OURS)):
                return False
            history.calls.setdefault(id, at)
            if part.cache_control is not _UNSAID:
                _mark(history, at)
        elif kind is _Words and part.text < BEYOND_STRINGS:
            if part.cache_control is not _UNSAID:
                _mark(history, at)
        elif not _are_thoughts(part, at, history):
            return False
    return True


def _are_thoughts(part: Any, at: int, history: History) -> bool:
    if type(part) is not _Thoughts:
        return False
    signature = part.signature
    if signature and signature.startswith(seals.OURS):
        return False
    history.thoughts[at] = history.thoughts.get(at, True) and bool(signature)
    return part.text < BEYOND_STRINGS


def _is_asked(message: _Asked, at: int, history: History) -> bool:
    """The same for one of the user's."""
    content: Any = message.content
    if content.__class__ is not list and (content := _parts(message)) is None:
        return False
    for part in content:
        kind: Any = part.__class__
        if kind is _Words:
            if part.text >= BEYOND_STRINGS:
                return False
        elif kind is _Given or kind is _Result:
            id = part.call_id
            if id not in history.calls or (_OURS_FROM <= id < _OURS_TO and id.startswith(_OURS)):
                return False
            if (kind is _Result or part.content >= BEYOND_STRINGS) and not _are_words(part):
                return False
        else:
            return False
        if part.cache_control is not _UNSAID:
            _mark(history, at)
    return True


def _mark(history: History, at: int) -> None:
    history.marked[at] = history.marked.get(at, 0) + 1


def _is_none(message: None, at: int, history: History) -> bool:
    return False


_IS_PLAIN: dict[type, Callable[[Any, int, History], bool]] = {
    _Said: _is_said,
    _SaidUnread: _is_said,
    _Asked: _is_asked,
    _AskedGiven: _is_asked,
    _AskedUnread: _is_asked,
    _Told: _is_told,
    type(None): _is_none,
}


def _parts(message: _Said | _Asked) -> list[Any] | None:
    """The parts of a message; None if it has none. A string is one text, unless it is empty."""
    content: Any = message.content
    if content.__class__ is list:
        return content
    if content.__class__ is str:
        content = msgspec.Raw(_encode(content))
    if content < BEYOND_STRINGS:
        parts: Any = [_Words(content)] if len(content) > _NO_WORDS else []
    else:
        try:
            parts = (_said_parts if type(message) is _SaidUnread else _asked_parts)(content)
        except msgspec.ValidationError:
            return None
    force_setattr(message, "content", parts)  # nobody has seen it as it was
    return parts


def _are_words(result: _Result) -> bool:
    """Is the content of a result, which is no string, words and nothing else?"""
    if type(result) is _Given and not _is_list(result):
        return False
    content: Any = result.content
    if len(content) != 1:
        return all(map(_is_text, content))
    return content[0].text < BEYOND_STRINGS and content[0].cache_control is _UNSAID


def _is_text(words: _Words) -> bool:
    return words.text < BEYOND_STRINGS and words.cache_control is _UNSAID


def _is_list(one: _Given | _Told) -> bool:
    """Is a content that was not read a list of texts? Then it is read."""
    try:
        content = _words(one.content)
    except msgspec.ValidationError:
        return False
    force_setattr(one, "content", content)  # nobody has seen it as it was
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
