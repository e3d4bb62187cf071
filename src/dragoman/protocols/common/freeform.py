"""Freeform tools for upstreams that support only functions, and arguments for protocols that need an object.

A freeform (`custom`) tool takes text, perhaps with a grammar (OpenAI only). For other upstreams it becomes a
function with one string parameter, `input`. The translation of the answer extracts the text again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.messages import Tool, ToolCall
from .fields import Obj, decode_json, is_object
from .notices import Notices

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

PARAMETERS: Obj = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""The parameters of the function that replaces a freeform tool."""


def emulated(tool: Tool, path: str, notices: Notices) -> tuple[str, Obj]:
    """The description and the parameters of the function that replaces a freeform tool."""
    message = f"the upstream has no freeform tools: {tool.name!r} is sent as a function with one string"
    notices.warn("custom-tool-emulated", path, message)
    words = [tool.description] if tool.description else []
    if tool.grammar:
        syntax = f" ({tool.grammar_syntax})" if tool.grammar_syntax else ""
        words.append(f"The input must follow this grammar{syntax}:\n{tool.grammar}")
    return "\n\n".join(words), PARAMETERS


def arguments_object(call: ToolCall, notices: Notices) -> Obj | msgspec.Raw:
    """A call's arguments as a JSON object. Anything else is wrapped in an object, so that nothing is lost.

    A valid object is only checked and keeps the model's spelling.
    """
    if call.kind == "custom":
        return {"input": call.arguments}
    text = (call.arguments or "{}").encode("utf-8", "surrogatepass")
    try:
        _members(text)
        return msgspec.Raw(text)
    except (ValueError, RecursionError):
        return _wrapped(call, notices)


def _wrapped(call: ToolCall, notices: Notices) -> Obj:
    value = _decoded(call.arguments)
    if is_object(value):
        return value
    if value is None:
        return {}
    message = f"the arguments of {call.name!r} are not a JSON object"
    notices.warn("arguments-wrapped", call.id, message)
    return {"arguments": call.arguments}


def _decoded(text: str) -> Any:
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return text
