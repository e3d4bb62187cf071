"""Finds the declared tool for a name that is nearly right.

Models add a namespace (`default.search`, `functions.search`), append control tokens
(`query<|channel|>commentary`), change case or separators, or leave out the server of an MCP tool. A name is
mended only if exactly one declared tool can be meant. Any other name is a tool that the client did not offer.
"""

from __future__ import annotations

import re

from ..protocols.common.tool_names import CalledTool, ToolNames
from .rules.tables import squash
from .schema import ToolSchema, compile_schema

_CONTROL = re.compile(r"<\|.*$|[\s\x00-\x1f]+", re.DOTALL)
# Gemini writes `default_api.`, gpt-oss and Kimi write `functions.`.
_PREFIX = re.compile(r"(?:default_api|default|functions?|tools?)[.:/]+", re.IGNORECASE)
# Kimi's call ids (`functions.search:0`) sometimes arrive as names.
_COUNT = re.compile(r":\d+$")
_MAX_NAMES = 60


def resolve(
    name: str, names: ToolNames, namespace: str | None = None, *, mend: bool = True
) -> tuple[CalledTool | None, str]:
    """The tool that `name` means, and its name. None and the name itself if no declared tool fits."""
    called = names.called(name, namespace)
    if called is not None:
        return called, called.tool.name
    if not mend:
        return None, name
    bare = _CONTROL.sub("", name)
    plain = _COUNT.sub("", _PREFIX.sub("", bare, count=1))
    for candidate in dict.fromkeys((bare, plain)):
        called = (
            names.called(candidate)
            or _by_original(candidate, names)
            or _by_spelling(candidate, names)
            or _by_last_part(candidate, names)
        )
        if called is not None:
            return called, called.tool.name
    return None, name


def not_offered(name: str, names: ToolNames) -> str:
    """The problem text for an undeclared tool. It lists the tools that the model may call."""
    declared = [called.tool.name for called in names.declared().values()]
    more = len(declared) - _MAX_NAMES
    listed = ", ".join(declared[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")
    return f"not offered: there is no tool {name!r}; the tools are: {listed or 'none'}"


def schema_of(called: CalledTool, names: ToolNames) -> ToolSchema:
    """The compiled schema of a tool, cached with the names of the request."""
    tool = called.tool
    key = ("schema", tool.namespace or "", tool.name)
    return names.note(key, lambda: compile_schema(tool.schema))


def _by_original(name: str, names: ToolNames) -> CalledTool | None:
    """The tool whose own name is not legal at the upstream, but the model writes it: `weather.get`."""
    given = names.note(("originals",), names.originals).get(name)
    return names.called(given) if given else None


def _by_spelling(name: str, names: ToolNames) -> CalledTool | None:
    """The only tool whose name differs in case, or in case and separators."""
    for spelling in (str.casefold, squash):
        wanted = spelling(name)
        found = [called for key, called in names.declared().items() if spelling(key) == wanted]
        if found:
            return found[0] if len(found) == 1 and wanted else None
    return None


def _by_last_part(name: str, names: ToolNames) -> CalledTool | None:
    """The only tool with this name in any MCP server or namespace."""
    found = [called for key, called in names.declared().items() if key.endswith(f"__{name}")]
    return found[0] if len(found) == 1 and name else None
