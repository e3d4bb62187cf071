"""Which declared tool does a model mean by a name that is nearly one?

Models add a namespace of their own (`default.search`, `functions.search`), glue control tokens to the name
(`query<|channel|>commentary`), or get the case wrong. A name is only mended when exactly one declared tool
can be meant; any other name passes as it is, so that the client can answer with its own error.
"""

from __future__ import annotations

import re

from ..protocols.common.tool_names import Called, ToolNames
from .schema import ToolSchema, compile_schema

_CONTROL = re.compile(r"<\|.*$|[\s\x00-\x1f]+", re.DOTALL)
_PREFIXES = ("default_api.", "default.", "functions.", "function.", "tools.", "tool.")


def resolve(
    name: str, names: ToolNames, namespace: str | None = None, *, mend: bool = True
) -> tuple[Called | None, str]:
    """The tool meant, and the name without what does not belong to it."""
    called = names.called(name, namespace)
    if called is not None:
        return called, called.tool.name
    if not mend:
        return None, name
    bare = _CONTROL.sub("", name)
    for candidate in (bare, *(bare.removeprefix(p) for p in _PREFIXES if bare.startswith(p))):
        called = names.called(candidate) or _by_case(candidate, names)
        if called is not None:
            return called, called.tool.name
    return None, name


def schema_of(called: Called, names: ToolNames) -> ToolSchema:
    """The tool's parameters, compiled once for all answers that may call it."""
    tool = called.tool
    key = ("schema", tool.namespace or "", tool.name)
    return names.note(key, lambda: compile_schema(tool.schema))


def _by_case(name: str, names: ToolNames) -> Called | None:
    folded = name.casefold()
    found = [called for key, called in names.declared().items() if key.casefold() == folded]
    return found[0] if len(found) == 1 else None
