"""Adapt JSON Schemas to upstreams that support only a part of JSON Schema.

Adapting only weakens a schema: every value that it allowed stays allowed. The answer is checked against the
client's original schema anyway. A `Dialect` lists the keywords that an upstream supports. All others are
removed, because Gemini refuses the whole request for an unknown keyword (`exclusiveMinimum`, `$schema`,
`patternProperties`, …).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Annotated, Any

import msgspec

from .fields import is_array, is_object
from .notices import Notices

Schema = dict[str, Any]

_OBJECT = msgspec.Raw(b'"object"')
_ABSENT = msgspec.Raw()
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode = msgspec.json.Decoder(dict[str, Any]).decode

# Keywords whose value is a schema, a list of schemas, or a map of schemas.
_ONE = frozenset({"items", "additionalProperties", "contains", "not", "propertyNames", "if", "then", "else"})
_MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})


_NESTING = _ONE | _MANY | _NAMED

ANNOTATIONS = frozenset({"$schema", "$comment"})
"""Keywords without effect on validation: removing them needs no notice."""


class SchemaDialect(msgspec.Struct, frozen=True):
    """The part of JSON Schema that an upstream supports."""

    keywords: frozenset[str] | None = None
    """The supported keywords. None: all."""
    dropped: frozenset[str] = frozenset()
    root_dropped: frozenset[str] = frozenset()
    """Keywords that are not supported at the top level (Anthropic: `anyOf`, `oneOf`, `allOf`)."""
    lists_have_items: bool = False
    """A schema of an array must say what its items are."""
    string_enums: bool = False
    """Only enums of strings are supported; others are removed."""
    check: Callable[[msgspec.Raw], Any] | None = None
    """Raises `msgspec.ValidationError` for a schema that may need a change. Needs no decoded schema."""

    @property
    def drops_annotations(self) -> bool:
        """Does the dialect remove `$schema`?"""
        return "$schema" in self.dropped or (self.keywords is not None and "$schema" not in self.keywords)

    def changes(self, schema: Schema) -> bool:
        """Does the dialect change a keyword of this schema itself (not of nested ones)?"""
        return (
            not self.dropped.isdisjoint(schema)
            or (self.string_enums and "enum" in schema)
            or self.lacks_items(schema)
        )

    def lacks_items(self, schema: Schema) -> bool:
        """Is this the schema of an array that must say what its items are, and does not?"""
        if not self.lists_have_items or "items" in schema:
            return False
        kind = schema.get("type")
        return kind == "array" or (is_array(kind) and "array" in kind)


EVERYTHING = SchemaDialect(dropped=frozenset({"$schema"}))
# OpenAI rejects these keywords at the top level of a function's parameters, and arrays without `items`
# anywhere ("array schema missing items").
OPENAI = SchemaDialect(
    dropped=frozenset({"$schema"}),
    lists_have_items=True,
    root_dropped=frozenset({"anyOf", "oneOf", "allOf", "enum", "not"}),
)
# Anthropic answers 400 to these keywords at the top level of `input_schema`.
ANTHROPIC = SchemaDialect(root_dropped=frozenset({"anyOf", "oneOf", "allOf"}))


class _GeminiSchema(
    msgspec.Struct,
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,
    rename={
        "id": "$id",
        "defs": "$defs",
        "ref": "$ref",
        "anchor": "$anchor",
        "prefix": "prefixItems",
        "least": "minItems",
        "most": "maxItems",
        "any": "anyOf",
        "one": "oneOf",
        "additional": "additionalProperties",
        "ordering": "propertyOrdering",
    },
):
    """The keywords that Gemini documents for `parametersJsonSchema` and `responseJsonSchema`."""

    id: msgspec.Raw = _ABSENT
    defs: dict[str, _GeminiSchema] | None = None
    ref: Annotated[str, msgspec.Meta(pattern="^(?!.*#/definitions/)")] | None = None
    anchor: msgspec.Raw = _ABSENT
    type: msgspec.Raw = _ABSENT
    format: msgspec.Raw = _ABSENT
    title: msgspec.Raw = _ABSENT
    description: msgspec.Raw = _ABSENT
    enum: msgspec.Raw = _ABSENT
    items: _GeminiSchema | bool | None = None
    prefix: list[_GeminiSchema] | None = None
    least: msgspec.Raw = _ABSENT
    most: msgspec.Raw = _ABSENT
    minimum: msgspec.Raw = _ABSENT
    maximum: msgspec.Raw = _ABSENT
    any: list[_GeminiSchema] | None = None
    one: list[_GeminiSchema] | None = None
    properties: dict[str, _GeminiSchema] | None = None
    additional: _GeminiSchema | bool | None = None
    required: msgspec.Raw = _ABSENT
    default: msgspec.Raw = _ABSENT
    ordering: msgspec.Raw = _ABSENT


class _GeminiRoot(_GeminiSchema, frozen=True, gc=False, rename={"schema": "$schema"}):
    """The top-level schema. Many clients put `$schema` there."""

    schema: msgspec.Raw = _ABSENT


GEMINI = SchemaDialect(
    keywords=frozenset(_GeminiSchema.__struct_encode_fields__),
    check=msgspec.json.Decoder(_GeminiRoot).decode,
)


def sanitised(
    schema: Schema | msgspec.Raw | None, dialect: SchemaDialect, note: Callable[[str], None]
) -> Schema:
    """Adapt `schema` to `dialect`, as an object schema. Calls `note` with each removed keyword.

    If an undecoded schema needs no change, its members stay undecoded.
    """
    if isinstance(schema, msgspec.Raw):
        unchanged = _unchanged(schema, dialect)
        if unchanged is not None:
            return _as_object(unchanged)
        schema = _decode(schema)
    result = dict(_walk(schema or {}, dialect, note))
    # Iterate in the schema's order: the order of a set differs between processes, and notices must not.
    dropped = [keyword for keyword in result if keyword in dialect.root_dropped]
    if dropped:  # without the branches, `unevaluatedProperties` would forbid what they allowed
        dropped += [keyword for keyword in result if keyword.startswith("unevaluated")]
    for keyword in dropped:
        del result[keyword]
        note(keyword)
    return _as_object(result)


def _unchanged(schema: msgspec.Raw, dialect: SchemaDialect) -> Schema | None:
    """The members of a schema that loses only top-level annotations; None if it needs more changes."""
    members: Schema = _members(schema)
    if not dialect.root_dropped.isdisjoint(members):
        return None
    if dialect.check is not None:
        try:
            dialect.check(schema)
        except msgspec.ValidationError:
            return None
    elif dialect.keywords is not None or dialect.string_enums or _drops_below(schema, members, dialect):
        return None
    if dialect.lists_have_items and _lacks_items(bytes(schema), dialect):
        return None
    if dialect.drops_annotations:
        members.pop("$schema", None)
    return members


def _drops_below(schema: msgspec.Raw, members: Schema, dialect: SchemaDialect) -> bool:
    """May a nested schema contain a keyword that the dialect removes? An escaped `$` counts as yes."""
    if not dialect.dropped:
        return False
    data = bytes(schema)
    if b"$" not in data and b"\\u0024" not in data:  # all keywords in `dropped` begin with `$`
        return False
    at_top = (data.count(keyword.encode()) > (keyword in members) for keyword in dialect.dropped)
    return b"\\u0024" in data or any(at_top)


@lru_cache(maxsize=1024)  # an agent declares the same tools in every request
def _lacks_items(data: bytes, dialect: SchemaDialect) -> bool:
    """Does this schema, or one below it, lack the items of an array?"""
    if b"array" not in data:
        return False
    schema = _decode(data)
    return _walk(schema, dialect, no_loss) != schema


def complete(schema: Schema | msgspec.Raw | None) -> Schema:
    """`schema` as an object schema with all its keywords except `$schema`. Members may stay undecoded."""
    return sanitised(schema, EVERYTHING, no_loss)


def no_loss(keyword: str) -> None:
    """A `note` for `EVERYTHING`: it removes only `$schema`, which has no effect on validation."""


def _as_object(schema: Schema) -> Schema:
    """Add the members that the schema of a function's parameters must have: `type` and `properties`."""
    given = schema.setdefault("type", "object")
    if isinstance(given, msgspec.Raw) and given != _OBJECT:
        given = msgspec.json.decode(given)
    if is_array(given) and "object" in given:
        schema["type"] = "object"  # arguments are always an object, and upstreams refuse a list here
    if schema["type"] in ("object", _OBJECT):
        schema.setdefault("properties", {})
    return schema


