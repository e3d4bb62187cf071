"""The tools of an Anthropic request."""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from ....messages import Cache, Raw, Tool, ToolChoice
from ...fields import (
    Obj,
    array,
    as_object,
    boolean,
    choice,
    mapping,
    need_string,
    reject,
    string,
)
from ...later import Unread, UnreadItem, UnreadTool, tool_reader
from ..decoder import NAME
from .builtins import BUILTINS, toolset

_VERSION = re.compile(r"_\d{8}$")
_USUAL_FIELDS = frozenset({"name", "description", "input_schema"})
_FUNCTION_FIELDS = _USUAL_FIELDS | {"type", "strict", "defer_loading", "cache_control"}
_TYPED_FIELDS = frozenset({"type", "name", "strict", "defer_loading", "cache_control"})


class _Offered(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A function as nearly everybody describes one, with all that agents say of how it is to be offered."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    input_schema: dict[str, msgspec.Raw]
    description: str | None = None
    strict: bool | None = None
    defer_loading: bool | None = None
    cache_control: dict[str, Any] | None = None
    eager_input_streaming: Any = msgspec.UNSET


def read_tools(body: Obj) -> tuple[Tool, ...]:
    given = body.get("tools")
    if isinstance(given, Unread):
        return _unread(given)
    tools: list[Tool] = []
    for index, entry in enumerate(array(body, "tools", "")):
        usual = _usual(entry)
        if usual is not None:
            tools.append(usual)
        else:
            tools += _unusual(entry, f"tools[{index}]")
    return tuple(tools)


def _unusual(entry: Any, where: str) -> tuple[Tool, ...]:
    return read_tool(as_object(entry, where), where)


def _later(offered: _Offered, given: Unread, at: int) -> Tool:
    cache, eager = offered.cache_control, offered.eager_input_streaming
    return UnreadTool(
        name=offered.name,
        description=offered.description,
        keywords=offered.input_schema,
        raw=UnreadItem(NAME, given, at),
        strict=offered.strict,
        deferred=offered.defer_loading or False,
        cache=None if cache is None else _cache(cache, f"tools[{at}]"),
        extras=None if eager is msgspec.UNSET else {"eager_input_streaming": eager},
    )


_unread = tool_reader(_Offered, _later, _unusual)
"""The same of a list that is not read, and of which no more than has to be is."""


def _usual(entry: Any) -> Tool | None:
    """A function as nearly everybody describes one; None where anything has to be looked at closely."""
    if entry.__class__ is not dict or not entry.keys() <= _USUAL_FIELDS:
        return None
    name, words, schema = entry.get("name"), entry.get("description"), entry.get("input_schema")
    if not name or name.__class__ is not str or schema.__class__ is not dict:
        return None
    if words is not None and words.__class__ is not str:
        return None
    return Tool(name=name, description=words, parameters=schema, raw=Raw(NAME, entry))


def read_tool(entry: Obj, where: str) -> tuple[Tool, ...]:
    """One entry of `tools`: a tool, or all the members of a toolset."""
    type = string(entry, "type", where)
    # No real client says `custom`; it is what a tool without a type is.
    if type is None or type == "custom":
        return (_function(entry, where),)
    members = toolset(type, entry, where)
    if members is not None:
        return _members(entry, where, *members)
    if type in BUILTINS:
        return (_builtin(entry, type, where),)
    return (_hosted(entry, type, where),)


def _function(entry: Obj, where: str) -> Tool:
    schema = mapping(entry, "input_schema", where)
    if schema is None:
        reject("is required", where, "input_schema")
    tool = Tool(
        name=_name(entry, where),
        description=string(entry, "description", where),
        parameters=schema,
        raw=Raw(NAME, entry),
    )
    return _with_wishes(tool, entry, where, _FUNCTION_FIELDS)


def _with_wishes(tool: Tool, entry: Obj, where: str, known: frozenset[str]) -> Tool:
    """How it is to be offered, which most entries do not say."""
    return msgspec.structs.replace(
        tool,
        strict=boolean(entry, "strict", where),
        deferred=boolean(entry, "defer_loading", where) or False,
        cache=read_cache(entry, where),
        extras=rest(entry, known),
    )


def _name(entry: Obj, where: str) -> str:
    return need_string(entry, "name", where) or reject("must not be empty", where, "name")


def _builtin(entry: Obj, type: str, where: str) -> Tool:
    description, schema = BUILTINS[type]
    width, height = entry.get("display_width_px"), entry.get("display_height_px")
    if width and height:
        description += f" The screen is {width} by {height} pixels."
    tool = Tool(name=_name(entry, where), description=description, parameters=schema, raw=Raw(NAME, entry))
    return _with_wishes(tool, entry, where, _TYPED_FIELDS)


def _members(entry: Obj, where: str, family: str, schemas: dict[str, Obj]) -> tuple[Tool, ...]:
    """Each member stands for the whole entry: they share its `raw`, which is written back once."""
    raw = Raw(NAME, entry)
    tools = [
        Tool(
            name=name,
            namespace=family,
            description=f"{name.replace('_', ' ').capitalize()} (of the {family} tools).",
            parameters=schema,
            raw=raw,
        )
        for name, schema in schemas.items()
    ]
    if tools:
        tools[-1] = msgspec.structs.replace(tools[-1], cache=read_cache(entry, where))
    return tuple(tools)


def _hosted(entry: Obj, type: str, where: str) -> Tool:
    # The dated versions of one tool are one tool to everybody else. An MCP toolset has no name.
    family = _VERSION.sub("", type)
    name = string(entry, "name", where) or string(entry, "mcp_server_name", where) or family
    return Tool(
        name=name,
        kind="hosted",
        hosted="mcp" if type == "mcp_toolset" else family,
        cache=read_cache(entry, where),
        raw=Raw(NAME, entry),
        extras=rest(entry, _TYPED_FIELDS),
    )


def read_tool_choice(body: Obj, tools: tuple[Tool, ...]) -> tuple[ToolChoice | None, bool | None]:
    """`tool_choice`, and whether calls may be parallel, which Anthropic says in the same place."""
    said = mapping(body, "tool_choice", "")
    if said is None:
        return None, None
    mode = choice(said, "type", "tool_choice", ("auto", "any", "tool", "none"))
    serial = boolean(said, "disable_parallel_tool_use", "tool_choice")
    parallel = None if serial is None else not serial
    match mode:
        case "auto":
            return ToolChoice("auto"), parallel
        case "none":
            return ToolChoice("none"), parallel
        case "any":
            return ToolChoice("required"), parallel
        case "tool":
            return _named(need_string(said, "name", "tool_choice"), tools, body), parallel
        case _:
            return reject("is required", "tool_choice", "type")


def _named(name: str, tools: tuple[Tool, ...], body: Obj) -> ToolChoice:
    tool = next((t for t in tools if t.name == name), None)
    if tool is not None:
        return ToolChoice("named", name, tool.namespace)
    if "mcp_servers" in body:  # their tools are known to the server only
        return ToolChoice("named", name)
    return reject(f"no tool is named {name!r}", "tool_choice", "name")


def read_cache(obj: Obj, where: str) -> Cache | None:
    """The `cache_control` of a block, of a tool, or of the whole request."""
    control = mapping(obj, "cache_control", where)
    return None if control is None else _cache(control, where)


def _cache(control: Obj, where: str) -> Cache:
    return Cache(string(control, "ttl", f"{where}.cache_control" if where else "cache_control"))


def rest(obj: Obj, known: frozenset[str]) -> Obj | None:
    """What `obj` says beyond `known`."""
    return {key: value for key, value in obj.items() if key not in known} or None
