"""Read the tools of an Anthropic request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from ....model.messages import Cache, Raw, Tool, ToolChoice, ToolServer
from ...common.fields import (
    Obj,
    boolean,
    choice,
    is_array,
    is_object,
    mapping,
    need_string,
    objects,
    reject,
    string,
)
from ...common.search_limits import read_limits
from ...common.searches import SEARCH
from ...common.tool_servers import enabled
from ...common.typed_json import LazyArray, Reader, members_of, need_object, value
from ..own import NAME
from .builtins import BUILTINS, toolset

_VERSION = re.compile(r"_\d{8}$")
_SERVERS = "mcp_servers"
_Filled = Annotated[str, msgspec.Meta(min_length=1)]


class Offer(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """The members that every tool may have."""

    name: _Filled
    type: Any = None
    strict: bool | None = None
    defer_loading: bool | None = None
    cache_control: Cache | None = None


class FunctionEntry(Offer, frozen=True, gc=False, kw_only=True):
    """A function. A tool without a type has the type `custom`; clients leave it out."""

    type: Literal["custom"] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    input_schema: msgspec.Raw
    description: str | None = None
    eager_input_streaming: Any = msgspec.UNSET


class Hosted(Offer, frozen=True, gc=False, kw_only=True):
    """A tool that Anthropic runs. An MCP toolset has no name."""

    name: str | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    mcp_server_name: str | None = None


_functions = msgspec.json.Decoder(list[FunctionEntry]).decode
_function = Reader(FunctionEntry)
_offer = Reader(Offer)
_hosted = Reader(Hosted)


def read_tools(raw: msgspec.Raw) -> tuple[Tool, ...]:
    """Read the `tools` of a request. A list with only functions is decoded in one pass."""
    listed = LazyArray(raw, "tools")
    given: Iterable[FunctionEntry | tuple[Tool, ...]] = listed.decoded(_functions, read_tool)
    tools: list[Tool] = []
    for at, entry in enumerate(given):
        if isinstance(entry, FunctionEntry):
            tools.append(_read_function(entry, None, Raw(NAME, listed, at=at), f"tools[{at}]"))
        else:
            tools += entry
    return tuple(tools)


def read_tool(raw: msgspec.Raw, where: str) -> tuple[Tool, ...]:
    """Read one entry of `tools`: a tool, or all members of a toolset."""
    members = members_of(raw, where)
    type = value(members["type"], f"{where}.type") if "type" in members else None
    if type is not None and not isinstance(type, str):
        reject("expected a string", where, "type")
    if type is None or type == "custom":
        return (_read_function(*_function.split(members, where), Raw(NAME, raw), where),)
    entry: Obj = value(raw, where)
    found = toolset(type, entry, where)
    if found is not None:
        return _toolset_members(entry, raw, *found)
    if type in BUILTINS:
        return (_builtin(*_offer.split(members, where), raw, entry),)
    return (_read_hosted(*_hosted.split(members, where), raw, type),)


def _read_function(function: FunctionEntry, extras: Obj | None, raw: Raw, where: str) -> Tool:
    need_object(function.input_schema, f"{where}.input_schema")
    if function.eager_input_streaming is not msgspec.UNSET:
        extras = {**(extras or {}), "eager_input_streaming": function.eager_input_streaming}
    return Tool(
        name=function.name,
        description=function.description,
        parameters=function.input_schema,
        strict=function.strict,
        deferred=function.defer_loading or False,
        cache=function.cache_control,
        raw=raw,
        extras=extras,
    )


def _builtin(offer: Offer, extras: Obj | None, raw: msgspec.Raw, entry: Obj) -> Tool:
    description, schema = BUILTINS[entry["type"]]
    # Claude gets the size of the screen from Anthropic. Other models only get the description.
    width, height = entry.get("display_width_px"), entry.get("display_height_px")
    if width and height:
        description += f" The screen is {width} by {height} pixels."
    return Tool(
        name=offer.name,
        description=description,
        parameters=schema,
        strict=offer.strict,
        deferred=offer.defer_loading or False,
        cache=offer.cache_control,
        raw=Raw(NAME, raw),
        extras=extras,
    )


def _toolset_members(entry: Obj, raw: msgspec.Raw, family: str, schemas: dict[str, Obj]) -> tuple[Tool, ...]:
    """Read the members of a toolset. They share the `raw` of the entry, which is written once."""
    kept = Raw(NAME, raw)
    tools = [
        Tool(
            name=name,
            namespace=family,
            description=f"{name.replace('_', ' ').capitalize()} (of the {family} tools).",
            parameters=schema,
            raw=kept,
        )
        for name, schema in schemas.items()
    ]
    if tools:
        tools[-1] = msgspec.structs.replace(tools[-1], cache=read_cache(entry, ""))
    return tuple(tools)


def _read_hosted(hosted: Hosted, extras: Obj | None, raw: msgspec.Raw, type: str) -> Tool:
    # Other protocols do not distinguish the dated versions of a tool.
    family = _VERSION.sub("", type)
    if hosted.mcp_server_name is not None:
        extras = {**(extras or {}), "mcp_server_name": hosted.mcp_server_name}
    return Tool(
        name=hosted.name or hosted.mcp_server_name or family,
        kind="hosted",
        hosted="mcp" if type == "mcp_toolset" else family,
        search=read_limits(extras) if family == SEARCH else None,
        cache=hosted.cache_control,
        raw=Raw(NAME, raw),
        extras=extras,
    )


def read_tool_choice(body: Obj, tools: tuple[Tool, ...]) -> tuple[ToolChoice | None, bool | None]:
    """Read `tool_choice`, which also says whether calls may be parallel."""
    given = mapping(body, "tool_choice", "")
    if given is None:
        return None, None
    mode = choice(given, "type", "tool_choice", ("auto", "any", "tool", "none"))
    serial = boolean(given, "disable_parallel_tool_use", "tool_choice")
    parallel = None if serial is None else not serial
    match mode:
        case "auto":
            return ToolChoice("auto"), parallel
        case "none":
            return ToolChoice("none"), parallel
        case "any":
            return ToolChoice("required"), parallel
        case "tool":
            return _named(need_string(given, "name", "tool_choice"), tools, body), parallel
        case _:
            return reject("is required", "tool_choice", "type")


def _named(name: str, tools: tuple[Tool, ...], body: Obj) -> ToolChoice:
    tool = next((t for t in tools if t.name == name), None)
    if tool is not None:
        return ToolChoice("named", name, tool.namespace)
    if _SERVERS in body:  # the request does not list the tools of an MCP server
        return ToolChoice("named", name)
    return reject(f"no tool is named {name!r}", "tool_choice", "name")


def read_cache(obj: Obj, where: str) -> Cache | None:
    """Read the `cache_control` of a toolset, or of the whole request."""
    control = mapping(obj, "cache_control", where)
    if control is None:
        return None
    return Cache(string(control, "ttl", f"{where}.cache_control" if where else "cache_control"))


# MCP servers, each with the toolset that lists the allowed tools. The older of the two betas
# (`mcp-client-2025-04-04`) has no toolsets: the entry of the server lists them.


def with_servers(tools: Sequence[Tool], body: Obj) -> tuple[Tool, ...]:
    """`tools` with the servers of their toolsets, and a tool for each server that has no toolset."""
    given = objects(body, _SERVERS, "")
    if not given:
        return tuple(tools)
    servers = {need_string(server, "name", where): (server, where) for where, server in given}
    read = [_with_server(tool, servers) for tool in tools]
    named = {_server_name(tool) for tool in tools}
    without_toolset = [_without_toolset(*found) for name, found in servers.items() if name not in named]
    return (*read, *without_toolset)


def is_in_mcp_servers(raw: Raw) -> bool:
    """Is the tool defined in `mcp_servers`, and not in `tools`?"""
    return is_object(raw.value) and _SERVERS in raw.value


def _server_name(tool: Tool) -> str:
    return (tool.extras or {}).get("mcp_server_name", "")


def _with_server(tool: Tool, servers: dict[str, tuple[Obj, str]]) -> Tool:
    found = servers.get(_server_name(tool))
    if tool.hosted != "mcp" or found is None or tool.raw is None:
        return tool
    toolset: Obj = tool.raw.parsed
    default, configs = toolset.get("default_config"), toolset.get("configs")
    by_default = enabled(default, True)
    settings = configs if is_object(configs) else {}
    on = tuple(name for name, config in settings.items() if enabled(config, by_default))
    off = tuple(name for name, config in settings.items() if not enabled(config, by_default))
    server = _server(*found, allowed=None if by_default else on, denied=off if by_default else ())
    return msgspec.structs.replace(tool, server=server)


def _without_toolset(given: Obj, where: str) -> Tool:
    config = given.get("tool_configuration")
    settings = config if is_object(config) else {}
    listed = settings.get("allowed_tools")
    allowed = tuple(map(str, listed)) if is_array(listed) else None
    server = _server(given, where, allowed=allowed if enabled(settings, True) else (), denied=())
    name = need_string(given, "name", where)
    return Tool(name=name, kind="hosted", hosted="mcp", server=server, raw=Raw(NAME, {_SERVERS: [given]}))


def _server(
    given: Obj, where: str, *, allowed: tuple[str, ...] | None, denied: tuple[str, ...]
) -> ToolServer | None:
    url = string(given, "url", where)
    if not url:
        return None
    return ToolServer(
        name=need_string(given, "name", where),
        url=url,
        token=string(given, "authorization_token", where),
        allowed=allowed,
        denied=denied,
    )
