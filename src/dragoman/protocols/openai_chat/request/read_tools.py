"""Read the tools of a Chat request, and the tool choice."""

from __future__ import annotations

from typing import Literal

import msgspec

from ....model.messages import Cache, Raw, Tool, ToolChoice
from ...common.fields import (
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
from ...common.search_limits import read_limits
from ...common.searches import SEARCH
from ...common.typed_json import (
    LazyArray,
    Members,
    Reader,
    as_json,
    member,
    members_of,
    need_object,
    optional,
    value,
)
from ..own import NAME

# `any` is Mistral's word for `required`.
_WORDS = ("none", "auto", "required", "any")
_FUNCTION = msgspec.Raw(b'"function"')
BUILTIN = "builtin_function"
_BUILTINS = {"$web_search": "web_search"}
"""Moonshot's built-in functions that other protocols have, too."""
FUNCTIONS = "functions"
WEB_SEARCH = "web_search_options"
_ELSEWHERE = frozenset({FUNCTIONS, WEB_SEARCH})


class FunctionDefinition(msgspec.Struct, frozen=True, gc=False):
    """A function that the client runs."""

    name: str
    description: str | None = None
    parameters: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    strict: bool | None = None


class ToolEntry(msgspec.Struct, frozen=True, gc=False):
    """An entry of `tools`. The cache breakpoint has OpenAI's form, or Anthropic's (OpenRouter)."""

    type: Literal["function"]
    function: FunctionDefinition
    """A tool without a type is one too: see `read_tool`."""
    prompt_cache_breakpoint: Cache | None = None
    cache_control: Cache | None = None


_functions = msgspec.json.Decoder(list[ToolEntry]).decode
_function_tool = Reader(ToolEntry)


def read_tools(body: Obj) -> tuple[Tool, ...]:
    """Read `tools`, the deprecated `functions`, and the web search of `web_search_options`."""
    tools = () if body.get("tools") is None else _listed(body["tools"])
    if body.keys().isdisjoint(_ELSEWHERE):
        return tools
    return (*tools, *read_functions(body), *_searching(body))


def read_functions(body: Obj) -> list[Tool]:
    """Read the deprecated `functions`. They get no `raw`, so that they can be written as tools."""
    if body.get(FUNCTIONS) is None:
        return []
    decoded: Obj = {FUNCTIONS: value(as_json(body[FUNCTIONS]), FUNCTIONS)}
    return [_legacy(function, at) for at, function in objects(decoded, FUNCTIONS, "")]


def _searching(body: Obj) -> list[Tool]:
    if body.get(WEB_SEARCH) is None:
        return []
    given = as_json(body[WEB_SEARCH])
    limits = read_limits(as_object(value(given, WEB_SEARCH), WEB_SEARCH))
    raw = Raw(NAME, {WEB_SEARCH: given})
    return [Tool(name=SEARCH, kind="hosted", hosted=SEARCH, search=limits, raw=raw)]


def _listed(raw: msgspec.Raw) -> tuple[Tool, ...]:
    """Read the entries of `tools`. A list with only functions is decoded in one pass."""
    listed = LazyArray(raw, "tools")
    try:
        functions = _functions(raw)
    except msgspec.ValidationError:
        return tuple(
            [_entry(item, Raw(NAME, listed, at=at), f"tools[{at}]") for at, item in enumerate(listed.items)]
        )
    return tuple(
        [
            _read_function(function, Raw(NAME, listed, at=at), f"tools[{at}]")
            for at, function in enumerate(functions)
        ]
    )


def read_tool(json: msgspec.Raw, where: str) -> Tool:
    """Read one entry of `tools`."""
    return _entry(json, Raw(NAME, json), where)


def _entry(json: msgspec.Raw, raw: Raw, where: str) -> Tool:
    members = members_of(json, where)
    if _is_untyped(members):
        # Mistral's and Together's clients leave the type out. OpenAI refuses that.
        json = as_json({**members, "type": _FUNCTION})
        return _read_function(_function_tool.read(json, where), Raw(NAME, json), where)
    kind: str = member(members, "type", str, where)
    if kind == "function":
        return _read_function(_function_tool.read(json, where), raw, where)
    if kind == "custom":
        return _custom(value(json, where), raw, where)
    if kind == BUILTIN and is_object(function := value(json, where).get("function")):
        # Moonshot's `$web_search`. The client gets its calls, and returns their arguments as the results.
        name = need_string(function, "name", join(where, "function"))
        return Tool(name=name, kind="hosted", hosted=_BUILTINS.get(name, kind), raw=raw)
    # Groq, Zhipu and others have tools that their servers run.
    return Tool(name=kind, kind="hosted", hosted=kind, raw=raw)


def _is_untyped(members: Members) -> bool:
    return optional(members.get("type", msgspec.UNSET)) is None and "function" in members


def _read_function(tool: ToolEntry, raw: Raw, where: str) -> Tool:
    function = tool.function
    parameters = optional(function.parameters)
    if parameters is not None:
        need_object(parameters, f"{where}.function.parameters")
    return Tool(
        name=function.name,
        description=function.description,
        parameters=parameters,
        strict=function.strict,
        cache=tool.prompt_cache_breakpoint or tool.cache_control,
        raw=raw,
    )


def _legacy(given: Obj, where: str) -> Tool:
    return Tool(
        name=need_string(given, "name", where),
        description=string(given, "description", where),
        parameters=mapping(given, "parameters", where),
        strict=boolean(given, "strict", where),
    )


def _custom(tool: Obj, raw: Raw, where: str) -> Tool:
    at = join(where, "custom")
    custom = as_object(tool.get("custom"), at)
    grammar, syntax = _grammar(custom, at)
    return Tool(
        name=need_string(custom, "name", at),
        description=string(custom, "description", at),
        kind="custom",
        grammar=grammar,
        grammar_syntax=syntax,
        raw=raw,
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
    """Read `tool_choice`, or the deprecated `function_call`."""
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
        choice({"tool_choice": chosen}, "tool_choice", "", _WORDS)
        return _word(chosen)
    if not is_object(chosen):
        reject("expected a string or an object", "tool_choice")
    kind = need_string(typed_choice(chosen), "type", "tool_choice")
    if kind == "allowed_tools":
        return _allowed(chosen, tools)
    if kind in ("function", "custom"):
        at = join("tool_choice", kind)
        return ToolChoice("named", _declared(as_object(chosen.get(kind), at), at, tools))
    if kind == BUILTIN:
        at = join("tool_choice", "function")
        return ToolChoice("named", _declared(as_object(chosen.get("function"), at), at, tools))
    if not any(tool.hosted == kind for tool in tools):
        reject(f"{kind!r} is neither a kind of choice nor a declared tool", "tool_choice.type")
    return ToolChoice("named", kind)


def typed_choice(chosen: Obj) -> Obj:
    """A choice with its type, which Mistral's and Together's clients leave out."""
    untyped = chosen.get("type") is None and "function" in chosen
    return {**chosen, "type": "function"} if untyped else chosen


def _word(word: str) -> ToolChoice:
    if word == "none":
        return ToolChoice("none")
    return ToolChoice("auto") if word == "auto" else ToolChoice("required")


def _allowed(chosen: Obj, tools: tuple[Tool, ...]) -> ToolChoice:
    where = "tool_choice.allowed_tools"
    allowed = as_object(chosen.get("allowed_tools"), where)
    mode = choice(allowed, "mode", where, ("auto", "required"))
    names: list[str] = []
    for at, entry in objects(allowed, "tools", where):
        kind = need_string(typed_choice(entry), "type", at)
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
