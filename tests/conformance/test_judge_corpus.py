"""The corpus is complete, and its comparison rejects wrong answers."""

import copy
from typing import Any

import pytest
from support.wires import ANTHROPIC, CHAT, PROTOCOLS

from dragoman.conform.corpus import CASES, cases, compare, content_type, themes, upstream_chunks

Case = dict[str, Any]


def perfect(case: Case) -> Case:
    expect = case["expect"]
    calls = copy.deepcopy(expect["tool_calls"])
    return {
        "text": expect["text"],
        "thinking": expect.get("thinking", ""),
        "stop": (expect.get("stop_any") or [expect["stop"]])[0],
        "usage": dict(expect.get("usage", {})),
        "tool_calls": [{"id": f"c{n}", **call} for n, call in enumerate(calls)],
        "error": {"message": expect.get("error", {}).get("message_contains", "x")},
    }


def with_wrong_call(case: Case) -> Case | None:
    answer = perfect(case)
    if not answer["tool_calls"]:
        return None
    first = answer["tool_calls"][0]
    extra_ok = case["expect"].get("args_extra_ok")
    first["arguments"] = {} if extra_ok else {**first["arguments"], "zz": 1}
    return answer


def with_wrong_stop(case: Case) -> Case:
    return {**perfect(case), "stop": "bogus"}


def with_more_text(case: Case) -> Case | None:
    if case["expect"].get("text_contains_ok"):
        return None
    return {**perfect(case), "text": case["expect"]["text"] + "!"}


def with_ghost_call(case: Case) -> Case:
    answer = perfect(case)
    answer["tool_calls"].append({"id": "extra", "name": "ghost", "arguments": {}})
    return answer


SPOILED = [with_wrong_call, with_wrong_stop, with_more_text, with_ghost_call]
ALL = cases()
NAMED = {"argvalues": ALL, "ids": [case["id"] for case in ALL]}


@pytest.mark.parametrize("case", **NAMED)
def test_a_perfect_answer_passes_and_a_spoiled_one_does_not(case: Case) -> None:
    assert compare(case, perfect(case)) == []
    for spoil in SPOILED:
        answer = spoil(case)
        assert answer is None or compare(case, answer), spoil.__name__


def test_the_corpus_has_every_case() -> None:
    files = len(list(CASES.glob("*.json")))
    assert files >= 213
    assert len(ALL) == files
    assert sum(themes().values()) == files
    assert sum(len(cases(theme)) for theme in themes()) == files


def test_every_case_has_an_answer_to_feed() -> None:
    for case in ALL:
        assert case["upstream_protocol"] in PROTOCOLS, case["id"]
        assert b"".join(upstream_chunks(case)), case["id"]
        assert content_type(case) in ("application/json", "text/event-stream"), case["id"]


def case_with(**expect: Any) -> Case:
    return {"expect": {"text": "", "tool_calls": [], "stop": "end_turn", **expect}}


def answer_with(**answer: Any) -> Case:
    return {"text": "", "tool_calls": [], "stop": "end_turn", **answer}


def test_stop_reasons_are_compared_in_the_terms_of_each_protocol() -> None:
    filtered = case_with(stop="content_filter")
    assert compare(filtered, answer_with(stop="refusal"), client=ANTHROPIC) == []
    assert compare(filtered, answer_with(stop="content_filter"), client=ANTHROPIC)
    assert compare(filtered, answer_with(stop="content_filter"), client=CHAT) == []
    sequence = case_with(stop="stop_sequence")
    assert compare(sequence, answer_with(stop="stop_sequence"), client=ANTHROPIC) == []
    assert compare(sequence, answer_with(), client=CHAT) == []


@pytest.mark.parametrize(
    ("arguments", "raw", "fine"),
    [('{"a', '{"a', True), ({}, "", True), ({}, "{}", False), ({"a": 1}, '{"a":1}', False)],
)
def test_a_cut_call_may_show_its_prefix_only(arguments: Any, raw: str, fine: bool) -> None:
    cut = [{"name": "f", "policy": "absent_or_raw_prefix"}]
    call = {"id": "c", "name": "f", "arguments": arguments, "raw": raw}
    case = case_with(incomplete_tool_calls=cut)
    assert (compare(case, answer_with(tool_calls=[call])) == []) is fine


def test_a_cut_call_that_must_be_absent() -> None:
    case = case_with(incomplete_tool_calls=[{"name": "f", "policy": "absent"}])
    call = {"id": "c", "name": "f", "arguments": "{", "raw": "{"}
    assert compare(case, answer_with(tool_calls=[call]))


def test_calls_in_any_order_with_extra_keys() -> None:
    wanted = [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]
    calls = [
        {"id": "1", "name": "g", "arguments": {"more": True}},
        {"id": "2", "name": "f", "arguments": {"a": 1.0}},
    ]
    case = case_with(tool_calls=wanted, order="any", args_extra_ok=True)
    assert compare(case, answer_with(tool_calls=calls)) == []
    assert compare(case_with(tool_calls=wanted), answer_with(tool_calls=calls))


@pytest.mark.parametrize(("said", "fine"), [(1, True), (1.0, True), (True, False), ("1", False)])
def test_values_are_compared_as_json(said: Any, fine: bool) -> None:
    case = case_with(tool_calls=[{"name": "f", "arguments": {"a": [1]}}])
    call = {"id": "c", "name": "f", "arguments": {"a": [said]}}
    assert (compare(case, answer_with(tool_calls=[call])) == []) is fine


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        ({"tool_calls": [{"id": "", "name": "f", "arguments": {}}]}, "empty tool call id"),
        ({"usage": {"output": 2}}, "usage input None, want 1"),
        ({"usage": {"input": 1, "cached_input": 3}}, "usage cached_input 3, want 2"),
        ({"error": None}, "error message lacks 'Boom'"),
    ],
)
def test_other_differences_are_reported(answer: Case, complaint: str) -> None:
    usage = {"input": 1, "cached_input": 2}
    case = case_with(usage=usage, error={"message_contains": "Boom"})
    assert complaint in map(str, compare(case, answer_with(**answer)))
