"""Read the tools of a Responses request, also those in input items, and the tool choice."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ....model.messages import Raw, Tool, ToolChoice, ToolServer
from ...common.fields import (
    Obj,
    choice,
    is_array,
    is_object,
    mapping,
    need_string,
    objects,
    reject,
    string,
    word,
)
from ...common.search_limits import read_limits
from ...common.searches import SEARCH
from ...common.tool_servers import token_and_headers
from ...common.typed_json import LazyArray, bad_request, member, members_of, need_object, optional, value
from ..builtins import read_builtin
from ..own import NAME
from .wire import (
    TOOL_TYPES,
    AnyTool,
    CustomTool,
    FunctionTool,
    Grammar,
    Namespace,
    ToolItem,
    declared,
    with_place,
)

# Neutral names of hosted tools. For all others, the type is the name.
_HOSTED_WORDS = {"code_interpreter": "code_execution"}
# The member of a tool choice that holds the tool's name. Hosted tools are chosen by their type.
_NAMED_BY = {"function": "name", "custom": "name", "mcp": "server_label"}
_MODES = {mode.mode: mode for mode in map(ToolChoice, ("none", "auto", "required"))}
_NO_GRAMMAR = Grammar()

_decode = msgspec.json.Decoder(AnyTool).decode
_Identity = tuple[str | None, str, bool]

_DATE = re.compile(r"_\d{4}_\d{2}_\d{2}$")


def read_tools(body: Obj, items_with_tools: Iterable[ToolItem]) -> tuple[Tool, ...]:
    """Read all tools that the model may call. Of two with one name, the later definition counts."""
    tools: dict[_Identity, Tool] = {}
    for tool in [] if body.get("tools") is None else _listed(body["tools"], "tools"):
        _add(tools, tool)
    for item in items_with_tools:
        where = f"input[{item.raw.at}]"
        for tool in _listed(members_of(item.raw.value, where)["tools"], f"{where}.tools"):
            # A tool that a search found may be declared as deferred already: then the declaration stays.
            if not (item.found and _identity(tool) in tools):
                _add(tools, with_place(tool, item=item))
    return tuple(tools.values())


def _listed(raw: msgspec.Raw, where: str) -> list[Tool]:
    listed = LazyArray(raw, where)
    definitions = enumerate(listed.items)
    return [
        tool
        for at, item in definitions
        for tool in read_tool(item, f"{where}[{at}]", Raw(NAME, listed, at=at))
    ]


def _add(tools: dict[_Identity, Tool], tool: Tool) -> None:
    identity = _identity(tool)
    before = tools.get(identity)
    if before is not None:
        tool = with_place(tool, earlier=(*declared(before).earlier, before))
    tools[identity] = tool


def _identity(tool: Tool) -> _Identity:
    return tool.namespace, tool.name, tool.kind == "hosted"


def read_tool(json: msgspec.Raw, where: str, raw: Raw | None = None) -> list[Tool]:
    """Read one entry of `tools`: a tool, or all tools of a namespace. `raw` is the entry as it came."""
    definition = _definition(json, where)
    raw = raw or Raw(NAME, json)
    given = optional(definition.tools) if type(definition) is Namespace else None
    inside = None if given is None else LazyArray(given, f"{where}.tools")
    if not isinstance(definition, Namespace) or not inside:
        return [_tool(definition, json, raw, where)]
    tools: list[Tool] = []
    for index, item in enumerate(inside.items):
        at = f"{where}.tools[{index}]"
        tool = _tool(_definition(item, at), item, Raw(NAME, inside, at=index), at)
        tools.append(with_place(msgspec.structs.replace(tool, namespace=definition.name), namespace=raw))
    return tools


def _definition(raw: msgspec.Raw, where: str) -> AnyTool | str:
    """Decode a definition as a struct; only its type if this module does not know it."""
    try:
        return _decode(raw)
    except msgspec.ValidationError as error:
        kind: str = member(members_of(raw, where), "type", str, where)
        if kind in TOOL_TYPES:
            raise bad_request(error, where) from None
        return kind


def _tool(definition: AnyTool | str, json: msgspec.Raw, raw: Raw, where: str) -> Tool:
    if type(definition) is FunctionTool:
        return _function(definition, raw, where)
    if type(definition) is CustomTool:
        return _custom(definition, raw)
    kind = definition if isinstance(definition, str) else "namespace"
    return _other(value(json, where), kind, raw, where)


def _function(tool: FunctionTool, raw: Raw, where: str) -> Tool:
    parameters = optional(tool.parameters)
    if parameters is not None:
        need_object(parameters, f"{where}.parameters")
    return Tool(
        name=tool.name,
        description=tool.description,
        parameters=parameters,
        strict=tool.strict,
        deferred=tool.defer_loading or False,
        raw=raw,
    )


def _custom(tool: CustomTool, raw: Raw) -> Tool:
    format = tool.format or _NO_GRAMMAR
    return Tool(
        name=tool.name,
        description=tool.description,
        kind="custom",
        grammar=format.definition,
        grammar_syntax=format.syntax,
        deferred=tool.defer_loading or False,
        raw=raw,
    )


def _other(definition: Obj, kind: str, raw: Raw, where: str) -> Tool:
    """Read a hosted tool, or a built-in one that the client runs (`shell`, `apply_patch`, …)."""
    builtin = read_builtin(definition, kind, where)
    if builtin is not None:
        return msgspec.structs.replace(builtin, raw=raw)
    if kind == "mcp":
        return _server(definition, raw, where)
    word = _hosted_word(kind)
    search = read_limits(definition) if word == SEARCH else None
    return Tool(name=kind, kind="hosted", hosted=word, search=search, raw=raw)


def _server(given: Obj, raw: Raw, where: str) -> Tool:
    """The tools of an MCP server. OpenAI's connectors and tunnels have no address for others."""
    name = need_string(given, "server_label", where)
    url, allowed = string(given, "server_url", where), given.get("allowed_tools")
    filtered = allowed.get("tool_names") if is_object(allowed) else allowed
    unknown = is_object(allowed) and allowed.get("read_only") is not None
    token, headers = token_and_headers(mapping(given, "headers", where))
    asked = given.get("require_approval")
    server = None
    if url and not unknown:
        server = ToolServer(
            name=name,
            url=url,
            token=string(given, "authorization", where) or token,
            headers=headers,
            allowed=tuple(map(str, filtered)) if is_array(filtered) else None,
            approval=asked != "never",  # OpenAI asks before every call if the client says nothing
        )
    return Tool(name=name, kind="hosted", hosted="mcp", server=server, raw=raw)


