"""Write the tools of a Chat request, and the tool choice."""

from __future__ import annotations

from typing import Any, TypeGuard

import msgspec

from ....model.errors import BadRequest
from ....model.messages import Raw, Request, Tool, ToolChoice
from ...common.fields import Obj, is_object
from ...common.freeform import emulated
from ...common.schemas import OPENAI, Schema, complete, sanitised, strict_ready, warn_dropped
from ...common.search_limits import limits_of, warn_unlimited
from ...common.searches import SEARCH
from ...common.typed_json import unchanged_array
from ...common.unsupported import warn_deferred
from ..own import is_own
from .read_tools import FUNCTIONS, WEB_SEARCH, read_functions
from .shared import Writing
from .wire import is_nothing

_MEMBERS = frozenset({"tools", FUNCTIONS, WEB_SEARCH})
_UNSET = msgspec.UNSET


class _Function(msgspec.Struct, frozen=True, gc=False):
    name: str
    description: str | msgspec.UnsetType
    parameters: Schema
    strict: bool | msgspec.UnsetType = _UNSET


class _Tool(msgspec.Struct, tag_field="type", tag="function", frozen=True, gc=False):
    function: _Function


def keeps_functions(request: Request) -> bool:
    """May the deprecated `functions` and `function_call` stay? Only if Dragoman changed no function."""
    raw = request.raw
    given = read_functions(raw.value) if is_own(raw) else []
    return is_own(raw) and given == [tool for tool in request.tools if tool.raw is None]


def write_tools(body: Obj, request: Request, writing: Writing) -> None:
    """Write the tools into the body, and the tool choice unless the client's own is there."""
    if not request.tools and body.keys().isdisjoint(_MEMBERS):
        return
    settings, given = request.settings, is_own(request.raw)
    fields = _tools(request, writing)
    kept = (FUNCTIONS, *fields) if writing.keeps_legacy else fields
    gone = [key for key in _MEMBERS if key not in kept and not is_nothing(body.get(key))]
    for key in gone:
        del body[key]
    body |= fields
    renamed = not writing.keeps_legacy and body.pop("function_call", None) is not None
    if "tools" not in fields:
        if "tools" in gone:
            body.pop("tool_choice", None)
            body.pop("parallel_tool_calls", None)
        return
    # OpenAI refuses both without tools.
    if settings.tool_choice is not None and (renamed or not given):
        body["tool_choice"] = _choice(settings.tool_choice, request.tools, writing)
    if settings.parallel_tool_calls is not None and not given:
        body["parallel_tool_calls"] = settings.parallel_tool_calls


def _tools(request: Request, writing: Writing) -> Obj:
    """The members that hold the tools, except the deprecated `functions`, which stay as they came."""
    fields: Obj = {}
    listed: list[tuple[int, Tool]] = []
    for at, tool in _offered(request.tools, request.settings.tool_choice, writing):
        if tool.hosted == SEARCH and not _is_entry(tool.raw):
            fields |= _web_search(tool, writing, at)
        elif tool.raw is not None or not writing.keeps_legacy:
            listed.append((at, tool))
    if tools := _entries(listed, writing):
        fields["tools"] = tools
    return fields


def _entries(listed: list[tuple[int, Tool]], writing: Writing) -> list[Any] | msgspec.Raw | None:
    """The value of `tools`."""
    raws = [tool.raw for _, tool in listed if _is_entry(tool.raw)]
    if len(raws) == len(listed) and (whole := unchanged_array(raws)) is not None:
        return whole
    return [written for at, tool in listed if (written := _tool(tool, writing, at)) is not None]


def _is_entry(raw: Raw | None) -> TypeGuard[Raw]:
    """Is this an entry of `tools` that came over Chat? The raw `web_search_options` are no JSON text."""
    return is_own(raw) and not is_object(raw.held)


def _offered(tools: tuple[Tool, ...], choice: ToolChoice | None, writing: Writing) -> list[tuple[int, Tool]]:
    """The tools to send, with their indexes. A server without `allowed_tools` gets only the allowed ones."""
    everything = list(enumerate(tools))
    if choice is None or choice.allowed is None or not writing.compatible:
        return everything
    return [(at, tool) for at, tool in everything if _matches(tool, choice.allowed)]


def _matches(tool: Tool, names: tuple[str, ...]) -> bool:
    return tool.name in names or f"{tool.namespace}__{tool.name}" in names


def _tool(tool: Tool, writing: Writing, at: int) -> Any:
    raw = tool.raw
    if _is_entry(raw):
        return raw.value
    if tool.kind != "function":
        return _unusual(tool, writing, at)
    if tool.deferred:
        warn_deferred(tool, writing.notices)
    name, words = writing.names.out(tool.name, tool.namespace), tool.description
    schema = complete(tool.parameters) if writing.compatible else _fitting(tool, writing, at)
    # Unlike Responses, Chat is not strict if the member is missing.
    strict = _UNSET if tool.strict is None else _strict(tool, writing, at)
    return _Tool(_Function(name, _UNSET if words is None else words, schema, strict))


