"""The schema of a client's tool, compiled once and cached by content.

`ToolSchema` validates arguments with a complete validator. `Node` is a resolved view of one place in the
schema: the rules walk along it with the value and ask what the schema allows there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import Any, cast

import jsonschema_rs
import msgspec

from .schema_dialects import TYPES, Schema, plain, resolve

# More tools than any agent declares. The bound keeps a hostile client from filling memory.
_MAX_CACHED = 1024
_MAX_PROBLEMS = 20
_MAX_REFERENCES = 32  # a chain of `$ref`s may be a circle

# If a node has only these keywords, its type alone decides.
_TYPE_ONLY = frozenset({"type", "description", "title", "default", "examples", "$comment"})
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float, Decimal),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


class Problem(msgspec.Struct, frozen=True):
    """One way in which a value does not fit its schema."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class Node:
    """One place in a schema: references resolved, `allOf` folded in."""

    def __init__(self, raw: Any, root: Schema) -> None:
        self._root = root
        self.schema: Schema = _fold(raw, root)
        self.refuses_all = raw is False
        self._members: dict[str, Node] = {}

    @cached_property
    def types(self) -> frozenset[str] | None:
        """The JSON types that are allowed here. None: any type."""
        given = self.schema.get("type")
        names = cast("list[Any]", [given] if isinstance(given, str) else given or [])
        known = frozenset(name for name in names if isinstance(name, str) and name in TYPES)
        if known:
            return known
        if self.choices is not None:
            return frozenset(type_name(choice) for choice in self.choices)
        return self._types_of_options()

    def _types_of_options(self) -> frozenset[str] | None:
        if not self.options:
            return frozenset({"object"}) if "properties" in self.schema else None
        found: set[str] = set()
        for option in self.options:
            if option.types is None:
                return None
            found |= option.types
        return frozenset(found)

    def wants(self, *names: str) -> bool:
        """Whether the schema names one of these types."""
        return self.types is not None and not self.types.isdisjoint(names)

    @cached_property
    def choices(self) -> tuple[Any, ...] | None:
        """The values of `enum` or `const`. None if the schema has neither."""
        if "const" in self.schema:
            return (self.schema["const"],)
        enum = self.schema.get("enum")
        return tuple(cast("list[Any]", enum)) if isinstance(enum, list) else None

    @cached_property
    def options(self) -> tuple[Node, ...]:
        """The alternatives of `anyOf` or `oneOf`."""
        for word in ("anyOf", "oneOf"):
            branches = self.schema.get(word)
            if isinstance(branches, list):
                return tuple(Node(branch, self._root) for branch in cast("list[Any]", branches))
        return ()

    @cached_property
    def properties(self) -> dict[str, Any]:
        """The declared members, by name."""
        found = self.schema.get("properties")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    @cached_property
    def required(self) -> frozenset[str]:
        names = self.schema.get("required")
        if not isinstance(names, list):
            return frozenset()
        return frozenset(name for name in cast("list[Any]", names) if isinstance(name, str))

    @cached_property
    def closed(self) -> bool:
        """Whether undeclared members are forbidden."""
        if self.schema.get("patternProperties"):
            return False
        words = ("additionalProperties", "unevaluatedProperties")
        return any(self.schema.get(word) is False for word in words)

    def member(self, name: str) -> Node:
        """The node of one member of an object."""
        if name not in self.properties:
            return self._extra
        found = self._members.get(name)
        if found is None:
            found = self._members[name] = Node(self.properties[name], self._root)
        return found

    @cached_property
    def _extra(self) -> Node:
        return Node(self.schema.get("additionalProperties", True), self._root)

    @cached_property
    def items(self) -> Node:
        """The node of the items of an array."""
        return Node(self.schema.get("items", True), self._root)

    @cached_property
    def takes_any_text(self) -> bool:
        """Whether every string is allowed here, so that a string can stream without being held.

        Patterns, formats and lengths do not count: no rule mends them, so holding would not help.
        """
        if self.refuses_all or self.choices is not None:
            return False
        if not self.schema.keys().isdisjoint(("not", "if")):
            return False
        if self.options and not any(option.takes_any_text for option in self.options):
            return False
        return self.types is None or "string" in self.types

    @cached_property
    def _decided_by_type(self) -> bool:
        return not self.refuses_all and self.schema.keys() <= _TYPE_ONLY

    @cached_property
    def _validator(self) -> Any:
        shared = {
            word: self._root[word] for word in ("$schema", "$defs", "definitions") if word in self._root
        }
        return _validator({**shared, "allOf": [False if self.refuses_all else self.schema]})

    def fits(self, value: Any) -> bool:
        """Whether the value is allowed here."""
        if self._decided_by_type:
            return self.types is None or has_type(value, self.types)
        return _is_valid(self._validator, value)