def output_schema(schema: Schema | None, dialect: SchemaDialect, note: Callable[[str], None]) -> Schema:
    """Like `sanitised`, for structured output: the top level need not be an object."""
    return _walk(schema or {}, dialect, note)


def warn_dropped(keywords: Iterable[str], path: str, notices: Notices) -> None:
    """Add one notice for all keywords that the schema at `path` lost."""
    lost = [keyword for keyword in dict.fromkeys(keywords) if keyword not in ANNOTATIONS]
    if lost:
        message = f"the upstream does not support {', '.join(lost)} in this schema"
        notices.warn("schema-keyword-dropped", path, message)


def strict_ready(schema: Any) -> bool:
    """OpenAI's condition for `strict`: objects are closed, all properties required."""
    if is_array(schema):
        return all(strict_ready(item) for item in schema)
    if not is_object(schema):
        return True
    properties = schema.get("properties")
    named = properties if is_object(properties) else {}
    if schema.get("type") == "object" or is_object(properties):
        required = schema.get("required")
        closed = schema.get("additionalProperties") is False
        if not closed or set(named) != set(required if is_array(required) else ()):
            return False
    below: list[Any] = [*named.values(), schema.get("items"), schema.get("anyOf")]
    for key in ("$defs", "definitions"):
        defined = schema.get(key)
        below += defined.values() if is_object(defined) else ()
    return all(map(strict_ready, below))


