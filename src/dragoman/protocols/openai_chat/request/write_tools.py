"""Write the tools of a Chat request, and the tool choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ....model.errors import BadRequest
from ....model.messages import Raw, Request, Tool, ToolChoice
from ...common.fields import Obj, is_object
from ...common.freeform import emulated
from ...common.schemas import OPENAI, Schema, complete, sanitised, strict_ready, warn_dropped
from ...common.search_limits import limits_of, warn_unlimited
from ...common.unsupported import warn_deferred
from ..own import is_own
from .shared import Writing

WEB_SEARCH = "web_search_options"
_UNSET = msgspec.UNSET


class _Function(msgspec.Struct, frozen=True, gc=False):
    name: str
    description: str | msgspec.UnsetType
    parameters: Schema
    strict: bool | msgspec.UnsetType = _UNSET


class _Tool(msgspec.Struct, tag_field="type", tag="function", frozen=True, gc=False):
    function: _Function


def write_tools(request: Request, writing: Writing) -> Obj:
    """Write `tools`, `web_search_options`, `tool_choice` and `parallel_tool_calls`."""
    choice = request.settings.tool_choice
    kept = _offered(request.tools, choice, writing)
    tools = [written for at, tool in kept if (written := _tool(tool, writing, at)) is not None]
    fields: Obj = {"tools": tools} if tools else {}
    for at, tool in kept:
        if tool.hosted == "web_search":
            fields |= _web_search(tool, writing, at)
    if tools:
        # OpenAI refuses both without tools.
        if choice is not None:
            fields["tool_choice"] = _choice(choice, request.tools, writing)
        if request.settings.parallel_tool_calls is not None:
            fields["parallel_tool_calls"] = request.settings.parallel_tool_calls
    return fields


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
    if is_own(raw):
        return None if _is_web_search(raw) else raw.value
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
    if tool.hosted != "web_search":
        text = f"openai-chat has no tool like {tool.hosted!r}"
        writing.notices.warn("hosted-tool-dropped", _path(at), text)


def _is_web_search(raw: Raw) -> bool:
    """Is this the web search of `web_search_options`? Its `raw` is decoded, unlike that of a tool entry."""
    return is_object(raw.value) and WEB_SEARCH in raw.value


def _web_search(tool: Tool, writing: Writing, at: int) -> Obj:
    raw = tool.raw if is_own(tool.raw) else None
    if raw is not None and not _is_web_search(raw):
        return {}  # a search tool of this server, which is written as an entry of `tools`
    if not searches(writing, _path(at)):
        return {}
    if raw is not None:
        return raw.value
    limits = limits_of(tool)
    warn_unlimited(limits, (), _path(at), writing.notices)
    options: Obj = {"search_context_size": limits.size} if limits.size else {}
    if limits.place:
        options["user_location"] = {"type": "approximate", "approximate": limits.place}
    return {WEB_SEARCH: options}


def searches(writing: Writing, where: str) -> bool:
    """Does the upstream take `web_search_options`? Adds a notice if it does not.

    Most of OpenAI's own models refuse it. A Chat client in front of another server knows that server.
    """
    takes = writing.target.takes.search
    if takes or (writing.own and (takes is None or writing.target.chat_compatible)):
        return True
    text = f"{writing.target.model} does not accept {WEB_SEARCH}"
    writing.notices.warn("hosted-tool-dropped", where, text)
    return False


def own_tools(tools: Sequence[Tool]) -> list[Any]:
    """The entries of `tools` that came over Chat, each with its type."""
    raws = (tool.raw for tool in tools if tool.raw is not None)
    return [raw.value for raw in raws if not _is_web_search(raw)]


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
