"""Leaked calls: tool names in the model's spelling, and values that markup writes as plain text."""

import doctest
import json
from typing import Any

import pytest

from dragoman.tools.leaks import LeakedCall, LeakFilter
from dragoman.tools.leaks import values as leak_values
from dragoman.tools.leaks.catalog import Catalog
from dragoman.tools.leaks.readers import read_pythonic
from dragoman.tools.leaks.values import structure, typed

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "count": {"type": "integer"},
        "ratio": {"anyOf": [{"$ref": "#/$defs/Ratio"}, {"type": "null"}]},
        "deep": {"type": "BOOLEAN"},
        "files": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "nullable": True},
        "unit": {"enum": ["c", "f"]},
        "circle": {"$ref": "#/properties/circle"},
    },
    "$defs": {"Ratio": {"type": "number"}},
}
CATALOG = Catalog({"search": SCHEMA, "Read": None, "mcp__docs__find": None})


@pytest.mark.parametrize(
    ("key", "value", "written"),
    [
        ("text", "42", '"42"'),
        ("text", "null", '"null"'),
        ("maybe", "null", "null"),
        ("count", " 5 ", "5"),
        ("count", "5.5", '"5.5"'),
        ("count", "123456789012345678901234567890", "123456789012345678901234567890"),
        ("ratio", "1.50", "1.50"),
        ("ratio", "None", "null"),
        ("ratio", "high", '"high"'),
        ("deep", "True", "true"),
        ("deep", "yes", '"yes"'),
        ("files", '["a", 1.0]', '["a", 1.0]'),
        ("files", "['a', True, -2]", '["a", true, -2]'),
        ("files", "[a, b]", '"[a, b]"'),
        ("files", "a.py", '"a.py"'),
        ("options", "{'a': null}", '{"a": null}'),
        ("options", "null", "null"),
        ("unit", "5", '"5"'),
        ("circle", "5", '"5"'),
        ("undeclared", "5", '"5"'),
    ],
)
def test_a_value_takes_the_type_that_the_schema_allows(key: str, value: str, written: str) -> None:
    assert typed(value, CATALOG.types("search", key)) == written
    json.loads(written)


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        ("Read", "Read"),
        ("read", "Read"),
        ("functions.Read:0", "Read"),
        ("default_api:search", "search"),
        ("find", "mcp__docs__find"),
        ("Reads", None),
        ("docs", None),
        ("", None),
    ],
)
def test_a_name_means_one_declared_tool_or_none(name: str, tool: str | None) -> None:
    assert CATALOG.resolve(name) == tool


def test_a_name_that_fits_two_tools_means_none() -> None:
    assert Catalog({"x__find": None, "y__find": None}).resolve("find") is None
    assert Catalog({"bash": None, "BASH": None}).resolve("Bash") is None


@pytest.mark.parametrize("text", ["[f()]", "[x]", "{1: 2}", "{**a}", "[-'a']", "[-True]", "['", "[1j]"])
def test_python_that_is_not_a_literal_is_no_structure(text: str) -> None:
    assert structure(text) is None


def test_pythonic_calls() -> None:
    calls = read_pythonic(r"[search(text='\d', ratio=-1.5, files=('a',)), Read()]", "", CATALOG, True)
    assert calls == [("search", '{"text": "\\\\d", "ratio": -1.5, "files": ["a"]}'), ("Read", "{}")]
    for text in (
        "[search(1)]",
        "[search(**x)]",
        "[search(text=f())]",
        "[nope()]",
        "[]",
        "[Read(), 1]",
    ):
        assert read_pythonic(text, "", CATALOG, True) is None


def _one(text: str) -> str:
    leaks = LeakFilter({"search": SCHEMA})
    [call] = [s for s in leaks.feed(text) + leaks.close() if isinstance(s, LeakedCall)]
    return call.arguments


def test_layout_around_values() -> None:
    qwen = "<function=search><parameter=text>{}</parameter></function>"
    invoke = '<invoke name="search"><parameter name="text">{}</parameter></invoke>'
    assert _one(qwen.format("\n\na\n")) == '{"text": "\\na"}'
    assert _one(qwen.format("a\n")) == '{"text": "a"}'
    assert _one(invoke.format("\na\n")) == '{"text": "a"}'
    assert _one(invoke.format("a\n")) == '{"text": "a\\n"}'
    assert _one(invoke.format("a &amp; <b>")) == '{"text": "a &amp; <b>"}'
    assert _one(invoke.format("<![CDATA[a]]>")) == '{"text": "a"}'


def test_dsml_marks_strings() -> None:
    call = (
        '<|DSML|invoke name="search"><|DSML|parameter name="{}" string="{}">5'
        "</|DSML|parameter></|DSML|invoke>"
    )
    assert _one(call.format("count", "true")) == '{"count": "5"}'
    assert _one(call.format("other", "false")) == '{"other": 5}'


def test_the_examples_in_the_docstrings() -> None:
    assert doctest.testmod(leak_values).failed == 0
