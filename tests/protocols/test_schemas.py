"""Adapting schemas to strict targets. tests/laws/test_laws_schemas.py checks law 36."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.protocols.common import schemas
from dragoman.protocols.common.schemas import SchemaDialect, sanitised

SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "b", "abc"])


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from("abx"), inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", "string", "integer", ["integer", "null"]]),
            "properties": named,
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner, max_size=1),
            "additionalProperties": st.booleans() | inner,
            "required": st.lists(st.sampled_from("ab"), unique=True),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "const": SCALARS,
            "enum": st.lists(SCALARS, min_size=1, max_size=3, unique_by=repr),
            "minimum": st.integers(-5, 5),
            "exclusiveMaximum": st.integers(-5, 5),
            "multipleOf": st.integers(1, 3),
            "maxLength": st.integers(0, 3),
            "minItems": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "$comment": st.just("x"),
        },
    )


SCHEMAS = st.recursive(_objects(st.just({})), _objects, max_leaves=4)
DIALECTS = {
    "everything": schemas.EVERYTHING,
    "anthropic": schemas.ANTHROPIC,
    "openai": schemas.OPENAI,
    "gemini": schemas.GEMINI,
}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@settings(deadline=None, max_examples=200)
@given(schema=SCHEMAS, more=st.sampled_from([{}, {"$schema": "s"}, {"$ref": "#/definitions/a"}]))
def test_decoded_and_undecoded_schemas_give_the_same(
    dialect: SchemaDialect, schema: dict[str, Any], more: dict[str, Any]
) -> None:
    schema = schema | more
    lost, lost_again = list[str](), list[str]()
    result = sanitised(schema, dialect, lost.append)
    undecoded = sanitised(msgspec.Raw(msgspec.json.encode(schema)), dialect, lost_again.append)
    assert msgspec.json.decode(msgspec.json.encode(undecoded)) == result
    assert set(lost) - schemas.ANNOTATIONS == set(lost_again) - schemas.ANNOTATIONS


def test_a_schema_with_nothing_to_change_stays_undecoded() -> None:
    schema = {"$schema": "s", "type": "object", "properties": {"a": {"items": {"enum": [1]}}}}
    raw = msgspec.Raw(msgspec.json.encode(schema))
    for dialect in (schemas.GEMINI, schemas.ANTHROPIC):
        result = sanitised(raw, dialect, pytest.fail)
        assert all(isinstance(member, msgspec.Raw) for member in result.values())


def test_dropped_keywords_are_listed_in_schema_order() -> None:
    lost: list[str] = []
    branches = {"oneOf": [{}], "not": {}, "anyOf": [{}], "enum": [{}], "allOf": [{}]}
    sanitised({"type": "object", **branches}, schemas.OPENAI, lost.append)
    assert lost == list(branches)


def test_branches_that_became_equal_are_not_exclusive() -> None:
    even_or_triple = {"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}]}
    result = sanitised({"properties": {"n": even_or_triple}}, schemas.GEMINI, lambda _: None)
    assert result["properties"]["n"] == {"anyOf": [{}, {}]}


def test_definitions_of_both_keywords_are_merged() -> None:
    given = {"definitions": {"a": {"type": "string"}}, "$defs": {"b": {}}, "$ref": "#/definitions/a"}
    result = sanitised(given, schemas.GEMINI, lambda _: None)
    assert result["$defs"] == {"a": {"type": "string"}, "b": {}}
    assert result["$ref"] == "#/$defs/a"
