"""Convert an agent's tools to neutral ones: definitions, SDK objects and Python callables, in any mix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from ..model.messages import Tool
from ..protocols.common.tool_definition import NO_FORM, tool_shape
from ..tools.tool_lists import read_tools
from .signatures import LocalTool, local_tool

AnyTool = Tool | LocalTool | Mapping[str, Any] | Callable[..., Any] | object


def declared(tools: Iterable[AnyTool]) -> tuple[Tool, ...]:
    return tuple(tool for given in tools for tool in _declared(given))


def _declared(given: Any) -> tuple[Tool, ...]:
    if isinstance(given, Tool):
        return (given,)
    if isinstance(given, LocalTool):
        return (given.tool,)
    if hasattr(given, "model_dump"):
        given = given.model_dump(mode="json", by_alias=True, exclude_none=True, warnings=False)
    if isinstance(given, Mapping):
        return _defined(dict(cast("Mapping[str, Any]", given)))
    if callable(given):
        return (local_tool(given).tool,)
    raise TypeError(f"a {type(given).__name__} is not a tool: give a definition, a callable or a Tool")


def _defined(entry: dict[str, Any]) -> tuple[Tool, ...]:
    if entry.get("type") is None and tool_shape(entry) == NO_FORM:
        # Gemini: a function declaration without its group, or a group without any (`google_search`).
        entry = (
            {"functionDeclarations": [entry]} if "name" in entry else {"functionDeclarations": [], **entry}
        )
    return read_tools([entry])
