"""Tool lists as people have them: in any protocol's shape, mixed if need be.

Each tool is told by its own shape and read by that protocol's reader, so there is one way to read it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..errors import BadRequest
from ..messages import Tool
from ..protocols.fields import as_object, is_array, is_object
from ..protocols.registry import protocol

_EMPTY: dict[str, dict[str, Any]] = {
    "anthropic": {"model": "-", "max_tokens": 1, "messages": [{"role": "user", "content": "-"}]},
    "openai-chat": {"model": "-", "messages": [{"role": "user", "content": "-"}]},
    "openai-responses": {"model": "-", "input": "-"},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": "-"}]}]},
}


def read_tools(value: Any) -> tuple[Tool, ...]:
    """The tools in `value`: a list of them, or an object that has one as `tools`."""
    if is_object(value) and "tools" in value:
        value = value["tools"]
    if not is_array(value):
        raise BadRequest("expected a list of tools", "tools")
    return tuple(tool for index, item in enumerate(value) for tool in _read(item, f"tools[{index}]"))


def _read(item: Any, where: str) -> tuple[Tool, ...]:
    tool = as_object(item, where)
    shape = _shape(tool)
    if shape is None:
        return (_plain(tool, where),)
    try:
        body = msgspec.json.encode(_EMPTY[shape] | {"tools": [tool]})
        return protocol(shape).read_request(body, "").tools
    except BadRequest as error:
        raise BadRequest(error.message.replace("tools[0]", where)) from None


def _shape(tool: dict[str, Any]) -> str | None:
    """Which protocol writes a tool like this? None for our own plain `name` and `parameters`."""
    kind = tool.get("type")
    if "functionDeclarations" in tool or "function_declarations" in tool:
        return "gemini"
    if kind in ("function", "custom") and kind in tool:
        return "openai-chat"
    if "input_schema" in tool:
        return "anthropic"
    return "openai-responses" if kind is not None else None


def _plain(tool: dict[str, Any], where: str) -> Tool:
    name, parameters = tool.get("name"), tool.get("parameters")
    if not isinstance(name, str) or not name:
        raise BadRequest("a tool needs a name", f"{where}.name")
    if parameters is not None and not is_object(parameters):
        raise BadRequest("expected a JSON Schema object", f"{where}.parameters")
    description = tool.get("description")
    return Tool(
        name=name,
        description=description if isinstance(description, str) else None,
        parameters=parameters,
    )
