"""Read one Chat message. Its position in the conversation does not matter here (see `read_pairs`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

import msgspec

from ....model.messages import (
    Citation,
    Media,
    Message,
    Opaque,
    Part,
    Raw,
    Refusal,
    Text,
    ToolCall,
    ToolResult,
)
from ...common import call_ids
from ...common.fields import integer, is_object, reject, string
from ...common.typed_json import LazyArray, bad_request, member, members_of
from ..own import NAME
from . import reasoning
from .read_pairs import LEGACY
from .read_parts import content_parts, read_part, result_parts
from .read_tools import BUILTIN
from .unwrap import unwrapped
from .wire import (
    ROLES,
    AnyMessage,
    Assistant,
    Call,
    Developer,
    Function,
    FunctionMessage,
    System,
    ToolMessage,
    User,
)

_decode = msgspec.json.Decoder(AnyMessage).decode
_decode_all = msgspec.json.Decoder(list[AnyMessage]).decode
_encode = msgspec.json.Encoder().encode


def read_message(raw: msgspec.Raw, where: str) -> Message:
    """Read one message. `where` is its path, for errors."""
    return read_decoded(_decoded(raw, where), Raw(NAME, raw), where)


def decode_messages(listed: LazyArray) -> Iterable[AnyMessage]:
    """Decode the messages of a request as structs."""
    return listed.decoded(_decode_all, _decoded)


def read_decoded(message: AnyMessage, raw: Raw, where: str) -> Message:
    """Read a decoded message. `raw` is the original message."""
    return _READERS[message.__class__](message, raw, where)


def _decoded(raw: msgspec.Raw, where: str) -> AnyMessage:
    try:
        return _decode(raw)
    except msgspec.ValidationError as error:
        role: str = member(members_of(raw, where), "role", str, where)
        if role not in ROLES:
            reject(f"{role!r} is not one of {', '.join(ROLES)}", where, "role")
        raise bad_request(error, where) from None


def _text_message(
    role: Literal["system", "developer", "user"],
) -> Callable[[System | Developer | User, Raw, str], Message]:
    def read(message: System | Developer | User, raw: Raw, where: str) -> Message:
        parts = content_parts(message.content, where, required=True)
        return Message(role, parts, message.name, raw)

    return read


def _assistant(message: Assistant, raw: Raw, where: str) -> Message:
    reasoned = reasoning.read(message, where)
    parts: list[Part] = [*reasoned.thoughts, *content_parts(message.content, where, required=False)]
    if message.annotations:
        parts = _cited(parts, message.annotations, where)
    if message.refusal:
        parts.append(Refusal(message.refusal))
    if message.audio is not None:
        parts.append(Opaque(Raw(NAME, message.audio), "audio"))
    if message.images:
        parts += _images(message.images, where)
    wrapped, echoed = reasoned.wrapped, False
    for at, call in enumerate(message.tool_calls or ()):
        read = _call(call, f"{where}.tool_calls[{at}]", reasoned)
        wrapped = wrapped or read.id != call.id or reasoning.is_wrapped(call.extra_content)
        echoed = echoed or _is_echo(call)
        parts.append(read)
    legacy = message.function_call
    if legacy is not None:
        parts.append(ToolCall(id=LEGACY, name=legacy.name, arguments=_arguments(legacy)))
    turn = Message("assistant", tuple(parts), message.name, raw)
    return unwrapped(turn, raw, echoed=echoed) if wrapped or echoed else turn


def _cited(parts: list[Part], annotations: list[dict[str, Any]], where: str) -> list[Part]:
    """Add `annotations` to the text they belong to. Agents that echo an answer send them, too."""
    result = list(parts)
    citations: list[Citation] = []
    for index, note in enumerate(annotations):
        source = note.get("url_citation")
        if is_object(source):
            at = f"{where}.annotations[{index}].url_citation"
            url, title = string(source, "url", at) or "", string(source, "title", at) or ""
            start, end = integer(source, "start_index", at), integer(source, "end_index", at)
            citations.append(Citation(url, title, "", start, end))
    first = next((i for i, part in enumerate(result) if isinstance(part, Text)), None)
    if citations and first is not None:
        result[first] = msgspec.structs.replace(result[first], citations=tuple(citations))
    return result


def _images(images: list[msgspec.Raw], where: str) -> list[Media]:
    parts = (read_part(image, f"{where}.images[{at}]") for at, image in enumerate(images))
    return [part for part in parts if isinstance(part, Media)]


def _call(call: Call, where: str, reasoned: reasoning.MessageReasoning) -> ToolCall:
    """Read one entry of `tool_calls`."""
    id = call_ids.from_client(call.id)
    seal = reasoning.call_seal(call.extra_content) or reasoned.of_calls.get(id)
    kind = call.type or "function"
    if kind in ("function", BUILTIN):
        function = call.function
        if function is None:
            reject("is required", where, "function")
        arguments, run_by = _arguments(function), kind if kind == BUILTIN else ""
        return ToolCall(id=id, name=function.name, arguments=arguments, seal=seal, run_by_provider=run_by)
    if kind != "custom":
        reject(f"{kind!r} is not one of function, custom, {BUILTIN}", where, "type")
    custom = call.custom
    if custom is None or custom.name is None:
        reject("is required", where, "custom" if custom is None else "custom.name")
    return ToolCall(id=id, name=custom.name, arguments=custom.input or "", kind="custom", seal=seal)


def _is_echo(call: Call) -> bool:
    """Does the call hold members of OpenAI's stream helper?"""
    function = call.function
    inside = function is not None and function.parsed_arguments is not msgspec.UNSET
    return inside or call.index is not msgspec.UNSET


def _arguments(function: Function) -> str:
    given = function.arguments
    # Mistral's SDK sends an object.
    return _encode(given).decode() if isinstance(given, dict) else given or ""


def _tool(message: ToolMessage, raw: Raw, where: str) -> Message:
    given = message.tool_call_id
    id = call_ids.from_client(given)
    result = ToolResult(call_id=id, parts=result_parts(message.content, where), name=message.name)
    answer = Message("user", (result,), None, raw)
    return answer if id == given else unwrapped(answer, raw)


def _function(message: FunctionMessage, raw: Raw, where: str) -> Message:
    parts = (Text(message.content),) if message.content else ()
    return Message("user", (ToolResult(call_id=LEGACY, parts=parts, name=message.name),), None, raw)


_READERS: dict[type, Callable[[Any, Raw, str], Message]] = {
    Developer: _text_message("developer"),
    System: _text_message("system"),
    User: _text_message("user"),
    Assistant: _assistant,
    ToolMessage: _tool,
    FunctionMessage: _function,
}
