"""Converts the JSON Schema dialects that agents send into one.

Gemini writes types in capitals and counts as strings. OpenAPI has `nullable`. Old drafts have a boolean
`exclusiveMinimum`. zod points `$ref` into the middle of the document. One pass turns all of that into plain
JSON Schema, so that no other module needs to know.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

Schema = dict[str, Any]

TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})

# Keywords whose value is one schema, a list of schemas, or a map of schemas. All other keywords hold data
# (an enum value, a default), which must never be read as a schema.
_ONE = frozenset(
    {
        "items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else",
        "additionalItems", "unevaluatedProperties", "unevaluatedItems",
    }
)  # fmt: skip
_MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items"})
_MAP = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_LIMITS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
# Type names of Python, other languages and databases: hand-written schemas have all of these.
_NAMES = {
    "number": "float double decimal real float32 float64 num numeric",
    "integer": "int int32 int64 long short uint bigint int8 int16",
    "boolean": "bool",
    "string": "str text char varchar date datetime date-time uuid uri url path enum",
    "array": "list tuple set sequence iterable",
    "object": "dict map mapping struct record json hash",
    "null": "none nonetype void",
}
_OTHER_NAMES = {name: type for type, names in _NAMES.items() for name in names.split()}
_DRAFT_4 = "draft-04"


def plain(parameters: Mapping[str, Any]) -> Schema:
    """The schema as plain JSON Schema. Every `$ref` points into `$defs` or `definitions`."""
    root = _schema(dict(parameters))
    if _DRAFT_4 in str(root.get("$schema", "")):
        del root["$schema"]  # the schema is modern now: a draft 4 validator would refuse it
    _gather_references(root)
    return root


def _schema(raw: Mapping[str, Any]) -> Schema:
    schema: Schema = {key: _keyword(key, value) for key, value in raw.items()}
    _lower_types(schema)
    _spell_out_nullable(schema)
    _modern_limits(schema)
    if not isinstance(schema.get("required", []), list):
        del schema["required"]  # draft 3 wrote `required: true` on the member itself
    return schema


def _keyword(key: str, value: Any) -> Any:
    if key in _MAP and isinstance(value, dict):
        entries = cast("dict[str, Any]", value)
        return {name: _maybe_schema(entry) for name, entry in entries.items()}
    if key in _MANY and isinstance(value, list):
        return [_maybe_schema(entry) for entry in cast("list[Any]", value)]
    if key in _ONE:
        return _maybe_schema(value)
    if key in _COUNTS and isinstance(value, str) and value.isdecimal():
        return int(value)  # Gemini's int64 fields travel as strings
    return value


def _maybe_schema(value: Any) -> Any:
    return _schema(cast("dict[str, Any]", value)) if isinstance(value, dict) else value


def _lower_types(schema: Schema) -> None:
    """Replace type names by those of JSON Schema. Unknown names are removed, so the other keywords count."""
    if "type" not in schema:
        return
    given = schema["type"]
    names = cast("list[Any]", given) if isinstance(given, list) else [given]
    if not all(isinstance(name, str) or name is None for name in names):
        return  # not a schema: `compile_schema` reports it
    known = [_type_name(name) for name in names]
    if given is None or not known or None in known:
        del schema["type"]
    else:
        schema["type"] = list(dict.fromkeys(known)) if isinstance(given, list) else known[0]


def _type_name(given: str | None) -> str | None:
    """
    >>> _type_name("STRING"), _type_name("float"), _type_name("List[str]"), _type_name("any")
    ('string', 'number', 'array', None)
    """
    if given is None:
        return "null"
    name = given.strip().lower().partition("[")[0].partition("<")[0]
    return name if name in TYPES else _OTHER_NAMES.get(name)


def _spell_out_nullable(schema: Schema) -> None:
    if schema.pop("nullable", None) is not True:
        return
    given = schema.get("type")
    if isinstance(given, str):
        schema["type"] = [given, "null"]
    enum = schema.get("enum")
    if isinstance(enum, list) and None not in enum:
        schema["enum"] = [*cast("list[Any]", enum), None]
    if given is None and "$ref" in schema:
        schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"type": "null"}]
    elif given is None and isinstance(schema.get("anyOf"), list):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]


def _modern_limits(schema: Schema) -> None:
    for exclusive, inclusive in _LIMITS:
        flag = schema.get(exclusive)
        if isinstance(flag, bool):
            del schema[exclusive]
            if flag and inclusive in schema:
                schema[exclusive] = schema.pop(inclusive)


def _gather_references(root: Schema) -> None:
    """Copy every target of a `$ref` into `$defs`, so that each part can be validated alone."""
    names: dict[str, str] = {}
    moved: dict[str, Any] = {}
    whole = {key: value for key, value in root.items() if key not in ("$defs", "definitions")}
    for holder in _reference_holders(root):
        pointer = holder["$ref"]
        if not _is_local(pointer):
            continue
        target = whole if pointer in ("#", "#/") else resolve(root, pointer)
        if target is not None:
            name = names.setdefault(pointer, f"dragoman-{len(names)}")
            moved[name] = target
            holder["$ref"] = f"#/$defs/{name}"
    if moved:
        root["$defs"] = {**root.get("$defs", {}), **moved}


def _is_local(pointer: Any) -> bool:
    if not isinstance(pointer, str) or not pointer.startswith("#"):
        return False
    return not pointer.startswith(("#/$defs/", "#/definitions/"))


def _reference_holders(node: Any) -> list[Schema]:
    found: list[Schema] = []
    todo: list[Any] = [node]
    while todo:
        here = todo.pop()
        if isinstance(here, dict):
            schema = cast("Schema", here)
            if isinstance(schema.get("$ref"), str):
                found.append(schema)
            todo.extend(schema.values())
        elif isinstance(here, list):
            todo.extend(cast("list[Any]", here))
    return found


def resolve(root: Schema, pointer: str) -> Any:
    """The target of a local JSON pointer (`#/$defs/Item`), or None."""
    here: Any = root
    for part in pointer[1:].strip("/").split("/"):
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict):
            here = cast("Schema", here).get(name)
        elif isinstance(here, list) and name.isdecimal() and int(name) < len(cast("Any", here)):
            here = cast("list[Any]", here)[int(name)]
        else:
            return None
    return here