def _fitting(tool: Tool, writing: Writing, at: int) -> Schema:
    """The schema without what OpenAI refuses at its top level."""
    dropped: list[str] = []
    schema = sanitised(tool.parameters, OPENAI, dropped.append)
    if dropped:
        warn_dropped(dropped, f"{_path(at)}.parameters", writing.notices)
    return schema


def _unusual(tool: Tool, writing: Writing, at: int) -> Obj | _Tool | None:
    if tool.kind == "hosted":
        _hosted(tool, writing, at)
        return None
    warn_deferred(tool, writing.notices)
    name = writing.names.out(tool.name, tool.namespace)
    if writing.compatible:
        words, schema = emulated(tool, _path(at), writing.notices)
        return _Tool(_Function(name, words or _UNSET, schema))
    return {"type": "custom", "custom": _custom(tool, name)}


def _path(at: int) -> str:
    return f"tools[{at}]"


def _strict(tool: Tool, writing: Writing, at: int) -> bool | msgspec.UnsetType:
    if not tool.strict or writing.target.open_strict or strict_ready(complete(tool.schema)):
        return bool(tool.strict)
    text = "openai-chat is strict only about schemas that close every object"
    writing.notices.warn("strict-dropped", _path(at), text)
    return _UNSET


def _custom(tool: Tool, name: str) -> Obj:
    custom: Obj = {"name": name}
    if tool.description is not None:
        custom["description"] = tool.description
    if tool.grammar is not None:
        grammar = {"syntax": tool.grammar_syntax or "lark", "definition": tool.grammar}
        custom["format"] = {"type": "grammar", "grammar": grammar}
    return custom


def _hosted(tool: Tool, writing: Writing, at: int) -> None:
    """Add a notice for a tool that another provider runs: it is not sent."""
    if tool.hosted == "mcp":
        raise BadRequest("openai-chat cannot connect to MCP servers", _path(at))
    if tool.hosted != SEARCH:
        text = f"openai-chat has no tool like {tool.hosted!r}"
        writing.notices.warn("hosted-tool-dropped", _path(at), text)


def _web_search(tool: Tool, writing: Writing, at: int) -> Obj:
    """The member `web_search_options`."""
    raw = tool.raw
    if not _searches(writing, _path(at)):
        return {}
    if is_own(raw):
        return raw.value
    limits = limits_of(tool)
    warn_unlimited(limits, (), _path(at), writing.notices)
    options: Obj = {"search_context_size": limits.size} if limits.size else {}
    if limits.place:
        options["user_location"] = {"type": "approximate", "approximate": limits.place}
    return {WEB_SEARCH: options}


def _searches(writing: Writing, where: str) -> bool:
    """Does the upstream take `web_search_options`? Adds a notice if it does not.

    Most of OpenAI's own models refuse it. A Chat client in front of another server knows that server.
    """
    takes = writing.target.takes.search
    if takes or (writing.own and (takes is None or writing.target.chat_compatible)):
        return True
    text = f"{writing.target.model} does not accept {WEB_SEARCH}"
    writing.notices.warn("hosted-tool-dropped", where, text)
    return False


def _choice(choice: ToolChoice, tools: tuple[Tool, ...], writing: Writing) -> Any:
    if choice.mode == "named":
        return _named(choice, tools, writing)
    if choice.mode == "none" or choice.allowed is None or writing.compatible:
        return choice.mode
    allowed = [_reference(tool, writing) for tool in tools if _matches(tool, choice.allowed)]
    return {
        "type": "allowed_tools",
        "allowed_tools": {"mode": choice.mode, "tools": allowed},
    }


def _named(choice: ToolChoice, tools: tuple[Tool, ...], writing: Writing) -> Any:
    for tool in tools:
        if tool.name == choice.name and tool.namespace == choice.namespace:
            if tool.kind != "hosted" or is_own(tool.raw):
                return _reference(tool, writing)
            text = f"openai-chat cannot force {tool.name!r}"
            writing.notices.warn("forced-choice-downgraded", "settings.tool_choice", text)
            return "auto"
    raise BadRequest(f"no declared tool has the name {choice.name!r}", "settings.tool_choice.name")


def _reference(tool: Tool, writing: Writing) -> Obj:
    if tool.kind == "hosted":
        return {"type": tool.hosted}
    kind = "custom" if tool.kind == "custom" and not writing.compatible else "function"
    return {"type": kind, kind: {"name": writing.names.out(tool.name, tool.namespace)}}
