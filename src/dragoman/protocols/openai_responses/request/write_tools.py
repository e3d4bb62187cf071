"""Write tools and the tool choice for a Responses upstream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from ....model.messages import Raw, SearchLimits, Tool, ToolChoice
from ...common.fields import Obj
from ...common.notices import Notices
from ...common.schemas import (
    OPENAI,
    Schema,
    no_loss,
    output_schema,
    sanitised,
    strict_ready,
    warn_dropped,
)
from ...common.search_limits import limits_of, location, warn_unlimited
from ...common.tool_names import ToolNames
from ...common.tool_servers import reachable
from ...common.typed_json import members_of, unchanged_array
from ...common.unsupported import warn_deferred
from ..own import is_own
from .wire import ToolItem, declared

# Hosted tools with a counterpart in other protocols, by their neutral names.
_HOSTED: dict[str, Obj] = {
    "web_search": {"type": "web_search"},
    # OpenAI requires the container.
    "code_execution": {"type": "code_interpreter", "container": {"type": "auto"}},
}
_LAST = 1 << 32


class Placed(NamedTuple):
    """A finished item that is no message."""

    before: int
    """The number of messages before it."""
    raw: Raw | None
    """The item as the client sent it; None if it differs."""
    item: Any


class ToolWriter:
    """Writes tools under legal names, with schemas that the upstream accepts. Notes what it drops."""

    def __init__(self, names: ToolNames, notices: Notices) -> None:
        self._names = names
        self._notices = notices

    def tools(self, tools: Sequence[Tool]) -> list[Any] | msgspec.Raw:
        """Write the definitions in order. Consecutive tools of one namespace share its definition.

        The definitions of a Responses client are copied as they came: one, all of a namespace, or all.
        """
        if tools and tools[0].extras is None and is_own(tools[0].raw):
            whole = unchanged_array([tool.raw for tool in tools])
            if whole is not None:
                return whole
        written = [(t, d) for i, t in enumerate(tools) if (d := self._tool(t, f"tools[{i}]")) is not None]
        entries: list[tuple[Raw | None, Any]] = []
        for (namespace, _), group in groupby(written, key=lambda pair: _namespace_of(pair[0])):
            pairs = list(group)
            if namespace is None:
                entries += [(tool.raw if is_own(tool.raw) else None, written) for tool, written in pairs]
                continue
            first, around = pairs[0][0], declared(pairs[0][0]).namespace
            if around is not None and unchanged_array([tool.raw for tool, _ in pairs]) is not None:
                entries.append((around, around.value))
            else:
                entries.append((None, _namespace(first) | {"tools": [written for _, written in pairs]}))
        whole = unchanged_array([raw for raw, _ in entries])
        return [definition for _, definition in entries] if whole is None else whole

    def items(self, tools: Sequence[Tool]) -> list[Placed]:
        """Write the items that declare tools."""
        if all(tool.extras is None for tool in tools):
            return []
        by_item: dict[int | None, tuple[ToolItem, list[Tool]]] = {}
        for tool in tools:
            item = declared(tool).item
            if item is not None and not item.found:
                by_item.setdefault(item.raw.at, (item, []))[1].append(tool)
        result: list[Placed] = []
        for item, inside in sorted(by_item.values(), key=lambda entry: _at(entry[0].raw)):
            definitions = self.tools(inside)
            if isinstance(definitions, msgspec.Raw):
                result.append(Placed(item.before, item.raw, item.raw.value))
            else:
                members = members_of(item.raw.value, "input")
                result.append(Placed(item.before, None, {**members, "tools": definitions}))
        return result

    def choice(self, choice: ToolChoice, tools: Sequence[Tool]) -> str | Obj:
        """Write the tool choice for `tools`, the written tools."""
        if choice.mode == "none":
            return "none"
        if choice.allowed is not None:
            return self._allowed(choice, tools)
        if choice.mode != "named":
            return choice.mode
        chosen = _find(choice.name, choice.namespace, tools)
        if chosen is None:
            return self._downgraded("auto")
        reference = self._reference(chosen)
        # A choice cannot name `web_search`, but it can allow only that.
        return _only([reference], "required") if chosen.kind == "hosted" else reference

    def schema(self, schema: Schema | None, where: str) -> Schema:
        """Write the schema of structured output."""
        dropped: list[str] = []
        result = output_schema(schema, OPENAI, dropped.append)
        warn_dropped(dropped, where, self._notices)
        return result

    def _tool(self, tool: Tool, where: str) -> Any:
        if is_own(tool.raw):
            return tool.raw.value
        if tool.kind == "hosted":
            return self._hosted(tool, where)
        warn_deferred(tool, self._notices)
        return self._custom(tool) if tool.kind == "custom" else self._function(tool, where)

    def _function(self, tool: Tool, where: str) -> Obj:
        dropped: list[str] = []
        parameters = sanitised(tool.parameters, OPENAI, dropped.append)
        if dropped:
            warn_dropped(dropped, f"{where}.parameters", self._notices)
        definition: Obj = {"type": "function", "name": self._names.out(tool.name, tool.namespace)}
        if tool.description is not None:
            definition["description"] = tool.description
        definition["parameters"] = parameters
        # If `strict` is missing, the server tries to enforce the schema, and changes it.
        definition["strict"] = bool(tool.strict) and self._strict(tool, where)
        return definition

    def _strict(self, tool: Tool, where: str) -> bool:
        if strict_ready(sanitised(tool.schema, OPENAI, no_loss)):
            return True
        message = "strict needs every property required and no additional ones"
        self._notices.warn("strict-dropped", f"{where}.strict", message)
        return False

    def _custom(self, tool: Tool) -> Obj:
        definition: Obj = {"type": "custom", "name": self._names.out(tool.name, tool.namespace)}
        if tool.description is not None:
            definition["description"] = tool.description
        if tool.grammar is not None:
            definition["format"] = {
                "type": "grammar",
                "syntax": tool.grammar_syntax or "lark",
                "definition": tool.grammar,
            }
        return definition

    def _hosted(self, tool: Tool, where: str) -> Obj | None:
        if tool.hosted == "mcp":
            return self._server(tool, where)
        definition = _HOSTED.get(tool.hosted or "")
        if definition is None:
            message = f"{tool.name} is run by another provider"
            self._notices.warn("hosted-tool-dropped", where, message)
            return None
        limits = limits_of(tool)
        warn_unlimited(limits, ("allowed",), where, self._notices)
        return definition | _search_limits(limits)

    def _server(self, tool: Tool, where: str) -> Obj:
        """The tools of an MCP server."""
        server = reachable(tool, where, asks=True, filters=True)
        definition: Obj = {"type": "mcp", "server_label": _label(server.name), "server_url": server.url}
        if server.token:
            definition["authorization"] = server.token
        if server.headers:
            definition["headers"] = server.headers
        if server.allowed is not None:
            definition["allowed_tools"] = list(server.allowed)
        # The default is "always". Then the answer would be an `mcp_approval_request`, which the client's
        # protocol does not have.
        return definition | {"require_approval": "always" if server.approval else "never"}

    def _allowed(self, choice: ToolChoice, tools: Sequence[Tool]) -> str | Obj:
        found = [_find(name, None, tools) for name in choice.allowed or ()]
        references = [self._reference(tool) for tool in found if tool]
        if not references:
            return self._downgraded("none")
        return _only(references, "required" if choice.mode == "required" else "auto")

    def _downgraded(self, mode: str) -> str:
        message = f"the chosen tool cannot be sent, so tool_choice is {mode!r}"
        self._notices.warn("forced-choice-downgraded", "settings.tool_choice", message)
        return mode

    def _reference(self, tool: Tool) -> Obj:
        own = is_own(tool.raw)
        if own and tool.builtin:
            return {"type": tool.name}
        if tool.kind != "hosted":
            return {"type": tool.kind, "name": self._names.out(tool.name, tool.namespace)}
        if tool.hosted == "mcp" and not own:
            return {"type": "mcp", "server_label": _label(tool.name)}
        if tool.raw is None or not own:
            return {"type": _HOSTED[tool.hosted or ""]["type"]}
        given: Obj = tool.raw.parsed
        return {key: given[key] for key in ("type", "server_label") if key in given}


def _search_limits(limits: SearchLimits) -> Obj:
    fields: Obj = {"search_context_size": limits.size} if limits.size else {}
    if limits.allowed:
        fields["filters"] = {"allowed_domains": list(limits.allowed)}
    return fields | location(limits)


def _only(references: list[Obj], mode: str) -> Obj:
    return {"type": "allowed_tools", "mode": mode, "tools": references}


def every_definition(tools: Sequence[Tool]) -> Sequence[Tool]:
    """All definitions of these tools in the client's order, also those that a later one replaces."""
    if all(tool.extras is None for tool in tools):
        return tools
    found = [one for tool in tools for one in (*declared(tool).earlier, tool)]
    return found if len(found) == len(tools) else sorted(found, key=_place)


