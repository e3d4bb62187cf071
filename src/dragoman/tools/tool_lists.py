"""Reads tool lists of users: in the format of any protocol, also mixed."""

from __future__ import annotations

from typing import Any

from ..model.errors import BadRequest
from ..model.messages import Tool
from ..protocols.common.fields import as_object, is_array, is_object
from ..protocols.common.tool_definition import read_tool


def read_tools(value: Any) -> tuple[Tool, ...]:
    """Read a list of tools, or an object with such a list as `tools`."""
    if is_object(value) and "tools" in value:
        value = value["tools"]
    if not is_array(value):
        raise BadRequest("expected a list of tools", "tools")
    places = ((f"tools[{index}]", item) for index, item in enumerate(value))
    return tuple(tool for where, item in places for tool in read_tool(as_object(item, where), where))
