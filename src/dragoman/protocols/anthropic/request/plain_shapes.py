"""How Anthropic's plain messages look in a request, and who reads a list of them in one go.

What is long, and usually handed on as it is, is not read: the content of a message or of a result, where that
is likely to be a string. If it is a list after all, it is read when somebody looks at it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec.structs import force_setattr

from ...history import ReadAll
from ...plain import BEYOND_STRINGS, Asked, Call, Result, Said, Thoughts, Told, Words

_Name = Annotated[str, msgspec.Meta(min_length=1)]
UNSAID = msgspec.UNSET
_NOBODY = msgspec.Raw()


class _Mark(msgspec.Struct, frozen=True, gc=False):
    """A cache mark. What else it says is of no use to anybody."""

    ttl: str | None = None


_Marked = _Mark | None | msgspec.UnsetType


class TextBlock(Words, tag="text", frozen=True, forbid_unknown_fields=True, gc=False):
    """A `text` block. Anthropic's SDK says of most that there are no citations."""

    cache_control: _Marked = UNSAID
    citations: None = None


class CallBlock(Call, tag="tool_use", frozen=True, forbid_unknown_fields=True, gc=False):
    """A `tool_use` block."""

    id: _Name
    name: _Name
    cache_control: _Marked = UNSAID
    caller: msgspec.Raw = _NOBODY
    """Who made the call, the model itself or a program of its: for those who speak the same protocol."""


