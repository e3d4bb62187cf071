"""Write tools, the tool choice and structured output for Anthropic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ....model.errors import BadRequest
from ....model.messages import Format, Raw, Request, SearchLimits, Settings, Tool, ToolCall, ToolChoice
from ...common.fields import Obj, is_array, is_object
from ...common.freeform import emulated
from ...common.notices import Notices
from ...common.schemas import ANTHROPIC, Schema, SchemaDialect, output_schema, sanitised, warn_dropped
from ...common.search_limits import limits_of, location
from ...common.tool_names import ToolNames
from ...common.tool_servers import reachable, token_and_headers
from ...common.typed_json import unchanged_array
from ...common.unsupported import warn_deferred
from ..own import is_own
from .read_tools import is_in_mcp_servers
from .write_blocks import Marks

# The oldest version of each tool: all models that support the tool support it.
_HOSTED: dict[str, Obj] = {
    "web_search": {"type": "web_search_20250305", "name": "web_search"},
    "web_fetch": {"type": "web_fetch_20250910", "name": "web_fetch"},
    "code_execution": {"type": "code_execution_20250825", "name": "code_execution"},
}

# The keywords that Anthropic enforces (structured output and strict tools), from `transform_schema` of its
# SDK. It refuses a schema with any other keyword.
_ENFORCED = SchemaDialect(
    keywords=frozenset(
        {
            *("$defs", "$ref", "type", "enum", "const", "anyOf", "allOf", "description", "title"),
            *("properties", "required", "additionalProperties", "items", "format", "minItems"),
        }
    ),
)
_FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email", "hostname"),
        *("uri", "ipv4", "ipv6", "uuid"),
    }
)

JSON_ONLY = "Answer with one valid JSON object and nothing else: no prose, no code fence."


class ToolWriter:
    """Writes tools under legal names, with schemas that the upstream accepts. Notes what it drops."""

    def __init__(self, request: Request, names: ToolNames, marks: Marks, notices: Notices) -> None:
        self._request = request
        self._names = names
        self._marks = marks
        self._notices = notices
        self.servers: list[Obj] = []
        """The MCP servers of the tools that were written."""

    def offered(self) -> list[Any] | msgspec.Raw:
        """Write the tools that the model may call."""
        tools, choice = self._request.tools, self._request.settings.tool_choice
        if tools and is_own(tools[0].raw) and (choice is None or choice.allowed is None):
            copied = unchanged_array([tool.raw for tool in tools])
            if copied is not None:
                return copied
        written: list[Any] = []
        last: Raw | None = None
        for index, tool in enumerate(tools):
            # All members of a toolset are one entry.
            # `computer_toolset_20260801` is one entry on the wire and one neutral tool per action.
            if tool.raw is not None and tool.raw is last:
                continue
            if is_offered(tool, choice):
                block = self._tool(tool, f"tools[{index}]")
                if block is not None:
                    written.append(block)
                    last = tool.raw
        return written

    def remembered(self) -> list[Obj]:
        """Declare the tools of earlier calls: Anthropic refuses a history with calls and no `tools`."""
        parts = (part for message in self._request.messages for part in message.parts)
        calls = (part for part in parts if isinstance(part, ToolCall))
        names = dict.fromkeys(self._names.out(call.name, call.namespace) for call in calls)
        return [{"name": name, "input_schema": {"type": "object"}} for name in names]

    def _tool(self, tool: Tool, path: str) -> Obj | msgspec.Raw | None:
        if is_own(tool.raw):
            return None if is_in_mcp_servers(tool.raw) else tool.raw.value
        if tool.kind == "hosted":
            return self._hosted(tool, path)
        warn_deferred(tool, self._notices)
        name = self._names.out(tool.name, tool.namespace)
        block = self._custom(tool, path) if tool.kind == "custom" else self._function(tool, path)
        return self._marks.put({"name": name} | block, tool.cache)

    def _function(self, tool: Tool, path: str) -> Obj:
        block: Obj = {"description": tool.description} if tool.description else {}
        lost: list[str] = []
        # Only a strict schema has to be checked.
        schema = tool.schema if tool.strict else tool.parameters
        block["input_schema"] = sanitised(schema, ANTHROPIC, lost.append)
        warn_dropped(lost, f"{path}.parameters", self._notices)
        # Arguments are always an object, even if the schema allows other types.
        block["input_schema"]["type"] = "object"
        if tool.strict and _can_be_enforced(block["input_schema"]):
            block["strict"] = True
        elif tool.strict:
            # Anthropic refuses the whole request if a strict schema has a keyword that it cannot enforce.
            message = f"the schema of {tool.name!r} has keywords that Anthropic cannot enforce"
            self._notices.warn("strict-dropped", path, message)
        return block

    def _custom(self, tool: Tool, path: str) -> Obj:
        description, parameters = emulated(tool, path, self._notices)
        block: Obj = {"description": description} if description else {}
        return block | {"input_schema": parameters}

    def _hosted(self, tool: Tool, path: str) -> Obj | None:
        if tool.hosted == "mcp":
            return self._toolset(tool, path)
        known = _HOSTED.get(tool.hosted or "")
        if known is None or known["name"] in self._names.declared():
            message = f"{tool.hosted or tool.name} is run by another provider"
            self._notices.warn("hosted-tool-dropped", path, message)
            return None
        return known | _search_limits(limits_of(tool))

    def _toolset(self, tool: Tool, path: str) -> Obj:
        """The tools of an MCP server. The server itself is named beside the tools."""
        server = reachable(tool, path, filters=True)
        token, headers = token_and_headers(server.headers)
        if headers:
            raise BadRequest(f"Anthropic sends no headers to tool servers, as {next(iter(headers))!r}", path)
        definition: Obj = {"type": "url", "name": server.name, "url": server.url}
        if server.token or token:
            definition["authorization_token"] = server.token or token
        self.servers.append(definition)
        toolset: Obj = {"type": "mcp_toolset", "mcp_server_name": server.name}
        if server.allowed is not None:
            toolset["default_config"] = {"enabled": False}
            toolset["configs"] = {name: {"enabled": True} for name in server.allowed}
        return self._marks.put(toolset, tool.cache)


def _search_limits(limits: SearchLimits) -> Obj:
    """The limits of a web search. Anthropic refuses allowed and blocked domains together."""
    fields: Obj = {"max_uses": limits.max_uses} if limits.max_uses else {}
    if limits.allowed:
        fields["allowed_domains"] = list(limits.allowed)
    elif limits.blocked:
        fields["blocked_domains"] = list(limits.blocked)
    return fields | location(limits)


def is_offered(tool: Tool, choice: ToolChoice | None) -> bool:
    """May the model call this tool? Anthropic has no `allowed_tools`, so other tools are not sent."""
    return choice is None or choice.allowed is None or tool.name in choice.allowed


def write_tool_choice(
    settings: Settings, tools: list[Any] | msgspec.Raw, names: ToolNames, thinks: bool, notices: Notices
) -> Obj | None:
    """Write `tool_choice`, which also says whether calls may be parallel.

    `thinks`: the request has a thinking budget, which excludes a forced call. Adaptive thinking does not.
    """
    wanted = settings.tool_choice
    forced = _forced(wanted, tools, names) if wanted is not None else None
    if wanted is not None and wanted.mode in ("required", "named") and (thinks or forced is None):
        why = "a model that thinks on a budget" if thinks and forced else "a model without the tool"
        message = f"{why} cannot be forced to call one"
        notices.warn("forced-choice-downgraded", "settings.tool_choice", message)
        forced = None
    if not tools:
        return None
    if wanted is not None and wanted.mode == "none":
        return {"type": "none"}
    serial = settings.parallel_tool_calls is False
    if wanted is None and not serial:
        return None
    written = forced or {"type": "auto"}
    return written | {"disable_parallel_tool_use": True} if serial else written


def _forced(wanted: ToolChoice, tools: list[Any] | msgspec.Raw, names: ToolNames) -> Obj | None:
    if wanted.mode == "required":
        return {"type": "any"} if tools else None
    if wanted.mode != "named" or wanted.name is None:
        return None
    entries: list[Obj] = msgspec.json.decode(msgspec.json.encode(tools))
    offered = {tool.get("name") for tool in entries}
    # Hosted tools keep their names.
    for name in (names.out(wanted.name, wanted.namespace), wanted.name):
        if name in offered:
            return {"type": "tool", "name": name}
    servers = {name for tool in entries if (name := tool.get("mcp_server_name"))}
    # Only a server knows what its tools are called.
    known = not servers or wanted.name in servers
    return None if known else {"type": "tool", "name": wanted.name}


def write_format(format: Format, notices: Notices) -> Obj:
    """Write `output_config.format`. It has no name and no `strict`."""
    lost: list[str] = []
    schema = output_schema(_closed(format.schema or {}, lost.append), _ENFORCED, lost.append)
    warn_dropped(lost, "settings.format.schema", notices)
    return {"type": "json_schema", "schema": schema}


def schema_in_words(format: Format) -> str:
    """A prompt with the schema, for models without structured output."""
    schema = msgspec.json.encode(format.schema or {}).decode()
    return f"{JSON_ONLY} It must follow this JSON Schema:\n{schema}"


def _can_be_enforced(schema: Schema) -> bool:
    """Does Anthropic accept this schema as strict without changes?"""
    left_out: list[str] = []
    closed = _closed(schema, left_out.append)
    output_schema(closed, _ENFORCED, left_out.append)
    return not left_out and closed == schema


def _closed(schema: Schema, note: Callable[[str], None]) -> Schema:
    """Close every object, as Anthropic requires. Values that fit the closed schema fit the original, too."""
    result: Schema = {}
    for keyword, value in schema.items():
        if not _is_enforced(keyword, value):
            note(keyword)
        else:
            # A value that fits `oneOf` also fits `anyOf`.
            known = "anyOf" if keyword == "oneOf" else keyword
            result[known] = _inside(keyword, value, note)
    if result.get("type") == "object" or "properties" in result:
        result["additionalProperties"] = False
    return result


def _is_enforced(keyword: str, value: Any) -> bool:
    """Is this keyword enforced with this value? Some keywords are supported with certain values only."""
    match keyword:
        case "format":
            return isinstance(value, str) and value in _FORMATS
        case "minItems":
            return value in (0, 1)
        case "additionalProperties":
            return not is_object(value)
        case _:
            return True


def _inside(keyword: str, value: Any, note: Callable[[str], None]) -> Any:
    if keyword in ("properties", "$defs", "definitions") and is_object(value):
        return {name: _closed(v, note) if is_object(v) else v for name, v in value.items()}
    if keyword in ("anyOf", "oneOf", "allOf") and is_array(value):
        return [_closed(v, note) if is_object(v) else v for v in value]
    return _closed(value, note) if keyword == "items" and is_object(value) else value
