"""The tool lists people already have, as ours: any protocol's definitions, SDK objects, Python callables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from ..messages import Tool
from ..protocols.anthropic.request import read_tools as anthropic
from ..protocols.gemini.request import read_settings as gemini
from ..protocols.gemini.request.keys import Fields
from ..protocols.openai_chat.request import read_tools as chat
from ..protocols.openai_responses.request import read_tools as responses
from .signatures import LocalTool, local_tool

AnyTool = Tool | LocalTool | Mapping[str, Any] | Callable[..., Any] | object

_DATED = re.compile(r"_\d{8}$")


def declared(tools: Iterable[AnyTool]) -> tuple[Tool, ...]:
    """Every tool in `tools`, whichever way it is written down."""
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
    raise TypeError(f"a {type(given).__name__} is no tool: give a definition, a callable or a Tool")


def _defined(entry: dict[str, Any]) -> tuple[Tool, ...]:
    """A definition is read by the protocol it is of, which its members tell."""
    kind = entry.get("type")
    if "input_schema" in entry or (isinstance(kind, str) and _DATED.search(kind)):
        return anthropic.read_tools({"tools": [entry]})
    if "function" in entry or (kind is not None and kind in entry):
        return chat.read_tools({"tools": [entry]})
    if kind is not None:
        return responses.read_tools({"tools": [entry]})
    if "name" in entry:  # a declaration without its group, or the bare core of any of them
        entry = {"functionDeclarations": [entry]}
    return gemini.read_tools(Fields({"tools": [entry]}, ""))
