"""One Chat message, read. Pure: the same message is the same neutral message wherever it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from ....messages import (
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
from ... import ids
from ...fields import Obj, as_object, is_object, join, mapping, need_string, objects, reject, string
from . import reasoning
from .read_parts import content_parts, read_part, result_parts
from .shared import NAME

_encode = msgspec.json.Encoder().encode


def read_message(message: Obj, where: str) -> Message:
    """`where` only names the message in complaints."""
    role = need_string(message, "role", where)
    read = _READERS.get(role)
    if read is None:
        reject(f"{role!r} is not one of {', '.join(_READERS)}", where, "role")
    return read(message, where)


def _said(role: Literal["system", "developer", "user"]) -> Callable[[Obj, str], Message]:
    def read(message: Obj, where: str) -> Message:
        parts = content_parts(message, where, required=True)
        return Message(role, parts, string(message, "name", where), Raw(NAME, message))

    return read


def _assistant(message: Obj, where: str) -> Message:
    said = reasoning.read(message, where)
    parts: list[Part] = list(said.thoughts)
    parts += _cited(content_parts(message, where, required=False), message, where)
    refusal = string(message, "refusal", where)
    if refusal:
        parts.append(Refusal(refusal))
    audio = mapping(message, "audio", where)
    if audio is not None:
        parts.append(Opaque(Raw(NAME, audio), "audio"))
    parts += _images(message, where)
    for at, call in objects(message, "tool_calls", where):
        parts.append(_call(call, at, said))
    name = string(message, "name", where)
    legacy = mapping(message, "function_call", where)
    if legacy is None:
        return Message("assistant", tuple(parts), name, Raw(NAME, message))
    # Deprecated, and without an id: whoever reads the conversation gives it one.
    at = join(where, "function_call")
    called = need_string(legacy, "name", at)
    parts.append(ToolCall(id="", name=called, arguments=_arguments(legacy, at)))
    return Message("assistant", tuple(parts), name)


def _cited(parts: tuple[Part, ...], message: Obj, where: str) -> list[Part]:
    """Loops that echo an answer send its `annotations` along; they are about the text."""
    result = list(parts)
    citations: list[Citation] = []
    for at, note in objects(message, "annotations", where):
        source = note.get("url_citation")
        if is_object(source):
            at = join(at, "url_citation")
            url, title = string(source, "url", at) or "", string(source, "title", at) or ""
            start, end = source.get("start_index"), source.get("end_index")
            citations.append(Citation(url, title, "", start, end))
    first = next((i for i, part in enumerate(result) if isinstance(part, Text)), None)
    if citations and first is not None:
        result[first] = msgspec.structs.replace(result[first], citations=tuple(citations))
    return result


def _images(message: Obj, where: str) -> list[Part]:
    """Pictures the model made, where OpenRouter and our own encoder put them."""
    parts = [read_part(image, at) for at, image in objects(message, "images", where)]
    return [part for part in parts if isinstance(part, Media)]


def _call(call: Obj, where: str, said: reasoning.Reasoning) -> ToolCall:
    """One of `tool_calls`. The SDK's `index` and `parsed_arguments`, when echoed, mean nothing."""
    id = ids.from_client(need_string(call, "id", where))
    # Snowflake gives each call an empty `custom` too, so the type is asked before the keys.
    kind = string(call, "type", where) or "function"
    if kind not in ("function", "custom"):
        reject(f"{kind!r} is not one of function, custom", where, "type")
    at = join(where, kind)
    inner = as_object(call.get(kind), at)
    text = (string(inner, "input", at) or "") if kind == "custom" else _arguments(inner, at)
    return ToolCall(
        id=id,
        name=need_string(inner, "name", at),
        arguments=text,
        kind=kind,
        seal=reasoning.call_seal(call) or said.of_calls.get(id),
    )


def _arguments(function: Obj, where: str) -> str:
    arguments = function.get("arguments")
    # Mistral and Ollama give an object where the wire has text; loops send it back like that.
    if is_object(arguments):
        return _encode(arguments).decode()
    return string(function, "arguments", where) or ""


def _tool(message: Obj, where: str) -> Message:
    result = ToolResult(
        call_id=ids.from_client(need_string(message, "tool_call_id", where)),
        parts=result_parts(message, where),
        name=string(message, "name", where),
    )
    return Message("user", (result,), None, Raw(NAME, message))


def _function(message: Obj, where: str) -> Message:
    """The deprecated answer to a `function_call`: it says the function's name, and no id."""
    content = string(message, "content", where)
    parts = (Text(content),) if content else ()
    result = ToolResult(call_id="", parts=parts, name=need_string(message, "name", where))
    return Message("user", (result,))


_READERS: dict[str, Callable[[Obj, str], Message]] = {
    "developer": _said("developer"),
    "system": _said("system"),
    "user": _said("user"),
    "assistant": _assistant,
    "tool": _tool,
    "function": _function,
}
