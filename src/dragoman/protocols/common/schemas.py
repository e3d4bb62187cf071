"""JSON Schema for targets that do not take all of it. Only ever weakens: what was allowed stays allowed.

A target's `Dialect` is data: the keywords it knows. Everything else is left out, since an unknown keyword
makes some of them refuse the whole request (Gemini: `exclusiveMinimum`, `$schema`, `patternProperties`, …).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any

import msgspec

from .fields import is_array, is_object
from .notices import Notices

Schema = dict[str, Any]

_OBJECT = msgspec.Raw(b'"object"')
_UNSAID = msgspec.Raw()
_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode = msgspec.json.Decoder(dict[str, Any]).decode

# Keywords whose value is a schema, a list of schemas, or a map of schemas.
_ONE = frozenset({"items", "additionalProperties", "contains", "not", "propertyNames", "if", "then", "else"})
_MANY = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NAMED = frozenset({"properties", "$defs", "definitions", "patternProperties", "dependentSchemas"})


_NESTING = _ONE | _MANY | _NAMED

ANNOTATIONS = frozenset({"$schema", "$comment"})
"""Nobody validates by them, so leaving them out is no loss."""


class Dialect(msgspec.Struct, frozen=True):
    """What a target's schemas may say."""

    keywords: frozenset[str] | None = None
    """None: everything."""
    dropped: frozenset[str] = frozenset()
    root_dropped: frozenset[str] = frozenset()
    """Keywords that may not stand at the top (Anthropic: `anyOf` and its like)."""
    string_enums: bool = False
    """Enums of strings only; others are left out."""
    check: Callable[[msgspec.Raw], Any] | None = None
    """Raises `msgspec.ValidationError` for a schema that the dialect may have to change."""

    @property
    def drops_annotations(self) -> bool:
        """Does it leave out `$schema`?"""
        return "$schema" in self.dropped or (self.keywords is not None and "$schema" not in self.keywords)

    def drops(self, schema: Schema) -> bool:
        """Does it leave out any keyword of this very schema?"""
        return not self.dropped.isdisjoint(schema) or (self.string_enums and "enum" in schema)


EVERYTHING = Dialect(dropped=frozenset({"$schema"}))
# A function's parameters may not branch at the top of a Responses tool.
RESPONSES = Dialect(
    dropped=frozenset({"$schema"}),
    root_dropped=frozenset({"anyOf", "oneOf", "allOf", "enum", "not"}),
)
ANTHROPIC = Dialect(root_dropped=frozenset({"anyOf", "oneOf", "allOf"}))


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

    id: msgspec.Raw = _UNSAID
    defs: dict[str, _GeminiSchema] | None = None
    ref: Annotated[str, msgspec.Meta(pattern="^(?!.*#/definitions/)")] | None = None
    anchor: msgspec.Raw = _UNSAID
    type: msgspec.Raw = _UNSAID
    format: msgspec.Raw = _UNSAID
    title: msgspec.Raw = _UNSAID
    description: msgspec.Raw = _UNSAID
    enum: msgspec.Raw = _UNSAID
    items: _GeminiSchema | bool | None = None
    prefix: list[_GeminiSchema] | None = None
    least: msgspec.Raw = _UNSAID
    most: msgspec.Raw = _UNSAID
    minimum: msgspec.Raw = _UNSAID
    maximum: msgspec.Raw = _UNSAID
    any: list[_GeminiSchema] | None = None
    one: list[_GeminiSchema] | None = None
    properties: dict[str, _GeminiSchema] | None = None
    additional: _GeminiSchema | bool | None = None
    required: msgspec.Raw = _UNSAID
    default: msgspec.Raw = _UNSAID
    ordering: msgspec.Raw = _UNSAID


class _GeminiRoot(_GeminiSchema, frozen=True, gc=False, rename={"schema": "$schema"}):
    """The schema at the top. Many clients say there which JSON Schema it is."""

    schema: msgspec.Raw = _UNSAID


GEMINI = Dialect(
    keywords=frozenset(_GeminiSchema.__struct_encode_fields__),
    check=msgspec.json.Decoder(_GeminiRoot).decode,
)