def _place(tool: Tool) -> tuple[int, int]:
    """Where the definition is in its list, and in its namespace. A changed one comes last."""
    around = declared(tool).namespace
    return (_at(tool.raw), 0) if around is None else (_at(around), _at(tool.raw))


def _at(raw: Raw | None) -> int:
    return _LAST if raw is None or raw.at is None else raw.at


def _namespace_of(tool: Tool) -> tuple[str | None, int]:
    """The name of the namespace, and the place of its definition: two may have one name."""
    return tool.namespace, _at(declared(tool).namespace)


def sendable(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """The tools that can be sent to a Responses upstream."""
    return tuple(tool for tool in tools if tool.kind != "hosted" or _known(tool))


def _known(tool: Tool) -> bool:
    return tool.hosted in _HOSTED or tool.hosted == "mcp" or is_own(tool.raw)


def _find(name: str | None, namespace: str | None, tools: Sequence[Tool]) -> Tool | None:
    for tool in tools:
        if tool.name == name and (namespace is None or tool.namespace == namespace):
            return tool
    return None


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _namespace(tool: Tool) -> Obj:
    """The definition of a namespace around its tools. It must have a description."""
    given = declared(tool).namespace
    if given is not None:
        return members_of(given.value, "tools")
    return {
        "type": "namespace",
        "name": tool.namespace,
        "description": f"The tools of {tool.namespace}.",
    }
