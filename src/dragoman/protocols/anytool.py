"""A tool's definition in whichever protocol's shape it is written.

People paste tool lists from anywhere, and Cursor mixes them within one request. The envelope and the grammar
of a freeform tool are told apart by themselves; each is read by the reader of the protocol it belongs to.
"""

from __future__ import annotations

import re
from typing import Literal

from ..messages import Tool
from .anthropic.request import read_tools as anthropic
from .fields import Obj, is_object
from .gemini.request import read_tools as gemini
from .openai_chat.request import read_tools as chat
from .openai_responses.request import read_tools as responses
from .typed import as_json

Shape = Literal["anthropic", "openai-chat", "openai-responses", "gemini", "none"]

# Anthropic's own tools have their date in one piece, OpenAI's theirs in three.
_ANTHROPIC_TYPE = re.compile(r"[a-z_]+_\d{8}")


def tool_shape(tool: Obj) -> Shape:
    """Which protocol writes a tool exactly like this; `none` where it takes some goodwill to read."""
    kind = tool.get("type")
    if "functionDeclarations" in tool or "function_declarations" in tool:
        return "gemini"
    if "input_schema" in tool or (isinstance(kind, str) and _ANTHROPIC_TYPE.fullmatch(kind)):
        return "anthropic"
    nested = kind in ("function", "custom") and is_object(tool.get(kind))
    if nested:
        fits = kind == "function" or _has_nested_grammar(tool["custom"]) is not False
        return "openai-chat" if fits else "none"
    if kind == "custom":
        return "openai-responses" if not _has_nested_grammar(tool) else "none"
    return "none" if kind is None else "openai-responses"


def read_tool(tool: Obj, where: str) -> list[Tool]:
    """One entry of a list of tools: usually one tool, but some protocols group theirs."""
    match tool_shape(tool):
        case "gemini":
            return gemini.read_tool(as_json(tool), where)
        case "anthropic":
            return list(anthropic.read_tool(as_json(tool), where))
        case "openai-chat":
            return [chat.read_tool(as_json(tool), where)]
        case "openai-responses":
            return responses.read_tool(tool, where)
        case "none":
            return _with_goodwill(tool, where)


def _with_goodwill(tool: Obj, where: str) -> list[Tool]:
    if tool.get("type") == "custom":
        return responses.read_tool(_flat_custom(tool), where)
    if is_object(tool.get("function")):
        return [chat.read_tool(as_json({**tool, "type": "function"}), where)]
    return responses.read_tool({**tool, "type": "function"}, where)


def _has_nested_grammar(custom: Obj) -> bool | None:
    """Chat puts a grammar into an object of its own, Responses does not. None: there is no grammar."""
    format = custom.get("format")
    if not is_object(format) or format.get("type") != "grammar":
        return None
    return is_object(format.get("grammar"))


def _flat_custom(tool: Obj) -> Obj:
    """A freeform tool as Responses writes it."""
    custom = tool["custom"] if is_object(tool.get("custom")) else tool
    format = custom.get("format")
    if is_object(format) and is_object(format.get("grammar")):
        format = {"type": "grammar", **format["grammar"]}
    flat = {key: custom[key] for key in ("name", "description") if key in custom}
    return {"type": "custom", **flat, "format": format}
