"""Read the tools of a Gemini request."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from ....model.messages import Raw, Tool, ToolServer
from ...common.fields import Obj, as_object, is_array, is_object, join
from ...common.search_limits import read_limits
from ...common.searches import SEARCH
from ...common.tool_servers import token_and_headers
from ...common.typed_json import Reader, as_json, items, members_of, opens_object, optional, value
from ..own import NAME
from .keys import Fields, SplitArray, camel, listed
from .schemas import read_schema

# Gemini's hosted tools, with their neutral names.
_HOSTED = {
    "googleSearch": "web_search",
    "googleSearchRetrieval": "web_search",
    "enterpriseWebSearch": "web_search",
    "urlContext": "web_fetch",
    "codeExecution": "code_execution",
    "fileSearch": "file_search",
    "computerUse": "computer",
    "mcpServers": "mcp",
}
# Three names in use: `parameters` (AI SDK 6, opencode, Cline), `parametersJsonSchema` (Gemini CLI, Qwen Code,
# pi), and `parameters_json_schema` (google-genai). A reader of only one would call tools without arguments.
_SCHEMAS = {
    "parametersJsonSchema": "json_schema",
    "parameters_json_schema": "snake_json_schema",
    "parameters": "parameters",
}


class Declaration(
    msgspec.Struct,
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,
    rename={field: key for key, field in _SCHEMAS.items()},
):
    """A function that the client runs."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    description: str | None = None
    json_schema: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    snake_json_schema: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    parameters: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_declarations = msgspec.json.Decoder(list[Declaration]).decode
_declaration = Reader(Declaration)


def read_tools(raw: msgspec.Raw) -> tuple[Tool, ...]:
    """Read the functions and hosted tools, in their order."""
    tools = [tool for group, where in listed(raw, "tools") for tool in read_tool(group, where)]
    array = SplitArray(raw, [tool.raw.value for tool in tools if tool.raw is not None])
    return tuple([replace(tool, raw=Raw(NAME, array, at=at)) for at, tool in enumerate(tools)])


def read_tool(entry: msgspec.Raw, where: str) -> list[Tool]:
    """Read one entry of `tools`: functions, hosted tools, or both."""
    tools: list[Tool] = []
    for key, member in members_of(entry, where).items():
        given, name = optional(member), camel(key)
        if given is None:
            continue
        if name == "functionDeclarations":
            tools += _read_functions(given, join(where, key))
        else:
            hosted = _HOSTED.get(name, name)
            if hosted == "mcp":
                tools += _read_servers(key, value(given, join(where, key)), join(where, key))
                continue
            own = value(given, join(where, key))
            search = read_limits(own) if hosted == SEARCH else None
            raw = Raw(NAME, as_json({key: given}))
            tools.append(Tool(name=hosted, kind="hosted", hosted=hosted, search=search, raw=raw))
    return tools


def _read_servers(key: str, given: Any, where: str) -> list[Tool]:
    """The tools of MCP servers, a tool for each server."""
    servers: list[Any] = given if is_array(given) else [given]
    return [
        Tool(
            name=_server_name(server),
            kind="hosted",
            hosted="mcp",
            server=_read_server(server, f"{where}[{at}]"),
            raw=Raw(NAME, as_json({key: [server]})),
        )
        for at, server in enumerate(servers)
    ]


def _server_name(server: Any) -> str:
    name = server.get("name") if is_object(server) else None
    return name if isinstance(name, str) and name else "mcp"


def _read_server(given: Any, where: str) -> ToolServer | None:
    entry = Fields(given, where) if is_object(given) else None
    transport = None if entry is None else entry.child("streamableHttpTransport")
    url = None if transport is None else transport.string("url")
    if transport is None or not url:
        return None
    headers = transport.get("headers")
    token, rest = token_and_headers(headers if is_object(headers) else None)
    return ToolServer(name=_server_name(given), url=url, token=token, headers=rest)


def _read_functions(raw: msgspec.Raw, where: str) -> list[Tool]:
    """Read the declarations of a group: a list, or a single one. A usual list is decoded in one pass."""
    try:
        declared = _declarations(raw)
    except msgspec.ValidationError:
        return [_read_any_function(item, at) for item, at in listed(raw, where)]
    pairs = zip(declared, items(raw, where), strict=True)
    return [_read_function(given, None, item, f"{where}[{at}]") for at, (given, item) in enumerate(pairs)]


def _read_any_function(raw: msgspec.Raw, where: str) -> Tool:
    return _read_function(*_declaration.split(members_of(raw, where), where), raw, where)


def _read_function(given: Declaration, extras: Obj | None, raw: msgspec.Raw, where: str) -> Tool:
    return Tool(
        name=given.name,
        description=given.description,
        parameters=_parameters(given, where),
        raw=Raw(NAME, raw),
        extras=extras,
    )


def _parameters(given: Declaration, where: str) -> Obj | msgspec.Raw | None:
    schema = optional(given.json_schema) or optional(given.snake_json_schema) or optional(given.parameters)
    if schema is None:
        return None
    if not opens_object(schema):
        key = next(key for key, name in _SCHEMAS.items() if getattr(given, name) is schema)
        as_object(value(schema, where), join(where, key))
    return read_schema(schema, where)
