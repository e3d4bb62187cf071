"""Read the MCP servers of an Anthropic request, each with the toolset that lists the allowed tools.

The older of the two betas (`mcp-client-2025-04-04`) has no toolsets: the entry of the server lists them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....model.messages import Raw, Tool, ToolServer
from ...common.fields import Obj, is_array, is_object, need_string, objects, string
from ...common.tool_servers import enabled
from ..own import NAME

MEMBER = "mcp_servers"


def with_servers(tools: Sequence[Tool], body: Obj) -> tuple[Tool, ...]:
    """`tools` with the servers of their toolsets, and a tool for each server that has no toolset."""
    given = objects(body, MEMBER, "")
    if not given:
        return tuple(tools)
    servers = {need_string(server, "name", where): (server, where) for where, server in given}
    read = [_with_server(tool, servers) for tool in tools]
    named = {_server_name(tool) for tool in tools}
    without_toolset = [_without_toolset(*found) for name, found in servers.items() if name not in named]
    return (*read, *without_toolset)


def is_in_mcp_servers(raw: Raw) -> bool:
    """Is the tool defined in `mcp_servers`, and not in `tools`?"""
    return is_object(raw.value) and MEMBER in raw.value


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
    server = _read(*found, allowed=None if by_default else on, denied=off if by_default else ())
    return msgspec.structs.replace(tool, server=server)


def _without_toolset(given: Obj, where: str) -> Tool:
    config = given.get("tool_configuration")
    settings = config if is_object(config) else {}
    listed = settings.get("allowed_tools")
    allowed = tuple(map(str, listed)) if is_array(listed) else None
    server = _read(given, where, allowed=allowed if enabled(settings, True) else (), denied=())
    name = need_string(given, "name", where)
    return Tool(name=name, kind="hosted", hosted="mcp", server=server, raw=Raw(NAME, {MEMBER: [given]}))


def _read(
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
