"""Law 36: a schema that is adapted to a target still allows every value that it allowed before."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fuzzing

from dragoman.protocols.common.schemas import (
    ANTHROPIC,
    EVERYTHING,
    GEMINI,
    OPENAI,
    output_schema,
    sanitised,
)

DIALECTS = {"everything": EVERYTHING, "anthropic": ANTHROPIC, "openai": OPENAI, "gemini": GEMINI}
NAMES = ["a", "b", "x_1"]

words = st.sampled_from(["", "a", "red", "10"])
scalars = st.none() | st.booleans() | st.integers(-3, 12) | st.sampled_from([0.5, 2.0]) | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)
types = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])


def schemas() -> st.SearchStrategy[Any]:
    return st.recursive(st.booleans() | _keywords(st.nothing()), _keywords, max_leaves=5)


def _keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    leaf: dict[str, st.SearchStrategy[Any]] = {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "enum": st.lists(scalars, min_size=1, max_size=4),
        "const": scalars,
        "minimum": st.integers(-2, 5),
        "exclusiveMinimum": st.integers(-2, 5),
        "maximum": st.integers(0, 9),
        "exclusiveMaximum": st.integers(0, 9),
        "multipleOf": st.sampled_from([1, 2]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(1, 5),
        "pattern": st.sampled_from(["^a", "[0-9]+", "^$"]),
        "format": st.sampled_from(["date-time", "uri"]),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 3),
        "uniqueItems": st.booleans(),
        "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(1, 3),
        "title": st.just("T"),
        "description": st.just("what it is"),
        "default": scalars,
        "$schema": st.just("https://json-schema.org/draft/2020-12/schema"),
    }
    if not inner.is_empty:
        named = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        several = st.lists(inner, min_size=1, max_size=2)
        leaf |= {
            "properties": named,
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "_"]), inner, max_size=2),
            "propertyNames": st.just({"maxLength": 2}),
            "items": inner,
            "prefixItems": several,
            "contains": inner,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "dependentRequired": st.just({"a": ["b"]}),
            "dependentSchemas": st.dictionaries(st.sampled_from(NAMES), inner, max_size=1),
            "unevaluatedProperties": st.booleans(),
        }
    keys = st.lists(st.sampled_from(sorted(leaf)), max_size=5, unique=True)
    return keys.flatmap(lambda chosen: st.fixed_dictionaries({key: leaf[key] for key in chosen}))


def allows(schema: Any, value: Any) -> bool:
    validator = jsonschema_rs.validator_for(schema, validate_formats=False, offline=True)
    return bool(validator.is_valid(value))


@pytest.mark.parametrize("dialect", DIALECTS)
@fuzzing.steady(200)
@given(schema=schemas().filter(lambda s: isinstance(s, dict)), found=st.lists(values, min_size=1, max_size=6))
def test_36_allowed_values_stay_allowed(dialect: str, schema: Any, found: list[Any]) -> None:
    weaker = output_schema(schema, DIALECTS[dialect], lambda _: None)
    for value in found:
        assert not allows(schema, value) or allows(weaker, value), value


@pytest.mark.parametrize("dialect", DIALECTS)
@fuzzing.steady(150)
@given(
    members=st.dictionaries(st.sampled_from(NAMES), schemas(), max_size=3),
    rest=_keywords(schemas()),
    found=st.lists(st.dictionaries(st.sampled_from(NAMES), values, max_size=3), min_size=1, max_size=6),
)
def test_36_allowed_arguments_stay_allowed(
    dialect: str, members: dict[str, Any], rest: dict[str, Any], found: list[Any]
) -> None:
    schema = {**rest, "type": "object", "properties": members}
    noted: list[str] = []
    weaker = sanitised(schema, DIALECTS[dialect], noted.append)
    for value in found:
        assert not allows(schema, value) or allows(weaker, value), value
    assert weaker["type"] == "object"
    assert list(weaker["properties"]) == list(members)
    assert weaker.get("description") == schema.get("description")


@pytest.mark.parametrize("dialect", DIALECTS)
@fuzzing.steady(200)
@given(schema=schemas().filter(lambda s: isinstance(s, dict)))
def test_only_known_keywords_remain_and_dropped_ones_are_reported(dialect: str, schema: Any) -> None:
    noted: list[str] = []
    chosen = DIALECTS[dialect]
    result = output_schema(schema, chosen, noted.append)
    assert not set(keywords(result)) & chosen.dropped
    if chosen.keywords is not None:
        assert set(keywords(result)) <= chosen.keywords
    again: list[str] = []
    assert output_schema(result, chosen, again.append) == result, "law 8: once is enough"
    assert again == []


def keywords(schema: Any) -> list[str]:
    """Every keyword used in a schema and those inside of it."""
    found: list[str] = []
    if isinstance(schema, dict):
        for key, value in schema.items():
            found.append(key)
            if key in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
                for inner in value.values():
                    found += keywords(inner)
            elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
                for inner in value:
                    found += keywords(inner)
            elif key not in ("enum", "const", "default", "required", "type", "dependentRequired"):
                found += keywords(value)
    return found


@pytest.mark.parametrize("dialect", DIALECTS)
def test_36_values_of_a_dropped_branch_stay_allowed(dialect: str) -> None:
    branch = {"properties": {"a": True}}
    for key in ("anyOf", "allOf", "oneOf"):
        schema = {"type": "object", key: [branch], "unevaluatedProperties": False}
        assert allows(schema, {"a": 1})
        assert allows(sanitised(schema, DIALECTS[dialect], lambda _: None), {"a": 1})


@pytest.mark.parametrize("dialect", DIALECTS)
def test_36_references_still_resolve(dialect: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/Color"}},
        "definitions": {"Color": {"const": "red"}},
    }
    weaker = sanitised(schema, DIALECTS[dialect], lambda _: None)
    assert allows(weaker, {"a": "red"})
    assert not allows(weaker, {"a": "blue"})
