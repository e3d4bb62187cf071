"""The declared tools: finds the tool for a name as the model spells it, and the types of its parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

_INDEX = re.compile(r":\d+$")  # Kimi: functions.get_weather:0
_SEGMENT = re.compile(r"[.:/]")
_REF = "#/"
_MAX_DEPTH = 8  # a schema may contain itself by `$ref`
# Type names that clients write although JSON Schema does not have them.
_ALIASES = {
    "float": "number",
    "double": "number",
    "int": "integer",
    "long": "integer",
    "bool": "boolean",
    "str": "string",
    "list": "array",
    "dict": "object",
}

Schema = Mapping[str, Any]


class Subschema(msgspec.Struct, frozen=True):
    """The schema of one value inside a tool's parameters."""

    schema: Any
    root: Schema

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that the schema allows. Empty if the schema names none."""
        return frozenset(name for part in _parts(self.schema, self.root, 0) for name in _own_types(part))

    def member(self, key: str) -> Subschema | None:
        for part in _parts(self.schema, self.root, 0):
            if key in (declared := _mapping(part.get("properties"))):
                return Subschema(declared[key], self.root)
        return self._first("additionalProperties")

    @property
    def keys(self) -> frozenset[str]:
        """The names of the declared members."""
        parts = _parts(self.schema, self.root, 0)
        return frozenset(key for part in parts for key in _mapping(part.get("properties")))

    @property
    def required(self) -> frozenset[str]:
        """The names of the members that must be there."""
        parts = _parts(self.schema, self.root, 0)
        return frozenset(str(key) for part in parts for key in part.get("required") or ())

    @property
    def item(self) -> Subschema | None:
        """The schema of an array's items."""
        return self._first("items")

    def _first(self, keyword: str) -> Subschema | None:
        for part in _parts(self.schema, self.root, 0):
            if isinstance(found := part.get(keyword), Mapping):
                return Subschema(found, self.root)
        return None


class Catalog:
    """The tools that the client declared."""

    __slots__ = ("_folded", "_originals", "_tools")

    def __init__(
        self, tools: Mapping[str, Schema | None], originals: Mapping[str, str] | None = None
    ) -> None:
        self._tools = tools
        # The client's names of tools that have another name at the upstream: `weather.get`.
        self._originals = originals or {}
        self._folded: dict[str, list[str]] = {}
        for name in tools:
            self._folded.setdefault(name.casefold(), []).append(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def has_prefix(self, start: str) -> bool:
        """Whether the name of a tool begins with `start`."""
        return any(name.startswith(start) for name in self._tools)

    def resolve(self, name: str) -> str | None:
        """The only declared tool that `name` can mean. None if there is no tool, or more than one."""
        bare = _INDEX.sub("", name.strip())
        last = _SEGMENT.split(bare)[-1]  # functions.Read, default_api:Read
        for spelling in (name, bare, last):
            if spelling in self._tools:
                return spelling
            if original := self._originals.get(spelling):
                return original
        for spelling in (bare.casefold(), last.casefold()):
            if same := self._folded.get(spelling):
                return same[0] if len(same) == 1 else None
        return self._by_suffix(last.casefold())

    def _by_suffix(self, name: str) -> str | None:
        """Models drop the server's prefix of a tool: `search` for `mcp__docs__search`."""
        ending = "__" + name
        found = [names for folded, names in self._folded.items() if folded.endswith(ending)]
        return found[0][0] if name and len(found) == 1 and len(found[0]) == 1 else None

    def parameters(self, tool: str) -> Subschema:
        """The schema of a tool's arguments."""
        schema = self._tools.get(tool) or {}
        return Subschema(schema, schema)

    def types(self, tool: str, parameter: str) -> frozenset[str] | None:
        """The JSON types that a parameter allows. None if the parameter is not declared."""
        schema = self.parameters(tool)
        member = schema.member(parameter) if parameter in schema.keys else None
        return member.types if member is not None else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _parts(schema: Any, root: Schema, depth: int) -> Iterator[Mapping[str, Any]]:
    """The schema, and all schemas that it refers to or combines."""
    here = _mapping(schema)
    if depth > _MAX_DEPTH:
        return
    yield here
    ref = here.get("$ref")
    if isinstance(ref, str) and ref.startswith(_REF):
        yield from _parts(_referred(ref, root), root, depth + 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for branch in here.get(keyword) or ():
            yield from _parts(branch, root, depth + 1)


def _own_types(schema: Mapping[str, Any]) -> Iterator[str]:
    named = schema.get("type")
    for name in [named] if isinstance(named, str) else named or ():
        lower = str(name).lower()  # Gemini writes STRING
        yield _ALIASES.get(lower, lower)
    if schema.get("nullable") is True:
        yield "null"
    if named is None and any(isinstance(value, str) for value in schema.get("enum") or ()):
        yield "string"


def _referred(ref: str, root: Schema) -> Any:
    here: Any = root
    for step in ref[len(_REF) :].split("/"):
        here = _mapping(here).get(step)
    return here
