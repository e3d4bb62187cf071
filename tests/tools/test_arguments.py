"""Argument correction: when fragments are sent, which input stays unchanged, which calls stay broken."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from dragoman.tools.arguments import LiveArguments, Outcome, assemble
from dragoman.tools.rules import rules
from dragoman.tools.schema import compile_schema

ALL = rules()
WRITE: dict[str, Any] = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["file_path", "content"],
}
CLOSED_WRITE = {**WRITE, "additionalProperties": False}
READ: dict[str, Any] = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}, "limit": {"type": "integer"}},
    "required": ["file_path"],
}
SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "limit": {"type": "integer"},
        "mode": {"enum": ["fast", "slow"]},
        "files": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query"],
}


def live(schema: dict[str, Any], tool: str = "tool") -> LiveArguments:
    return LiveArguments(tool, compile_schema(schema), ALL)


def run(
    text: str,
    schema: dict[str, Any],
    tool: str = "tool",
    ended: bool | None = None,
    off: tuple[str, ...] = (),
) -> Outcome:
    """The outcome of a text, after checking that every chunking and both modes agree on it."""
    outcomes: list[Outcome] = []
    for mode, size in (("live", 1), ("live", 3), ("live", len(text) + 1), ("whole", 5)):
        call = assemble(mode, tool, compile_schema(schema), rules(off))  # type: ignore[arg-type]
        given_out = "".join([call.feed(text[i : i + size]) for i in range(0, len(text), size)])
        outcome = call.finish(ended=ended)
        assert given_out + outcome.rest == outcome.text
        outcomes.append(outcome)
    first = outcomes[0]
    for other in outcomes[1:]:
        assert other.complete == first.complete
        assert other.value == first.value
        if first.complete:
            assert (other.text, other.fixes, other.problems) == (first.text, first.fixes, first.problems)
    return first


# When fragments are sent.


def test_a_long_string_streams_at_once() -> None:
    call = live(WRITE)
    assert call.feed('{"file_path": "a", "content": "line 1') == '{"file_path": "a", "content": "line 1'
    assert call.feed("\\nline 2") == "\\nline 2"
    assert call.feed(" more") == " more"
    assert call.feed('"}') == '"}'
    assert call.finish().rest == ""


def test_key_is_held_until_complete() -> None:
    call = live(WRITE)
    assert call.feed('{"file_') == ""
    assert call.feed('path"') == ""
    assert call.feed(': "') == '{"file_path": "'


def test_escape_cut_in_two_waits_for_its_end() -> None:
    call = live(WRITE)
    call.feed('{"content": "')
    assert call.feed("a\\") == "a"
    assert call.feed("u00") == ""
    assert call.feed("e9b\\") == "\\u00e9b"
    assert call.feed("d") == "\\\\d"


def test_only_the_member_that_may_be_wrong_is_held() -> None:
    call = live(SEARCH)
    assert call.feed('{"query": "a", "limit": "1') == '{"query": "a"'
    assert call.feed('0", "files": ["x"') == ', "limit": 10'
    assert call.feed('], "mode": "FA') == ', "files": ["x"]'
    assert call.feed('ST"}') == ', "mode": "fast"}'


def test_long_content_does_not_wait_for_a_path_that_must_be_misnamed() -> None:
    call = live(CLOSED_WRITE, "Write")
    assert call.feed('{"path": "a.txt", "content": "') == ""
    first = call.feed("x" * 1000)
    assert first == '{ "content": "' + "x" * 1000
    assert call.feed("y") == "y"
    assert call.feed('"}') == '","file_path": "a.txt"}'
    assert call.finish().value == {"content": "x" * 1000 + "y", "file_path": "a.txt"}


@pytest.mark.parametrize("size", [1, 7, 5000])
def test_a_valid_call_with_an_odd_key_before_long_content_is_byte_identical(size: int) -> None:
    given = '{"path": "a", "content": "' + "x" * 3000 + '", "file_path": "b"}'
    call = live(WRITE, "Write")
    sent = "".join(call.feed(given[at : at + size]) for at in range(0, len(given), size))
    outcome = call.finish(ended=True)
    assert sent + outcome.rest == given
    assert outcome.fixes == ()


def test_where_odd_keys_are_allowed_a_misnamed_path_is_still_mended() -> None:
    call = live(WRITE, "Write")
    call.feed('{"path": "a", "content": "' + "x" * 3000 + '"}')
    assert call.finish(ended=True).value == {"file_path": "a", "content": "x" * 3000}


def test_pending_member_is_released_when_the_declared_one_comes() -> None:
    call = live(READ, "Read")
    assert call.feed('{"path": "a"') == ""
    assert call.feed(', "file_path": "') == '{"path": "a", "file_path": "'


def test_fence_and_placeholder_do_not_stop_the_stream() -> None:
    call = live(WRITE)
    assert call.feed("```js") == ""
    assert call.feed('on\n{"content": "abc') == '{"content": "abc'
    call = live(WRITE)
    assert call.feed("{}") == ""
    assert call.feed('{"content": "abc') == '{"content": "abc'


def test_text_before_the_damage_is_not_held() -> None:
    call = live(SEARCH)
    assert call.feed('{"query": "a", limit: 5') == '{"query": "a'
    assert call.feed(", 'mode': 'SLOW'}") == ""
    assert call.finish().rest == '", "limit": 5, "mode": "slow"}'


# Input that stays unchanged.


@pytest.mark.parametrize(
    ("text", "schema", "tool"),
    [
        ('{"path": "a", "file_path": "b"}', READ, "Read"),
        ('{"file_path": "b", "path": "a"}', READ, "Read"),
        ('{"path": "a", "file_path": "b"}', {**READ, "additionalProperties": False}, "Read"),
        ('{"file_path": "a", "odd key": {"x": [1, 2.50, null]}}', READ, "Read"),
        ('{"query": "say \\"prompt\\": \\"x\\" and {\'a\': None,}"}', SEARCH, "search"),
        ('{"query": "q", "limit": "3.14", "mode": "high"}', SEARCH, "search"),
        ('{"query": null}', SEARCH, "search"),
        ('{"q": "x", "search": "y"}', SEARCH, "search"),
        ('{"query": 1.5e400, "limit": [1, 2]}', {"properties": {"limit": {"type": "integer"}}}, "t"),
        ('{"name": "search", "arguments": {"x": 1}}', {}, "search"),
        ('{"n": 123456789012345678901234567890, "x": 1.10}', {}, "t"),
        (f'{{"n": {"7" * 6000}}}', {}, "t"),
        ('{"a": "\\ud83d", "b": "\\ud83d\\ude00"}', {}, "t"),
        (' {\n "a" : [ ] , "b" : { } }\n', {}, "t"),
        ('{"a": 1, "a": 2}', {}, "t"),
        ("{ }", {}, "t"),
    ],
)
def test_valid_input_is_unchanged(text: str, schema: dict[str, Any], tool: str) -> None:
    outcome = run(text, schema, tool)
    assert outcome.text == text
    assert outcome.fixes == ()
    assert outcome.complete


# Empty input.


@pytest.mark.parametrize(
    "text", ["", "  \n", "null", '""', '"null"', "{}", "[]", "None", '"{}"', "```\n\n```"]
)
def test_empty_input_means_no_arguments(text: str) -> None:
    outcome = run(text, {"type": "object", "properties": {}})
    assert outcome.value == {}
    assert outcome.text == "{}"


def test_a_cut_call_with_empty_input_is_broken() -> None:
    assert not run("", {}, ended=False).complete
    assert not run(" \n", {}, ended=False).complete
    assert run("{}", {}, ended=False).complete


# Cut calls are never completed.

CALL = '{"file_path": "a\\n\\u00e9", "n": [1, {"b": "c"}, true], "o": {"p": -1.5e3}, "content": "x"}'


@pytest.mark.parametrize("cut", range(1, len(CALL)))
def test_cut_at_every_character_is_broken(cut: int) -> None:
    outcome = run(CALL[:cut], WRITE)
    assert not outcome.complete
    assert outcome.value is None
    assert outcome.rest == ""
    assert outcome.problems
    assert CALL.startswith(outcome.text)


@pytest.mark.parametrize("cut", range(1, len(CALL)))
def test_closing_brackets_are_added_only_if_the_call_then_fits(cut: int) -> None:
    outcome = run(CALL[:cut], WRITE, ended=True)
    assert outcome.complete == (cut == len(CALL) - 1)


@pytest.mark.parametrize(
    ("text", "complete"),
    [
        ('{"query": "a", "limit": 2', True),
        ('{"query": "a", "files": ["x", "y"', True),
        ('{"query": "a"  ', True),
        ('{"query": "a', False),
        ('{"query": "a",', False),
        ('{"query": "a", "limit":', False),
        ('{"query": "a", "limit"', False),
        ('{"query": "a", "files": ["x",', False),
        ('{"query": "a", "files": [', False),
        ('{"query": "a", "files": ["x', False),
        ('{"limit": 2', False),
        ("{", False),
    ],
)
def test_missing_closing_brackets(text: str, complete: bool) -> None:
    assert run(text, SEARCH, ended=True).complete is complete
    assert not run(text, SEARCH).complete
    assert not run(text, SEARCH, ended=True, off=("missing-closing-brackets",)).complete


@pytest.mark.parametrize(
    "text",
    [
        "hello", "42", "true", "[1, 2]", '[{"a": 1}, {"a": 2}]', '"{\\"a\\": 1"', '{"a" 1}', "{'a': 'b",
        '{"a": "x "y', "Sure: {", "```json", '{"a": 1]', '{"input": {"file_path": "a"',
        '{"a": "b"\\', "{'a': [1, 2}", '{"a": "b" c "d"', "{:}", "{,", '{"a": /* x', "[" * 5000,
        '{"a": ' + "[" * 5000,
    ],
)  # fmt: skip
def test_unreadable_is_broken(text: str) -> None:
    outcome = run(text, {})
    assert not outcome.complete
    assert outcome.problems


# Mending, beyond the examples of the rules.

ONE_TEXT = {"required": ["command"], "properties": {"command": {"type": "string"}}}
ONE_LIST = {"required": ["files"], "properties": {"files": {"type": "array"}}}


@pytest.mark.parametrize(
    ("text", "schema", "tool", "value"),
    [
        ('{"Bash": {"command": "ls"}}', ONE_TEXT, "Bash", {"command": "ls"}),
        ('{"input": {"path": "a"}}', READ, "Read", {"file_path": "a"}),
        ('{"function": {"name": "Read", "arguments": "{\\"file_path\\": \\"a\\"}"}}', READ, "Read",
         {"file_path": "a"}),
        ('"{\\"file_path\\": \\"a\\"}"', READ, "Read", {"file_path": "a"}),
        ('"{"file_path": "a"}"', READ, "Read", {"file_path": "a"}),
        ('["x", "y"]', ONE_LIST, "t", {"files": ["x", "y"]}),
        ('{"content": "function() { return "x"}", "file_path": "a"}', WRITE, "Write",
         {"content": 'function() { return "x"}', "file_path": "a"}),
        ('{"file_path": "a", "content": "say "hi", then "bye""}', WRITE, "Write",
         {"file_path": "a", "content": 'say "hi", then "bye"'}),
        ('{"file_path": "a", "limit": ["5"]}', READ, "Read", {"file_path": "a", "limit": 5}),
        ('{"file_path": ["a"], "limit": null}', READ, "Read", {"file_path": "a"}),
        ('{"query": "a", "files": "[\'x\', \'y\']"}', SEARCH, "t", {"query": "a", "files": ["x", "y"]}),
        ('{"query": "a", "files": {"item": ["x"]}}', SEARCH, "t", {"query": "a", "files": ["x"]}),
        ('{"query": true}', SEARCH, "t", {"query": "true"}),
    ],
)  # fmt: skip
def test_input_is_mended(text: str, schema: dict[str, Any], tool: str, value: dict[str, Any]) -> None:
    outcome = run(text, schema, tool)
    assert outcome.value == value
    assert outcome.problems == ()
    assert outcome.fixes


NESTED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "item": {
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "kind": {
                    "anyOf": [{"enum": ["big", "small"]}, {"type": "array", "items": {"type": "integer"}}]
                },
                "note": {"type": "string"},
            },
            "required": ["id"],
            "additionalProperties": False,
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"item": {"ID": "5", "stray": 1}}', {"item": {"id": 5}}),
        ('{"item": {"id": 1, "note": null, "kind": "BIG"}}', {"item": {"id": 1, "kind": "big"}}),
        ('{"item": {"id": 1, "kind": ["2", 3]}}', {"item": {"id": 1, "kind": [2, 3]}}),
        ("{\"item\": \"{'id': 1.0, 'note': 'x'}\"}", {"item": {"id": 1, "note": "x"}}),
        ('{"item": "{\\"id\\": \\"x\\"}"}', {"item": {"id": "x"}}),
        ('{"item": {"id": 1, "note": "a\nb\\d"}}', {"item": {"id": 1, "note": "a\nb\\d"}}),
        ('{"labels": {"a": 1, "b": true, "c": "x"}}', {"labels": {"a": "1", "b": "true", "c": "x"}}),
        ('{"item": {"id": "1", "note": "' + "7" * 5000 + '"}}', {"item": {"id": 1, "note": "7" * 5000}}),
        (
            '{"item": {"id": [' + "7" * 5000 + "]}}",
            {"item": {"id": int("7" * 4000) * 10**1000 + int("7" * 1000)}},
        ),
        ('{"item": [NaN]}', {"item": [None]}),
    ],
)
def test_nested_values_are_mended(text: str, value: dict[str, Any]) -> None:
    outcome = run(text, NESTED)
    assert outcome.value == value
    assert outcome.fixes


@pytest.mark.parametrize("text", ['{"limit": "a\nb"}', '{"limit": "a\\d"}', '{"query": "a\nb"}'])
def test_rule_for_characters_switched_off_breaks_the_call(text: str) -> None:
    assert run(text, SEARCH).complete
    assert not run(text, SEARCH, off=("control-characters", "illegal-escapes")).complete


def test_wrapper_that_holds_nothing_known_is_left_alone() -> None:
    for text in ('{"input": {"x": 1}}', '{"input": "x", "zzz": 1}', '{"arguments": [1]}'):
        assert run(text, WRITE, "Write").text == text


def test_wrapper_around_a_tool_with_a_parameter_called_name() -> None:
    schema = {"properties": {"name": {"type": "string"}, "mail": {"type": "string"}}, "required": ["mail"]}
    inner = {"name": "Bob", "mail": "b@example.org"}
    text = json.dumps({"name": "create_user", "arguments": inner})
    assert run(text, schema, "create_user").value == inner
    plain = '{"name": "create_user", "mail": "x"}'
    assert run(plain, schema, "create_user").text == plain


def test_remaining_problems_are_reported() -> None:
    outcome = run('{"limit": "many"}', SEARCH)
    assert outcome.complete
    assert len(outcome.problems) == 2
    assert any("/limit" in problem for problem in outcome.problems)


def test_a_number_is_not_renamed_to_a_text_member_of_a_similar_name() -> None:
    schema = {"properties": {"message": {"type": "string"}}, "required": ["message"]}
    assert run('{"message_count": 5}', schema).value == {"message_count": 5}
    assert run('{"message_text": "x"}', schema).value == {"message": "x"}


def test_fixes_are_bounded() -> None:
    text = json.dumps({f"k{i}": i for i in range(1000)} | {"file_path": "a", "content": "b"})
    outcome = run(text, CLOSED_WRITE)
    assert outcome.value == {"file_path": "a", "content": "b"}
    assert len(outcome.fixes) <= 200


# Cost.


@pytest.mark.parametrize(
    "make",
    [
        lambda n: json.dumps({"file_path": "a", "content": 'x = "y"\n' * (n // 12)}),
        lambda n: json.dumps({"file_path": "a", "content": "b", "list": [{"a": "b"}] * (n // 12)}),
        lambda n: '{"file_path": "a", "content": "' + "\n\\d" * (n // 3) + '"}',
        lambda n: '{"file_path": "a", "content": "' + 'say "x" ' * (n // 8) + '"}',
        lambda n: "{'file_path': 'a', 'content': '" + "x " * (n // 2) + "'}",
        lambda n: " " * n + '{"file_path": "a", "content": "b"}' + "\n" * n,
        lambda n: "{}" + " " * n + '{"file_path": "a",' + " " * n + '"content": "b"}',
        lambda n: '{"path": "a", ' + '"k": 1, ' * (n // 8) + '"content": "b"}',
    ],
    ids=["text", "nested", "controls", "inner quotes", "single quotes", "blank", "gaps", "pending"],
)  # fmt: skip
def test_cost_is_linear(make: Any) -> None:
    def cost(size: int) -> float:
        text = make(size)
        pieces = [text[i : i + 4] for i in range(0, len(text), 4)]
        call = live(WRITE, "Write")
        start = time.process_time()
        for piece in pieces:
            call.feed(piece)
        assert call.finish().complete
        return time.process_time() - start

    small = min(cost(1 << 15) for _ in range(3))
    assert min(cost(1 << 17) for _ in range(2)) < small * 8  # 4 when linear, 16 when quadratic