def _walk(schema: Schema, dialect: SchemaDialect, note: Callable[[str], None]) -> Schema:
    if dialect.keywords is None and _NESTING.isdisjoint(schema) and not dialect.changes(schema):
        return schema
    result: Schema = {}
    for keyword, value in _equivalent(schema, dialect).items():
        if not _kept(keyword, value, dialect):
            note(keyword)
        elif keyword in _ONE and is_object(value):
            result[keyword] = _walk(value, dialect, note)
        elif keyword == "oneOf" and is_array(value):
            _put_alternatives(result, value, "anyOf" not in schema, dialect, note)
        elif keyword in _MANY and is_array(value):
            result[keyword] = [_walk_any(v, dialect, note) for v in value]
        elif keyword in _NAMED and is_object(value):
            result[keyword] = {k: _walk_any(v, dialect, note) for k, v in value.items()}
        else:
            result[keyword] = value
    if dialect.lacks_items(schema):
        result["items"] = {}
    # Without `patternProperties`, `additionalProperties` would forbid what the patterns allowed.
    if "patternProperties" in schema and "patternProperties" not in result:
        result.pop("additionalProperties", None)
    return result


def _put_alternatives(
    result: Schema, alternatives: list[Any], free: bool, dialect: SchemaDialect, note: Callable[[str], None]
) -> None:
    """Write a `oneOf`. If its branches were weakened, a value may fit two of them: then write `anyOf`."""
    lost: list[str] = []
    written = [_walk_any(v, dialect, lost.append) for v in alternatives]
    for keyword in lost:
        note(keyword)
    if not lost or set(lost) <= ANNOTATIONS:
        result["oneOf"] = written
    elif free:  # `anyOf` is not taken
        result["anyOf"] = written
    else:
        note("oneOf")


def _equivalent(schema: Schema, dialect: SchemaDialect) -> Schema:
    """Rewrite `const` and `definitions` with keywords that more dialects support: `enum` and `$defs`."""
    keywords = dialect.keywords
    if keywords is None:
        return schema
    if "const" in schema and "const" not in keywords and "enum" not in schema:
        schema = {("enum" if k == "const" else k): ([v] if k == "const" else v) for k, v in schema.items()}
    if is_object(schema.get("definitions")) and "definitions" not in keywords:
        both = schema["definitions"] | (schema.get("$defs") or {})
        schema = {k: v for k, v in schema.items() if k != "definitions"} | {"$defs": both}
    reference = schema.get("$ref")
    if isinstance(reference, str) and "definitions" not in keywords:
        schema = schema | {"$ref": reference.replace("#/definitions/", "#/$defs/")}
    return schema


def _walk_any(value: Any, dialect: SchemaDialect, note: Callable[[str], None]) -> Any:
    return _walk(value, dialect, note) if is_object(value) else value


def _kept(keyword: str, value: Any, dialect: SchemaDialect) -> bool:
    if keyword in dialect.dropped:
        return False
    if dialect.string_enums and keyword == "enum":
        return all(isinstance(v, str) for v in value)
    return dialect.keywords is None or keyword in dialect.keywords