class ResultBlock(
    Result,
    tag="tool_result",
    rename={"call_id": "tool_use_id"},
    frozen=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """A `tool_result` block whose content is a list."""

    call_id: _Name
    content: list[TextBlock]
    is_error: bool = False  # pyright: ignore[reportIncompatibleVariableOverride]
    cache_control: _Marked = UNSAID


class GivenBlock(ResultBlock, frozen=True, gc=False):
    """The same with a content that is read only if it is a list: usually it is a string, and a long one."""

    content: msgspec.Raw  # pyright: ignore[reportIncompatibleVariableOverride]


class ThoughtsBlock(Thoughts, tag="thinking", rename={"text": "thinking"}, frozen=True, gc=False):
    """A `thinking` block. What else it may say is for those who speak the same protocol."""

    text: msgspec.Raw
    signature: str | None = None


class _Unusual(msgspec.Struct, frozen=True, gc=False):
    """What is common enough not to spoil the reading of all messages in one go, though it is not plain."""

    kind: ClassVar[Literal["unusual"]] = "unusual"


class _Redacted(_Unusual, tag="redacted_thinking", frozen=True, gc=False): ...


class _Image(_Unusual, tag="image", frozen=True, gc=False): ...


class _Document(_Unusual, tag="document", frozen=True, gc=False): ...


class ToldMessage(Told, tag_field="role", tag="system", frozen=True, gc=False):
    """A `system` message. One that changes the effort is for those who look closer."""

    content: msgspec.Raw = msgspec.Raw(b"null")  # pyright: ignore[reportIncompatibleVariableOverride]
    output_config: msgspec.Raw | msgspec.UnsetType = UNSAID


class SaidMessage(Said, tag_field="role", tag="assistant", frozen=True, forbid_unknown_fields=True, gc=False):
    """A message of the model's."""

    content: str | list[TextBlock | CallBlock | ThoughtsBlock | _Redacted]  # pyright: ignore[reportIncompatibleVariableOverride]


class AskedMessage(Asked, tag_field="role", tag="user", frozen=True, forbid_unknown_fields=True, gc=False):
    """One of the user's."""

    content: str | list[TextBlock | ResultBlock | _Image | _Document]  # pyright: ignore[reportIncompatibleVariableOverride]


class AskedGiven(AskedMessage, frozen=True, gc=False):
    """The same with results that are not read."""

    content: str | list[TextBlock | GivenBlock | _Image | _Document]  # pyright: ignore[reportIncompatibleVariableOverride]


class SaidUnread(SaidMessage, frozen=True, gc=False):
    """A message with a content that is not read: who does not use tools has long strings."""

    content: msgspec.Raw  # pyright: ignore[reportIncompatibleVariableOverride]


class AskedUnread(AskedMessage, frozen=True, gc=False):
    """The same of the user's."""

    content: msgspec.Raw  # pyright: ignore[reportIncompatibleVariableOverride]


UNREAD = frozenset({SaidUnread, AskedUnread})
NO_WORDS = len('""')
Listed = SaidMessage | AskedMessage | ToldMessage
_ReadAll = Callable[[bytes | memoryview], list[Listed | None]]
_all: _ReadAll = msgspec.json.Decoder(list[Listed]).decode  # pyright: ignore[reportAssignmentType]
_all_given: _ReadAll = msgspec.json.Decoder(list[SaidMessage | AskedGiven | ToldMessage]).decode  # pyright: ignore[reportAssignmentType]
_all_unread: _ReadAll = msgspec.json.Decoder(list[SaidUnread | AskedUnread | ToldMessage]).decode  # pyright: ignore[reportAssignmentType]
_one = msgspec.json.Decoder(SaidMessage | AskedGiven).decode
_said_parts = msgspec.json.Decoder(list[TextBlock | CallBlock | ThoughtsBlock | _Redacted]).decode
_asked_parts = msgspec.json.Decoder(list[TextBlock | GivenBlock | _Image | _Document]).decode
_words = msgspec.json.Decoder(list[TextBlock]).decode
_items = msgspec.json.Decoder(list[msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode

_FIRST_SAID = re.compile(rb'"assistant"(\s*,\s*"content"\s*:\s*")?')
"""What the model says first: is it a string?"""
_SOON = 8 * 1024
"""Bytes in which it has usually said something."""
_LAST_STRING = re.compile(rb'"\s*\}\s*\]\Z')
_NEAR = 64
"""Bytes: there are fewer blanks at the end of a list."""


def read_list(given: bytes | memoryview) -> list[Listed | None]:
    """The messages of a list; None for those that can only be read one field at a time. Whoever looks at a
    content, or at a result, has to ask whether it is one that is not read, and a list."""
    return (_read_strings if _are_strings(given) else _read_parts)(given)


def _are_strings(given: bytes | memoryview) -> bool:
    """Is what the model said first a string, and what was said last? Then all is likely to be."""
    first = _FIRST_SAID.search(given, 0, _SOON)
    if first is None or not first[1]:
        return False
    return _LAST_STRING.search(given, max(0, len(given) - _NEAR)) is not None


def _read_strings(given: bytes | memoryview) -> list[Listed | None]:
    """The same where contents are strings."""
    return _read_all(_all_unread, given)


def _read_parts(given: bytes | memoryview) -> list[Listed | None]:
    """The same where they are not."""
    try:
        return _all(given)
    except msgspec.ValidationError:
        return read_given(given)  # at the first result that is a string, or any that says something unusual


def read_given(given: bytes | memoryview) -> list[Listed | None]:
    """The same where a result was a string before: it would be so again."""
    return _read_all(_all_given, given)


def _read_all(all: _ReadAll, given: bytes | memoryview) -> list[Listed | None]:
    try:
        return all(given)
    except msgspec.ValidationError:
        return [_message(item) for item in _items(given)]


def read_again(given: bytes | memoryview) -> list[Listed | None]:
    """The same of what was looked at before."""
    messages = read_list(given)
    for message in messages:
        if isinstance(message, ToldMessage):
            if message.content >= BEYOND_STRINGS:
                is_list(message)
        elif message is not None:
            for part in parts_of(message) or ():
                if type(part) is GivenBlock and part.content >= BEYOND_STRINGS:
                    is_list(part)
    return messages


def who_reads_more(kinds: set[type]) -> ReadAll | None:
    """Who reads best what follows messages of these kinds; None where that has to be looked at again."""
    if AskedGiven in kinds:
        return read_given
    return _read_parts if UNREAD.isdisjoint(kinds) else None


def _message(item: msgspec.Raw) -> SaidMessage | AskedMessage | None:
    try:
        return _one(item)
    except msgspec.ValidationError:
        return None


def parts_of(message: SaidMessage | AskedMessage) -> list[Any] | None:
    """The parts of a message; None if it has none. A string is one text, unless it is empty."""
    content: Any = message.content
    if content.__class__ is list:
        return content
    if content.__class__ is str:
        content = msgspec.Raw(_encode(content))
    if content < BEYOND_STRINGS:
        parts: Any = [TextBlock(content)] if len(content) > NO_WORDS else []
    else:
        try:
            parts = (_said_parts if type(message) is SaidUnread else _asked_parts)(content)
        except msgspec.ValidationError:
            return None
    force_setattr(message, "content", parts)  # nobody has seen it as it was
    return parts


def is_list(one: GivenBlock | ToldMessage) -> bool:
    """Is a content that was not read a list of texts? Then it is read."""
    try:
        content = _words(one.content)
    except msgspec.ValidationError:
        return False
    force_setattr(one, "content", content)  # nobody has seen it as it was
    return True
