"""Freeform tools on wires that know only functions, and arguments on wires that want an object.

A freeform (`custom`) tool takes text, perhaps by a grammar. Elsewhere it travels as a function with one
string member `input`; the answer's translation takes the text out again (law 50).
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...model.messages import Tool, ToolCall
from .fields import Obj, decode_json, is_object
from .notices import Notices

_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

PARAMETERS: Obj = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""What the function that stands for a freeform tool takes."""


def emulated(tool: Tool, path: str, notices: Notices) -> tuple[str, Obj]:
    """The description and the parameters of the function that stands for a freeform tool."""
    message = f"{tool.name!r} takes free text: it travels as a function with one string"
    notices.say("custom-tool-emulated", path, message)
    words = [tool.description] if tool.description else []
    if tool.grammar:
        syntax = f" ({tool.grammar_syntax})" if tool.grammar_syntax else ""
        words.append(f"The input must follow this grammar{syntax}:\n{tool.grammar}")
    return "\n\n".join(words), PARAMETERS


def arguments_object(call: ToolCall, notices: Notices) -> Obj | msgspec.Raw:
    """A call's arguments as an object; what is none is wrapped in one, so that nothing of it is lost.

    A JSON object is only checked and goes on as the model spelled it.
    """
    if call.kind == "custom":
        return {"input": call.arguments}
    text = (call.arguments or "{}").encode("utf-8", "surrogatepass")
    try:
        _members(text)
        return msgspec.Raw(text)
    except (ValueError, RecursionError):
        return _mended(call, notices)


def _mended(call: ToolCall, notices: Notices) -> Obj:
    value = _decoded(call.arguments)
    if is_object(value):
        return value
    if value is None:
        return {}
    message = f"the arguments of {call.name!r} are not a JSON object"
    notices.say("arguments-wrapped", call.id, message)
    return {"arguments": call.arguments}


def _decoded(text: str) -> Any:
    try:
        return decode_json(text)
    except (ValueError, RecursionError):
        return text