def sanitised(schema: Schema | msgspec.Raw | None, dialect: Dialect, note: Callable[[str], None]) -> Schema:
    """`schema` in `dialect`, as an object schema; `note` is told each keyword that was left out.

    The members of a schema that was not decoded, and that need not be changed, stay undecoded.
    """
    if isinstance(schema, msgspec.Raw):
        unchanged = _unchanged(schema, dialect)
        if unchanged is not None:
            return _as_object(unchanged)
        schema = _decode(schema)
    result = dict(_walk(schema or {}, dialect, note))
    # In the schema's own order: a set's is another in every process, and so would the notices be.
    dropped = [keyword for keyword in result if keyword in dialect.root_dropped]
    if dropped:  # what a branch allowed would be unevaluated without it
        dropped += [keyword for keyword in result if keyword.startswith("unevaluated")]
    for keyword in dropped:
        del result[keyword]
        note(keyword)
    return _as_object(result)


def _unchanged(schema: msgspec.Raw, dialect: Dialect) -> Schema | None:
    """The members of a schema that loses at most annotations at its top; None if it has to be walked."""
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
    if dialect.drops_annotations:
        members.pop("$schema", None)
    return members


def _drops_below(schema: msgspec.Raw, members: Schema, dialect: Dialect) -> bool:
    """May a keyword that the dialect leaves out stand below the top? Escaped, it could be anywhere."""
    if not dialect.dropped:
        return False
    data = bytes(schema)
    if b"$" not in data and b"\\u0024" not in data:  # all of these keywords begin so
        return False
    at_top = (data.count(keyword.encode()) > (keyword in members) for keyword in dialect.dropped)
    return b"\\u0024" in data or any(at_top)


def complete(schema: Schema | msgspec.Raw | None) -> Schema:
    """`schema` in the dialect of everything, as an object schema. Its members may stay undecoded."""
    return sanitised(schema, EVERYTHING, no_loss)


def no_loss(keyword: str) -> None:
    """`$schema`, the only keyword left out of everything, neither allows nor forbids anything."""


def _as_object(schema: Schema) -> Schema:
    """What every schema of a function's parameters says, said in this one too."""
    schema.setdefault("type", "object")
    if schema["type"] in ("object", _OBJECT):
        schema.setdefault("properties", {})
    return schema


def output_schema(schema: Schema | None, dialect: Dialect, note: Callable[[str], None]) -> Schema:
    """Like `sanitised`, for structured output: the root may be anything."""
    return _walk(schema or {}, dialect, note)


def say_dropped(keywords: Iterable[str], path: str, notices: Notices) -> None:
    """One notice for all the keywords that the schema at `path` lost."""
    lost = [keyword for keyword in dict.fromkeys(keywords) if keyword not in ANNOTATIONS]
    if lost:
        message = f"the upstream's schemas may not say {', '.join(lost)} here"
        notices.say("schema-keyword-dropped", path, message)


def strict_ready(schema: Any) -> bool:
    """OpenAI's condition for `strict`: every object is closed, and all its properties required."""
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


def _walk(schema: Schema, dialect: Dialect, note: Callable[[str], None]) -> Schema:
    if dialect.keywords is None and _NESTING.isdisjoint(schema) and not dialect.drops(schema):
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
    # Without its patterns, `additionalProperties` would forbid what they allowed.
    if "patternProperties" in schema and "patternProperties" not in result:
        result.pop("additionalProperties", None)
    return result


def _put_alternatives(
    result: Schema, alternatives: list[Any], free: bool, dialect: Dialect, note: Callable[[str], None]
) -> None:
    """`oneOf`. Once its branches say less, a value may fit two of them, and must not fail for it."""
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


def _equivalent(schema: Schema, dialect: Dialect) -> Schema:
    """The same schema in keywords the dialect is likelier to know."""
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


def _walk_any(value: Any, dialect: Dialect, note: Callable[[str], None]) -> Any:
    return _walk(value, dialect, note) if is_object(value) else value


def _kept(keyword: str, value: Any, dialect: Dialect) -> bool:
    if keyword in dialect.dropped:
        return False
    if dialect.string_enums and keyword == "enum":
        return all(isinstance(v, str) for v in value)
    return dialect.keywords is None or keyword in dialect.keywords