def _hosted_word(kind: str) -> str:
    """`web_search_preview` and `web_search_2025_08_26` are `web_search`; `computer_use` is `computer`."""
    family = _DATE.sub("", kind).partition("_preview")[0].removesuffix("_use")
    return _HOSTED_WORDS.get(family, family)


def read_tool_choice(body: Obj, tools: tuple[Tool, ...], lenient: bool) -> ToolChoice | None:
    """Read the tool choice. `lenient`: the server keeps earlier turns, so the name may be declared there."""
    value = body.get("tool_choice")
    if value is None:
        return None
    if isinstance(value, str):
        return _mode(value)
    if not is_object(value):
        reject(f"expected a string or an object, got {word(value)}", "tool_choice")
    if need_string(value, "type", "tool_choice") == "allowed_tools":
        return _allowed(value, tools, lenient)
    tool = _chosen(value, "tool_choice", tools, lenient)
    return ToolChoice("named", tool.name, tool.namespace)


def _mode(value: str) -> ToolChoice:
    if value not in _MODES:
        reject(f"{value!r} is not one of {', '.join(_MODES)}", "tool_choice")
    return _MODES[value]


def _allowed(value: Obj, tools: tuple[Tool, ...], lenient: bool) -> ToolChoice:
    required = choice(value, "mode", "tool_choice", ("auto", "required")) == "required"
    names = (
        _chosen(entry, where, tools, lenient).name for where, entry in objects(value, "tools", "tool_choice")
    )
    return ToolChoice("required" if required else "auto", allowed=tuple(names))


def _is_of_type(tool: Tool, kind: str) -> bool:
    return tool.hosted == _hosted_word(kind) or tool.builtin == kind


def _chosen(value: Obj, where: str, tools: tuple[Tool, ...], lenient: bool) -> Tool:
    """The declared tool of a choice: by name, or by type if it has none."""
    kind = need_string(value, "type", where)
    key = _NAMED_BY.get(kind, "type")
    name = need_string(value, key, where)
    for tool in tools:
        if _is_of_type(tool, name) if key == "type" else tool.name == name:
            return tool
    if not lenient:
        reject(f"no tool {name!r} is declared", where, key)
    return Tool(name=name)
