"""An OpenAI Chat client's request to the neutral one."""

from __future__ import annotations

from typing import Any

import msgspec

from ....messages import Message, Part, Raw, Request, ToolCall, ToolResult
from ...fields import Obj, array, as_object, boolean, join, need_string, parse_object, reject
from ...memory import MEMORY
from ...pieces import Body
from ...turns import Pairing
from .read_messages import read_message
from .read_settings import read_extras, read_settings, read_usage_wish
from .read_tools import read_tools
from .shared import NAME

_PAIRED = frozenset({ToolCall, ToolResult})
"""The kinds of parts that belong to others: all else is what it is wherever it stands."""


def read_request(body: Body, path: str = "") -> Request:
    """`path` says nothing that the body of a Chat request does not."""
    return read_fields(parse_object(body))


def read_fields(fields: Obj) -> Request:
    """The members of a Chat body."""
    model = need_string(fields, "model", "")
    messages = _messages(fields)
    tools = read_tools(fields)
    stream = bool(boolean(fields, "stream", ""))
    return Request(
        model=model,
        messages=messages,
        tools=tools,
        settings=read_settings(fields, tools),
        stream=stream,
        include_usage=read_usage_wish(fields, stream),
        extras=read_extras(fields),
        raw=Raw(NAME, fields),
    )


def _messages(fields: Obj) -> tuple[Message, ...]:
    if fields.get("messages") is None:
        reject("is required", "messages")
    conversation: Conversation | None = None
    messages: list[Message] = []
    for index, given in enumerate(array(fields, "messages", "")):
        where = f"messages[{index}]"
        message = _message(given, where)
        if not _PAIRED.isdisjoint(map(type, message.parts)):
            conversation = conversation or Conversation()
            message = conversation.add(message, where)
        messages.append(message)
    if not messages:
        reject("must not be empty", "messages")
    return tuple(messages)


def _message(given: Any, where: str) -> Message:
    known = MEMORY.known(given)
    if known is None:
        return read_message(as_object(given, where), where)
    return known.once(NAME, lambda: read_message(as_object(given, where), where))


class Conversation:
    """What only earlier messages can tell: which call a result answers, and its kind."""

    def __init__(self) -> None:
        self._pairing = Pairing()
        self._freeform: set[str] = set()
        self._legacy: dict[str, str] = {}
        self._legacy_calls = 0

    def add(self, message: Message, where: str) -> Message:
        if _PAIRED.isdisjoint(map(type, message.parts)):
            return message
        parts = tuple(self._part(part, message, where) for part in message.parts)
        return msgspec.structs.replace(message, parts=parts)

    def _part(self, part: Part, message: Message, where: str) -> Part:
        # Only the deprecated `function_call` and its answer are read without a raw form.
        legacy = message.raw is None
        if isinstance(part, ToolCall):
            return self._call(part, legacy)
        if isinstance(part, ToolResult):
            return self._result(part, where, legacy)
        return part

    def _call(self, call: ToolCall, legacy: bool) -> ToolCall:
        if legacy and not call.id:
            self._legacy_calls += 1
            call = msgspec.structs.replace(call, id=f"call_function_{self._legacy_calls}")
            self._legacy[call.name] = call.id
        if call.kind == "custom":
            self._freeform.add(call.id)
        self._pairing.call(call.id)
        return call

    def _result(self, result: ToolResult, where: str, legacy: bool) -> ToolResult:
        if legacy:
            id = self._legacy.get(result.name or "")
            if id is None:
                reject(f"no earlier function call was to {result.name!r}", where, "name")
            return msgspec.structs.replace(result, call_id=id)
        self._pairing.result(result.call_id, join(where, "tool_call_id"))
        if result.call_id in self._freeform:
            return msgspec.structs.replace(result, kind="custom")
        return result
