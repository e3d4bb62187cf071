"""Chat's messages read in one go, where they are plain; the others one field at a time.

What a message says beside what is looked at here no neutral one has either, and Chat itself gets it as it
came: that does not keep it from being plain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ....messages import Message, ToolCall, ToolResult
from ... import ids, recall
from ...conversations import Cut
from ...fields import as_object
from ...history import History, decoded
from ...plain import BEYOND_LISTS, BEYOND_STRINGS, LISTS, Asked, Call, Plain, Result, Said, Thoughts, Words
from ...turns import Pairing
from .read_messages import read_message
from .read_pairs import Conversation, is_freeform
from .shared import NAME

_NOTHING = msgspec.Raw(b"")


class _Part(msgspec.Struct, frozen=True, gc=False):
    type: str
    text: msgspec.Raw = _NOTHING
    prompt_cache_breakpoint: Any = None
    cache_control: Any = None


class _Function(msgspec.Struct, frozen=True, gc=False):
    name: str
    arguments: msgspec.Raw = _NOTHING
    parsed_arguments: Any = msgspec.UNSET


class _ToolCall(msgspec.Struct, frozen=True, gc=False):
    id: str
    function: _Function
    type: str = "function"
    index: Any = msgspec.UNSET
    extra_content: Any = None


class _Message(msgspec.Struct, frozen=True, gc=False):
    """Any message, with all that its reader looks at."""

    role: str
    content: msgspec.Raw = _NOTHING
    tool_calls: list[_ToolCall] | None = None
    tool_call_id: str = ""
    name: str | None = None
    reasoning_content: msgspec.Raw = _NOTHING
    reasoning: msgspec.Raw = _NOTHING
    reasoning_details: list[Any] | None = None
    refusal: str | None = None
    audio: Any = None
    images: list[Any] | None = None
    annotations: list[Any] | None = None
    function_call: Any = None


_parts = msgspec.json.Decoder(list[_Part]).decode


def read_history(cut: Cut, leading: tuple[Message, ...]) -> History:
    """The conversation of a request. Raises ValueError, BadRequest, … for what is wrong with it."""
    return recall.read_history(cut, leading, NAME, _read, _follow)


def _plain(message: _Message) -> Plain | None:
    role = message.role
    if role == "assistant":
        return _said(message)
    words = _words(message.content)
    if not words:
        return None
    if role == "tool":
        id = message.tool_call_id
        return None if not id or id.startswith(ids.OURS) else Asked([Result(id, words)])
    return Asked(words) if role == "user" and message.name is None else None


def _said(message: _Message) -> Said | None:
    words = _words(message.content)
    thoughts = _words(message.reasoning_content) or _words(message.reasoning)
    calls = [_call(call) for call in message.tool_calls or ()]
    if words is None or thoughts is None or None in calls or _says_more(message):
        return None
    content: list[Any] = [*[Thoughts(thought.text) for thought in thoughts], *words, *calls]
    return Said(content) if content else None


def _says_more(message: _Message) -> bool:
    if message.name is not None or message.audio is not None or message.function_call is not None:
        return True
    return bool(message.refusal or message.reasoning_details or message.images or message.annotations)


def _call(call: _ToolCall) -> Call | None:
    id, function = call.id, call.function
    arguments = function.arguments
    if call.type != "function" or call.extra_content is not None or call.index is not msgspec.UNSET:
        return None
    if function.parsed_arguments is not msgspec.UNSET or not (id and function.name):
        return None
    if id.startswith(ids.OURS) or len(arguments) < 3 or arguments >= BEYOND_STRINGS:
        return None
    return Call(id, function.name, arguments)


def _words(content: msgspec.Raw) -> list[Words] | None:
    """What is said there, which may be nothing; None if it is not just words."""
    if content < BEYOND_STRINGS:
        return [Words(content)] if len(content) > 2 else []
    if LISTS <= content < BEYOND_LISTS:
        parts = _parts(content)
        return [Words(part.text) for part in parts] if all(map(_is_text, parts)) else None
    return [] if bytes(content) == b"null" else None


def _is_text(part: _Part) -> bool:
    marked = part.prompt_cache_breakpoint is not None or part.cache_control is not None
    return part.type == "text" and not marked and bool(part.text) and part.text < BEYOND_STRINGS


read_list = recall.reader(_Message, _plain)


def _follow(
    item: bytes | msgspec.Raw, at: int, calls: dict[str, int], unusual: Mapping[int, Message]
) -> Message:
    message = _read(item, at)
    if message.raw is None:
        raise recall.FieldByField  # the deprecated `function_call` has no id, but is counted
    freeform: set[str] = set()
    for part in message.parts:
        if isinstance(part, ToolCall) and part.kind == "custom" and part.id in calls:
            raise recall.FieldByField  # a function was called with the same id
        called = unusual.get(calls.get(part.call_id, -1)) if isinstance(part, ToolResult) else None
        if called is not None:
            freeform |= {call.id for call in called.parts if is_freeform(call)}
    return Conversation(Pairing(calls), freeform).add(message, f"messages[{at}]", at)


def _read(item: bytes | msgspec.Raw, at: int) -> Message:
    where = f"messages[{at}]"
    return read_message(as_object(decoded(item, at), where), where)