class ToolSchema:
    """The parameters of a tool."""

    def __init__(self, raw: Mapping[str, Any] | None, note: str = "") -> None:
        schema = dict(raw or {})
        self.note = note  # why the schema could not be compiled: it then accepts everything
        self.root = Node(schema, schema)
        self._compiled = _validator(schema) if schema else None

    @property
    def properties(self) -> dict[str, Any]:
        return self.root.properties

    @property
    def required(self) -> frozenset[str]:
        return self.root.required

    def fits(self, value: Any) -> bool:
        """Whether these arguments fit the schema."""
        return self._compiled is None or _is_valid(self._compiled, value)

    def validate(self, value: Any) -> tuple[Problem, ...]:
        """The problems of these arguments. Empty if they fit."""
        if self.fits(value):
            return ()
        found: list[Problem] = []
        for error in _errors(self._compiled, value):
            path = "".join(f"/{part}" for part in error.instance_path)
            found.append(Problem(path, str(error.message)[:400]))
            if len(found) == _MAX_PROBLEMS:
                break
        return tuple(found)


def compile_schema(parameters: Mapping[str, Any] | None) -> ToolSchema:
    """The compiled schema of a tool. The same content gives the same object.

    Never raises: a schema that cannot be compiled accepts everything, and its `note` says why.
    """
    if not parameters:
        return _ANYTHING
    try:
        return _compile(_content(parameters))
    except (TypeError, ValueError, RecursionError) as error:
        return ToolSchema(None, note=f"not a JSON Schema: {error}")


def _content(parameters: Mapping[str, Any]) -> bytes | str:
    """The schema as JSON: the cache key."""
    try:
        return msgspec.json.encode(parameters)
    except (TypeError, ValueError):  # half a surrogate pair, or keys that are not strings
        return json.dumps(parameters)


@lru_cache(maxsize=_MAX_CACHED)
def _compile(text: bytes | str) -> ToolSchema:
    try:
        schema = plain(json.loads(text))
    except (RecursionError, AttributeError) as error:
        return ToolSchema(None, note=f"not a JSON Schema: {error}")
    note = ""
    for attempt in (schema, {key: value for key, value in schema.items() if key != "$schema"}):
        try:
            return ToolSchema(attempt)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
            note = str(error).partition("\n")[0]
    return ToolSchema(None, note=note)


def type_name(value: Any) -> str:
    """The JSON Schema type of a parsed value."""
    if isinstance(value, bool):
        return "boolean"
    for name in ("string", "integer", "number", "array", "object"):
        if isinstance(value, _PYTHON_TYPES[name]):
            return name
    return "null"


def has_type(value: Any, names: Iterable[str]) -> bool:
    """Whether the value is written as one of these types. 10.0 is not written as an integer."""
    if isinstance(value, bool):
        return "boolean" in names
    return any(isinstance(value, _PYTHON_TYPES[name]) for name in names if name != "boolean")


def _fold(raw: Any, root: Schema) -> Schema:
    schema: Schema = dict(cast("Schema", raw)) if isinstance(raw, dict) else {}
    for _ in range(_MAX_REFERENCES):
        pointer = schema.pop("$ref", None)
        target = resolve(root, pointer) if isinstance(pointer, str) else None
        if isinstance(target, dict):
            schema = {**cast("Schema", target), **schema}
            continue
        parts = schema.pop("allOf", None)
        if not isinstance(parts, list):
            break
        for part in cast("list[Any]", parts):
            _merge(schema, part)
    return schema


def _merge(schema: Schema, part: Any) -> None:
    """Merge one branch of `allOf`: members and required names add up, and existing keywords win."""
    for key, value in cast("Schema", part if isinstance(part, dict) else {}).items():
        if key in ("properties", "$defs"):
            schema[key] = {**value, **schema.get(key, {})}
        elif key in ("required", "allOf"):
            schema[key] = [*schema.get(key, []), *value]
        else:
            schema.setdefault(key, value)


def _validator(schema: Schema) -> Any:
    # `offline`: otherwise jsonschema-rs fetches a remote `$ref` in the middle of a stream.
    return jsonschema_rs.validator_for(schema, offline=True, validate_formats=False)


def _is_valid(validator: Any, value: Any) -> bool:
    try:
        return bool(validator.is_valid(value))
    except ValueError:  # nested deeper than the validator goes, or half a surrogate pair
        return True


def _errors(validator: Any, value: Any) -> Iterable[Any]:
    try:
        return cast("Iterable[Any]", validator.iter_errors(value))
    except ValueError:  # as above
        return ()


_ANYTHING = ToolSchema(None)
