"""The tools of a Chat request and the choice among them, read."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ....messages import Raw, Tool, ToolChoice
from ...fields import (
    Obj,
    as_object,
    boolean,
    choice,
    is_object,
    join,
    mapping,
    need_string,
    objects,
    reject,
    string,
)
from ...later import Unread, UnreadItem, UnreadTool, tool_reader
from ...memory import remembered
from .read_parts import cache_of
from .shared import NAME

_ELSEWHERE = frozenset({"functions", "web_search_options"})


def read_tools(body: Obj) -> tuple[Tool, ...]:
    """`tools`, the deprecated `functions`, and the web search that an option switches on."""
    tools = remembered(body.get("tools"), NAME, lambda: _listed(body))
    if body.keys().isdisjoint(_ELSEWHERE):
        return tools
    functions = [_function(function, at) for at, function in objects(body, "functions", "")]
    search = mapping(body, "web_search_options", "")
    if search is None:
        return (*tools, *functions)
    raw = Raw(NAME, {"web_search_options": search})
    return (*tools, *functions, Tool(name="web_search", kind="hosted", hosted="web_search", raw=raw))


class _Function(msgspec.Struct, frozen=True, gc=False):
    name: str
    description: str | None = None
    parameters: dict[str, msgspec.Raw] | None = None
    strict: bool | None = None


class _Offered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A function without a cache mark."""

    type: Literal["function"]
    function: _Function


def _listed(body: Obj) -> tuple[Tool, ...]:
    given = body.get("tools")
    if isinstance(given, Unread):
        return _unread(given)
    return tuple([read_tool(tool, at) for at, tool in objects(body, "tools", "")])


def _later(offered: _Offered, given: Unread, at: int) -> Tool:
    function = offered.function
    if function.parameters is None:
        return read_tool(given[at], f"tools[{at}]")
    return UnreadTool(
        name=function.name,
        description=function.description,
        keywords=function.parameters,
        strict=function.strict,
        raw=UnreadItem(NAME, given, at),
    )


def _unusual(tool: Any, where: str) -> tuple[Tool]:
    return (read_tool(as_object(tool, where), where),)


_unread = tool_reader(_Offered, _later, _unusual)
"""The same of a list that is not read, and of which no more than has to be is."""


def read_tool(tool: Obj, where: str) -> Tool:
    kind = need_string(tool, "type", where)
    if kind == "function":
        at = join(where, "function")
        return _function(as_object(tool.get("function"), at), at, tool)
    if kind == "custom":
        return _custom(tool, where)
    # Groq, Moonshot, Zhipu and others have tools of their own that the server runs.
    return Tool(name=kind, kind="hosted", hosted=kind, raw=Raw(NAME, tool))


def _function(function: Obj, where: str, tool: Obj | None = None) -> Tool:
    """A deprecated `functions` entry keeps no raw form, so that it goes out as a tool."""
    return Tool(
        name=need_string(function, "name", where),
        description=string(function, "description", where),
        parameters=mapping(function, "parameters", where),
        strict=boolean(function, "strict", where),
        cache=cache_of(tool, where) if tool else None,
        raw=Raw(NAME, tool) if tool else None,
    )


def _custom(tool: Obj, where: str) -> Tool:
    at = join(where, "custom")
    custom = as_object(tool.get("custom"), at)
    grammar, syntax = _grammar(custom, at)
    return Tool(
        name=need_string(custom, "name", at),
        description=string(custom, "description", at),
        kind="custom",
        grammar=grammar,
        grammar_syntax=syntax,
        raw=Raw(NAME, tool),
    )


def _grammar(custom: Obj, where: str) -> tuple[str | None, str | None]:
    wanted = mapping(custom, "format", where)
    where = join(where, "format")
    if wanted is None or choice(wanted, "type", where, ("text", "grammar")) != "grammar":
        return None, None
    where = join(where, "grammar")
    grammar = as_object(wanted.get("grammar"), where)
    return need_string(grammar, "definition", where), need_string(grammar, "syntax", where)


def read_choice(body: Obj, tools: tuple[Tool, ...]) -> ToolChoice | None:
    """`tool_choice`, or the deprecated `function_call`."""
    chosen = body.get("tool_choice")
    if chosen is not None:
        return _choice(chosen, tools)
    legacy = body.get("function_call")
    if is_object(legacy):
        return ToolChoice("named", _declared(legacy, "function_call", tools))
    word = choice(body, "function_call", "", ("none", "auto"))
    return _word(word) if word else None


def _choice(chosen: object, tools: tuple[Tool, ...]) -> ToolChoice:
    if isinstance(chosen, str):
        choice({"tool_choice": chosen}, "tool_choice", "", ("none", "auto", "required"))
        return _word(chosen)
    if not is_object(chosen):
        reject("expected a string or an object", "tool_choice")
    kind = need_string(chosen, "type", "tool_choice")
    if kind == "allowed_tools":
        return _allowed(chosen, tools)
    if kind in ("function", "custom"):
        at = join("tool_choice", kind)
        return ToolChoice("named", _declared(as_object(chosen.get(kind), at), at, tools))
    if not any(tool.hosted == kind for tool in tools):
        reject(f"{kind!r} is neither a kind of choice nor a declared tool", "tool_choice.type")
    return ToolChoice("named", kind)


def _word(word: str) -> ToolChoice:
    if word == "none":
        return ToolChoice("none")
    return ToolChoice("required") if word == "required" else ToolChoice("auto")


def _allowed(chosen: Obj, tools: tuple[Tool, ...]) -> ToolChoice:
    where = "tool_choice.allowed_tools"
    allowed = as_object(chosen.get("allowed_tools"), where)
    mode = choice(allowed, "mode", where, ("auto", "required"))
    names: list[str] = []
    for at, entry in objects(allowed, "tools", where):
        kind = need_string(entry, "type", at)
        if kind in ("function", "custom"):
            at = join(at, kind)
            names.append(_declared(as_object(entry.get(kind), at), at, tools))
        else:
            names.append(kind)
    return ToolChoice("required" if mode == "required" else "auto", allowed=tuple(names))


def _declared(named: Obj, where: str, tools: tuple[Tool, ...]) -> str:
    name = need_string(named, "name", where)
    if not any(tool.name == name for tool in tools):
        reject(f"no declared tool has the name {name!r}", where, "name")
    return name
