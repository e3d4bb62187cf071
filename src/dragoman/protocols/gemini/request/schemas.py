"""Gemini's `Schema` objects (OpenAPI: upper-case types, `nullable`) as JSON Schema.

Clients put either kind under either name: AI SDK 6 sends JSON Schema as `parameters`, Gemini CLI
sends upper-case types as `responseJsonSchema`. None of Gemini's own words means anything else in
JSON Schema, so one reading serves both.
"""

from __future__ import annotations

from typing import Any

from ...fields import Obj, is_array, is_object
from .keys import snake

_ONE = frozenset({"items", "additionalProperties"})
_MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "$defs"})
# 64-bit integers are strings in protobuf's JSON.
_COUNTS = frozenset({"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"})
_RENAMED = {"defs": "$defs", "ref": "$ref"} | {
    snake(key): key for key in _COUNTS | _MANY | {"additionalProperties", "propertyOrdering"}
}


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
    return value.lower() if isinstance(value, str) else value


def _numeric_enum(schema: Obj) -> None:
    """Gemini writes the values of an integer enum as strings: `{type: INTEGER, enum: ["101"]}`."""
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
