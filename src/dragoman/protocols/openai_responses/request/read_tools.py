"""The tools of a Responses request: its own, those that ride in input items, and the choice."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ....messages import Raw, Tool, ToolChoice
from ...fields import (
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
    word,
)
from ..builtins import read_builtin
from ..items import NAME

# Neutral words for what the provider runs; every other type is its own word.
_HOSTED_WORDS = {"code_interpreter": "code_execution"}
# By which member a tool choice names its tool; the provider's own tools are named by their type.
_NAMED_BY = {"function": "name", "custom": "name", "mcp": "server_label"}
_MODES = {mode.mode: mode for mode in map(ToolChoice, ("none", "auto", "required"))}
# Items that bring tools along: Codex' code mode has no top-level `tools` at all, and a tool search
# answers with the definitions it found.
TOOL_ITEMS = ("additional_tools", "tool_search_output")


_Identity = tuple[str | None, str, bool]
_Declared = dict[_Identity, Tool]


def read_tools(body: Obj) -> tuple[Tool, ...]:
    """Every tool the model may call, wherever it was declared; a later definition wins."""
    declared: _Declared = {_identity(tool): tool for tool in _listed(body)}
    for where, item in _tool_items(body):
        for at, definition in objects(item, "tools", where):
            for tool in read_tool(definition, at):
                _add_from_item(declared, tool, item["type"])
    return tuple(declared.values())


def _listed(body: Obj) -> Iterator[Tool]:
    return (tool for where, item in objects(body, "tools", "") for tool in read_tool(item, where))


def _tool_items(body: Obj) -> Iterator[tuple[str, Obj]]:
    items = body.get("input")
    for index, item in enumerate(items if is_array(items) else ()):
        if is_object(item) and item.get("type") in TOOL_ITEMS:
            yield f"input[{index}]", item


def _add_from_item(declared: _Declared, tool: Tool, kind: str) -> None:
    # A tool found by search was often declared before, as deferred: that declaration stays.
    if kind == "tool_search_output" and _identity(tool) in declared:
        return
    extras = {**(tool.extras or {}), "item": kind}
    declared[_identity(tool)] = msgspec.structs.replace(tool, extras=extras)


def _identity(tool: Tool) -> _Identity:
    return tool.namespace, tool.name, tool.kind == "hosted"


def read_tool(definition: Obj, where: str) -> list[Tool]:
    """One entry of `tools`: a tool, or all the tools of a namespace."""
    if need_string(definition, "type", where) != "namespace":
        return [_tool(definition, where)]
    namespace = need_string(definition, "name", where)
    # The namespace's own fields, to build it again from its flattened tools.
    own = {key: value for key, value in definition.items() if key != "tools"}
    return [
        msgspec.structs.replace(_tool(nested, at), namespace=namespace, extras={"namespace": own})
        for at, nested in objects(definition, "tools", where)
    ]


def _tool(definition: Obj, where: str) -> Tool:
    kind = need_string(definition, "type", where)
    if kind == "function":
        return _function(definition, where)
    if kind == "custom":
        return _custom(definition, where)
    return _other(definition, kind, where)


def _function(definition: Obj, where: str) -> Tool:
    return Tool(
        name=need_string(definition, "name", where),
        description=string(definition, "description", where),
        parameters=mapping(definition, "parameters", where),
        strict=boolean(definition, "strict", where),
        deferred=boolean(definition, "defer_loading", where) or False,
        raw=Raw(NAME, definition),
    )


def _custom(definition: Obj, where: str) -> Tool:
    format = mapping(definition, "format", where) or {}
    at = f"{where}.format"
    return Tool(
        name=need_string(definition, "name", where),
        description=string(definition, "description", where),
        kind="custom",
        grammar=string(format, "definition", at),
        grammar_syntax=string(format, "syntax", at),
        deferred=boolean(definition, "defer_loading", where) or False,
        raw=Raw(NAME, definition),
    )


def _other(definition: Obj, kind: str, where: str) -> Tool:
    """Run by the provider, or by the client in items of its own (`shell`, `apply_patch`, …)."""
    builtin = read_builtin(definition, kind, where)
    if builtin is not None:
        return msgspec.structs.replace(builtin, raw=Raw(NAME, definition))
    name = need_string(definition, "server_label", where) if kind == "mcp" else kind
    return Tool(name=name, kind="hosted", hosted=_hosted_word(kind), raw=Raw(NAME, definition))


def _hosted_word(kind: str) -> str:
    """`web_search_preview_2025_03_11` is `web_search`; `computer_use_preview` is `computer`."""
    family = kind.partition("_preview")[0].removesuffix("_use")
    return _HOSTED_WORDS.get(family, family)


def read_tool_choice(body: Obj, tools: tuple[Tool, ...], lenient: bool) -> ToolChoice | None:
    """`lenient`: tools may stand in turns the server keeps, so an unknown name is fine."""
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
    return tool.hosted == _hosted_word(kind) or (tool.extras or {}).get("builtin") == kind


def _chosen(value: Obj, where: str, tools: tuple[Tool, ...], lenient: bool) -> Tool:
    """The declared tool a choice means: by name, or by type where it has none."""
    kind = need_string(value, "type", where)
    key = _NAMED_BY.get(kind, "type")
    name = need_string(value, key, where)
    for tool in tools:
        if _is_of_type(tool, name) if key == "type" else tool.name == name:
            return tool
    if not lenient:
        reject(f"no tool {name!r} is declared", where, key)
    return Tool(name=name)
