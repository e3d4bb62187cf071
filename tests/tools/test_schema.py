"""JSON schemas in the dialects that agents send: compiled, validated, and which members may stream."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.tools.schema import Node, compile_schema

OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


def test_same_content_is_compiled_once() -> None:
    assert compile_schema(OBJECT) is compile_schema({**OBJECT})
    assert compile_schema(None) is compile_schema({})


def test_no_schema_accepts_everything() -> None:
    assert compile_schema(None).validate({"any": "thing"}) == ()


def test_problems_name_the_place() -> None:
    problems = compile_schema(OBJECT).validate({"a": "x"})
    assert [problem.path for problem in problems] == ["/a"]
    assert "integer" in str(problems[0])
    assert compile_schema(OBJECT).validate({})[0].path == ""


@pytest.mark.parametrize(
    "draft",
    [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
        "https://example.com/nobody-knows-this",
    ],
)
def test_every_draft_is_understood(draft: str) -> None:
    schema = compile_schema({"$schema": draft, **OBJECT})
    assert schema.note == ""
    assert schema.fits({"a": 1})
    assert not schema.fits({"a": "1"})


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ({"type": "STRING"}, "x", 1),
        ({"type": "TYPE_UNSPECIFIED"}, 1, ...),
        ({"type": "ARRAY", "items": {"type": "INTEGER"}, "minItems": "1"}, [1], []),
        ({"type": "STRING", "nullable": True}, None, 1),
        ({"type": "string", "enum": ["x"], "nullable": True}, None, "y"),
        ({"type": ["STRING", "NULL"]}, None, 1),
        ({"anyOf": [{"type": "string"}], "nullable": True}, None, 1),
        ({"$ref": "#/$defs/N", "nullable": True}, None, "x"),
        ({"$ref": "#/$defs/N"}, 1, "x"),
        ({"$ref": "#/definitions/S"}, "x", 1),
        ({"$ref": "#/properties/other/items"}, True, 1),
        ({"allOf": [{"type": "integer"}, {"minimum": 3}]}, 3, 2),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, 2, 1),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "x", True),
        ({"const": 5}, 5, 6),
        ({"type": "string", "required": True}, "x", 1),
    ],
)
def test_dialects_of_agents_are_understood(member: dict[str, Any], good: Any, bad: Any) -> None:
    schema = compile_schema(
        {
            "type": "object",
            "properties": {"m": member, "other": {"type": "array", "items": {"type": "boolean"}}},
            "$defs": {"N": {"type": "integer"}},
            "definitions": {"S": {"type": "string"}},
        }
    )
    assert schema.note == ""
    assert schema.fits({"m": good})
    assert schema.root.member("m").fits(good)
    if bad is not ...:
        assert not schema.fits({"m": bad})
        assert not schema.root.member("m").fits(bad)


def test_recursive_schema() -> None:
    tree = {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}
    schema = compile_schema(tree)
    assert schema.fits({"kids": [{"kids": []}]})
    assert not schema.fits({"kids": [{"kids": 1}]})
    inner = schema.root.member("kids").items
    assert inner.member("kids").items.fits({"kids": []})
    assert not inner.fits({"kids": [{"kids": 1}]})


@pytest.mark.parametrize(
    "odd",
    [
        {"type": 5},
        {"properties": [1]},
        {"$ref": "#/nowhere"},
        {"$ref": "https://example.com/schema.json"},
        {"properties": {"a": {"pattern": "("}}},
        {"required": {"a": 1}, "properties": {"a": {"minimum": "x"}}},
        {"properties": {"a": object()}},
    ],
)
def test_a_schema_that_cannot_be_compiled_accepts_everything_with_a_notice(odd: Any) -> None:
    schema = compile_schema(odd)
    assert schema.note
    assert schema.validate({"a": [1, {"b": None}]}) == ()
    assert schema.properties == {}


def test_data_is_not_taken_for_schema() -> None:
    schema = compile_schema({"properties": {"a": {"enum": [{"type": "STRING", "nullable": True}]}}})
    assert schema.fits({"a": {"type": "STRING", "nullable": True}})


def node(schema: dict[str, Any]) -> Node:
    return compile_schema({"properties": {"m": schema}}).root.member("m")


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, True),
        ({}, True),
        ({"type": ["string", "null"]}, True),
        ({"type": "string", "maxLength": 5}, True),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, True),
        ({"type": "string", "enum": ["a"]}, False),
        ({"const": "a"}, False),
        ({"type": "integer"}, False),
        ({"anyOf": [{"enum": ["a"]}, {"type": "array"}]}, False),
        ({"not": {"type": "string"}}, False),
    ],
)
def test_members_that_accept_any_text_may_stream(schema: dict[str, Any], expected: bool) -> None:
    assert node(schema).takes_any_text is expected


def test_properties_of_a_schema_node() -> None:
    schema = compile_schema({**OBJECT, "additionalProperties": False})
    assert list(schema.properties) == ["a"]
    assert schema.required == {"a"}
    assert schema.root.closed
    assert node({"type": "integer"}).types == {"integer"}
    assert node({"enum": ["a", 1]}).types == {"string", "integer"}
    assert node({"anyOf": [{"type": "string"}, {}]}).types is None


def test_integer_values_must_be_integers() -> None:
    from decimal import Decimal

    assert node({"type": "integer"}).fits(10**40)
    assert not node({"type": "integer"}).fits(Decimal("10.0"))
    assert not node({"type": "integer"}).fits(True)
