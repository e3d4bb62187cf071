"""JSON Schema for targets that do not take all of it. Only ever weakens: what was allowed stays allowed.

A target's `Dialect` is data: the keywords it knows. Everything else is left out, since an unknown keyword
makes some of them refuse the whole request (Gemini: `exclusiveMinimum`, `$schema`, `patternProperties`, …).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .fields import is_array, is_object

Schema = dict[str, Any]

# Keywords whose value is a schema, a list of schemas, or a map of schemas.
_ONE = frozenset({"items", "additionalProperties", "contains", "not", "propertyNames", "if", "then", "else"})
_MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})


class Dialect(msgspec.Struct, frozen=True):
    """What a target's schemas may say."""

    keywords: frozenset[str] | None = None
    """None: everything."""
    dropped: frozenset[str] = frozenset()
    root_dropped: frozenset[str] = frozenset()
    """Keywords that may not stand at the top (Anthropic: `anyOf` and its like)."""
    string_enums: bool = False
    """Enums of strings only; others are left out."""


EVERYTHING = Dialect(dropped=frozenset({"$schema"}))
ANTHROPIC = Dialect(root_dropped=frozenset({"anyOf", "oneOf", "allOf"}))
# What Gemini documents for `parametersJsonSchema` and `responseJsonSchema`.
GEMINI = Dialect(
    keywords=frozenset(
        "$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems "
        "minimum maximum anyOf oneOf properties additionalProperties required default "
        "propertyOrdering".split()
    ),
)


def sanitised(schema: Schema | None, dialect: Dialect, note: Callable[[str], None]) -> Schema:
    """`schema` in `dialect`, as an object schema; `note` is told each keyword that was left out."""
    result = _walk(schema or {}, dialect, note)
    for keyword in dialect.root_dropped & result.keys():
        del result[keyword]
        note(keyword)
    result.setdefault("type", "object")
    if result["type"] == "object":
        result.setdefault("properties", {})
    return result


def output_schema(schema: Schema | None, dialect: Dialect, note: Callable[[str], None]) -> Schema:
    """Like `sanitised`, for structured output: the root may be anything."""
    return _walk(schema or {}, dialect, note)


def _walk(schema: Schema, dialect: Dialect, note: Callable[[str], None]) -> Schema:
    result: Schema = {}
    for keyword, value in _equivalent(schema, dialect).items():
        if not _kept(keyword, value, dialect):
            note(keyword)
        elif keyword in _ONE and is_object(value):
            result[keyword] = _walk(value, dialect, note)
        elif keyword in _MANY and is_array(value):
            result[keyword] = [_walk_any(v, dialect, note) for v in value]
        elif keyword in _NAMED and is_object(value):
            result[keyword] = {k: _walk_any(v, dialect, note) for k, v in value.items()}
        else:
            result[keyword] = value
    # Without its patterns, `additionalProperties` would forbid what they allowed.
    if "patternProperties" in schema and "patternProperties" not in result:
        result.pop("additionalProperties", None)
    return result


def _equivalent(schema: Schema, dialect: Dialect) -> Schema:
    """The same schema in keywords the dialect is likelier to know."""
    keywords = dialect.keywords
    if keywords is None:
        return schema
    if "const" in schema and "const" not in keywords and "enum" not in schema:
        schema = {("enum" if k == "const" else k): ([v] if k == "const" else v) for k, v in schema.items()}
    if "definitions" in schema and "definitions" not in keywords and "$defs" not in schema:
        schema = {("$defs" if k == "definitions" else k): v for k, v in schema.items()}
    reference = schema.get("$ref")
    if isinstance(reference, str) and "definitions" not in keywords:
        schema = schema | {"$ref": reference.replace("#/definitions/", "#/$defs/")}
    return schema


def _walk_any(value: Any, dialect: Dialect, note: Callable[[str], None]) -> Any:
    return _walk(value, dialect, note) if is_object(value) else value


def _kept(keyword: str, value: Any, dialect: Dialect) -> bool:
    if keyword in dialect.dropped:
        return False
    if dialect.string_enums and keyword == "enum":
        return all(isinstance(v, str) for v in value)
    return dialect.keywords is None or keyword in dialect.keywords
