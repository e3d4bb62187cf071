"""Convert Gemini's `Schema` objects (OpenAPI: upper-case types, `nullable`) to JSON Schema.

Clients use both kinds under both names: AI SDK 6 sends JSON Schema as `parameters`, Gemini CLI sends
upper-case types as `responseJsonSchema`. No keyword of Gemini has another meaning in JSON Schema, so one
function reads both.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ...common import typed_json
from ...common.fields import Obj, is_array, is_object, reject
from .keys import snake

_ONE = frozenset({"items", "additionalProperties"})
_MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "$defs"})
# Protobuf's JSON writes 64-bit integers as strings.
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
# Older SDKs for Vertex AI write enums as numbers (`$alt=json;enum-encoding=int`).
_NUMBERED = ("type_unspecified", "string", "number", "integer", "boolean", "array", "object", "null")
_RENAMED = {"defs": "$defs", "ref": "$ref"} | {
    snake(key): key for key in _COUNTS | _MANY | {"additionalProperties", "propertyOrdering"}
}


_Type = Literal["string", "number", "integer", "boolean", "array", "object", "null"]
# Keywords of a `Schema` that JSON Schema does not have. A schema with one of them is not a `_JsonSchema`.
_OwnMembers = msgspec.defstruct(
    "_OwnMembers",
    [(key, msgspec.UnsetType, msgspec.UNSET) for key in (*_RENAMED, "nullable", "example")],
    frozen=True,
    gc=False,
)


class _JsonSchema(
    _OwnMembers,
    frozen=True,
    gc=False,
    rename={
        "ref_": "$ref",
        "defs_": "$defs",
        "additional": "additionalProperties",
        "any": "anyOf",
        "one": "oneOf",
        "all": "allOf",
        "prefix": "prefixItems",
        "least_items": "minItems",
        "most_items": "maxItems",
        "least_length": "minLength",
        "most_length": "maxLength",
        "least_properties": "minProperties",
        "most_properties": "maxProperties",
    },
):
    """A schema that `json_schema` does not change."""

    type: _Type | list[_Type] = "null"
    format: Annotated[str, msgspec.Meta(pattern="^(?!enum$)")] | None = None
    enum: list[float | bool | None] | None = None
    """No strings, because they may mean integers."""
    ref_: Annotated[str, msgspec.Meta(pattern="^(?!.*#/defs/)")] | None = None
    defs_: dict[str, _JsonSchema] | None = None
    properties: dict[str, _JsonSchema] | None = None
    items: _JsonSchema | bool | None = None
    additional: _JsonSchema | bool | None = None
    any: list[_JsonSchema] | None = None
    one: list[_JsonSchema] | None = None
    all: list[_JsonSchema] | None = None
    prefix: list[_JsonSchema] | None = None
    least_items: float | None = None
    most_items: float | None = None
    least_length: float | None = None
    most_length: float | None = None
    least_properties: float | None = None
    most_properties: float | None = None


_check = msgspec.json.Decoder(_JsonSchema).decode


def read_schema(raw: msgspec.Raw, where: str) -> Obj | msgspec.Raw:
    """Read the schema at `where` as JSON Schema. It stays undecoded if it needs no conversion."""
    try:
        return raw if _is_json_schema(raw) else json_schema(typed_json.value(raw, where))
    except RecursionError:
        reject("is nested too deeply", where)


def _is_json_schema(raw: msgspec.Raw) -> bool:
    try:
        _check(raw)
    except msgspec.ValidationError:
        return False
    return True


def json_schema(schema: Obj) -> Obj:
    """
    >>> json_schema({"type": "STRING", "nullable": True})
    {'type': ['string', 'null']}
    >>> json_schema({"type": "ARRAY", "min_items": "1", "items": {"type": "INTEGER"}})
    {'type': 'array', 'minItems': 1, 'items': {'type': 'integer'}}
    """
    result: Obj = {}
    for spelled, value in schema.items():
        key = _RENAMED.get(spelled, spelled)
        result[key] = _converted(key, value)
    if result.get("type") in (None, "type_unspecified"):
        result.pop("type", None)
    # Only Gemini has this format. JSON Schema has `enum` without a format.
    if result.get("format") == "enum":
        del result["format"]
    if "example" in result:
        result.setdefault("examples", [result["example"]])
        del result["example"]
    _numeric_enum(result)
    _nullable(result)
    return result


def _converted(key: str, value: Any) -> Any:
    if key == "type":
        return _lowered(value)
    if key == "$ref" and isinstance(value, str):
        return value.replace("#/defs/", "#/$defs/")
    if key in _COUNTS and isinstance(value, str) and value.isdecimal():
        return int(value)
    if key in _MANY and is_array(value):
        return [_nested(v) for v in value]
    if key in _NAMED and is_object(value):
        return {name: _nested(v) for name, v in value.items()}
    return _nested(value) if key in _ONE else value


def _nested(value: Any) -> Any:
    return json_schema(value) if is_object(value) else value


def _lowered(value: Any) -> Any:
    if is_array(value):
        return [_lowered(v) for v in value]
    if isinstance(value, int) and 0 <= value < len(_NUMBERED):
        return _NUMBERED[value]
    return value.lower() if isinstance(value, str) else value


def _numeric_enum(schema: Obj) -> None:
    """Convert an integer enum, whose values Gemini writes as strings: `{type: INTEGER, enum: ["101"]}`."""
    values = schema.get("enum")
    if schema.get("type") == "integer" and is_array(values):
        schema["enum"] = [_as_int(v) for v in values]


def _as_int(value: Any) -> Any:
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _nullable(schema: Obj) -> None:
    if schema.pop("nullable", None) is not True:
        return
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = [kind, "null"]
        values = schema.get("enum")
        if is_array(values) and None not in values:
            schema["enum"] = [*values, None]
    elif is_array(schema.get("anyOf")):
        schema["anyOf"] = [*schema["anyOf"], {"type": "null"}]
