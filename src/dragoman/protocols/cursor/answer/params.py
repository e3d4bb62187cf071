"""Write a finished call for Cursor's client: the number of the tool and its parameter structure."""

from __future__ import annotations

from typing import Any

from ....model.messages import ToolCall
from ...common.fields import Obj, decode_json, is_object
from .kinds import BY_NAME, ClientTool, Kind


def tool_number(name: str) -> int:
    """The number of Cursor's tool with this name. Unknown names are MCP tools."""
    kind = BY_NAME.get(name)
    return int(kind.tool if kind else ClientTool.MCP)


def tool_call(call: ToolCall) -> Obj:
    """The object `tool_call_v2`. It has no members for options that the model did not give."""
    head: Obj = {"tool": tool_number(call.name), "tool_call_id": call.id}
    kind = BY_NAME.get(call.name)
    if kind is None:
        return {**head, "mcp_params": {"tools": [_mcp_tool(call)]}}
    return {**head, kind.params: parameters(kind, _arguments(call.arguments))}


def parameters(kind: Kind, arguments: Obj) -> Obj:
    """The parameter structure of `kind`. Arguments without a field (an `explanation`) are dropped."""
    params: Obj = {}
    for field in kind.fields:
        value = _first(arguments, (field.name, *field.sources))
        value = field.default if value is None else value
        if value is not None:
            _put(params, field.name.split("."), value)
    if kind.derived is not None:
        params |= kind.derived(arguments, params)
    return params | kind.fixed


def _mcp_tool(call: ToolCall) -> Obj:
    tool: Obj = {"name": call.name, "parameters": call.arguments or "{}"}
    return {**tool, "server_name": call.namespace} if call.namespace else tool


def _arguments(text: str) -> Obj:
    """Decode the arguments of a complete call. They are an object, or empty."""
    try:
        value = decode_json(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if is_object(value) else {}


def _first(arguments: Obj, names: tuple[str, ...]) -> Any:
    return next((arguments[name] for name in names if arguments.get(name) is not None), None)


def _put(params: Obj, path: list[str], value: Any) -> None:
    step, *rest = path
    if not rest:
        params[step] = value
    elif step.endswith("[]"):
        inside: Obj = {}
        params[step.removesuffix("[]")] = [inside]
        _put(inside, rest, value)
    else:
        _put(params.setdefault(step, {}), rest, value)
