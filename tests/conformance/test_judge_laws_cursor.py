"""Each law of Cursor's JSON, and a stream or body that breaks it."""

import json
from typing import Any

import pytest
from support.edited_streams import Spoil, join
from support.wires import CURSOR

from dragoman.conform import laws, neutral

HEAD = {"tool": 5, "tool_call_id": "a"}
MCP = {"tool": 19, "tool_call_id": "b"}
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def good() -> list[Any]:
    """Reasoning, text, a call of one of Cursor's tools and one of an MCP tool."""
    return [
        {"thinking": {"text": "Hm."}},
        {"text": "So."},
        {"partial_tool_call": {**HEAD, "name": "Read", "tool_index": 0}},
        {"tool_call_v2": {**HEAD, "read_file_params": {"relative_workspace_path": "f"}}},
        {"partial_tool_call": {**MCP, "name": "get_weather", "tool_index": 1}},
        {"tool_call_v2": {**MCP, "mcp_params": {"tools": [{"name": "get_weather", "parameters": "{}"}]}}},
        {"finish_reason": "tool_calls"},
        {"usage": dict(USAGE)},
    ]


def error(**more: Any) -> Any:
    return {"error": {"message": "It broke.", "type": "upstream_error", **more}}


def mcp(said: list[Any]) -> Any:
    return said[5]["tool_call_v2"]["mcp_params"]["tools"][0]


BREACHES: dict[str, tuple[Spoil, str, str]] = {
    "unknown object": (lambda e: e.insert(0, {"words": "x"}), "one-thing", "not one of"),
    "two things": (lambda e: e[1].update(thinking={"text": "x"}), "one-thing", "not one of"),
    "empty text": (lambda e: e[1].update(text=""), "words", "text without words"),
    "empty thought": (lambda e: e[0]["thinking"].update(text=""), "words", "thinking"),
    "more than a thought": (lambda e: e[0]["thinking"].update(by="me"), "words", "thinking"),
    "no name": (lambda e: e[2]["partial_tool_call"].update(name=""), "announced", "without a name"),
    "no id": (lambda e: e[2]["partial_tool_call"].update(tool_call_id=""), "announced", "without an id"),
    "more at first": (lambda e: e[2]["partial_tool_call"].update(x=1), "announced", "announced with"),
    "no such tool": (lambda e: e[2]["partial_tool_call"].update(tool=2), "announced", "no tool 2"),
    "out of turn": (lambda e: e[4]["partial_tool_call"].update(tool_index=2), "announced", "out of turn"),
    "same id": (lambda e: e[4]["partial_tool_call"].update(tool_call_id="a"), "call-id", "same id"),
    "given twice": (lambda e: e.insert(4, e[3]), "call-id", "given twice"),
    "not announced": (lambda e: e.pop(2), "announced", "never announced"),
    "never given": (lambda e: e.pop(3), "call-given", "never given"),
    "other tool": (lambda e: e[3]["tool_call_v2"].update(tool=6), "announced", "another tool"),
    "other structure": (
        lambda e: e[3]["tool_call_v2"].update(list_dir_params={}),
        "call-form",
        "given with",
    ),
    "null": (lambda e: e[3]["tool_call_v2"]["read_file_params"].update(max_lines=None), "call-form", "null"),
    "other name": (lambda e: mcp(e).update(name="x"), "announced", "another name"),
    "half arguments": (lambda e: mcp(e).update(parameters='{"a'), "call-json", "without a JSON object"),
    "no structure": (lambda e: e[5]["tool_call_v2"].update(mcp_params={}), "shape", "malformed"),
    "odd finish": (lambda e: e[6].update(finish_reason="end"), "finish-reason", "'end'"),
    "stop beside a call": (lambda e: e[6].update(finish_reason="stop"), "finish-reason", "beside a call"),
    "no call": (lambda e: e.__delitem__(slice(2, 6)), "finish-reason", "without a call"),
    "text afterwards": (lambda e: e.insert(7, {"text": "x"}), "finish-reason", "after the finish"),
    "after the usage": (lambda e: e.append({"text": "x"}), "finish-reason", "after the usage"),
    "usage too soon": (lambda e: e.insert(6, e.pop(7)), "finish-reason", "before the finish"),
    "wrong sum": (lambda e: e[7]["usage"].update(total_tokens=9), "usage", "not the sum"),
    "no finish": (lambda e: e.__delitem__(slice(6, 8)), "finish-reason", "None"),
}


def broken(body: bytes, *, stream: bool) -> list[tuple[str, str]]:
    return [(breach.law.name, str(breach)) for breach in laws.check(CURSOR, body, stream=stream)]


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("breach", BREACHES)
def test_a_broken_stream_is_noticed(breach: str, stream: bool) -> None:
    spoil, law, complaint = BREACHES[breach]
    said = good()
    spoil(said)
    body = join(CURSOR, [*said, "[DONE]"]) if stream else json.dumps(said).encode()
    assert any(name == law and complaint in text for name, text in broken(body, stream=stream))


def test_a_correct_stream_breaks_no_law() -> None:
    assert broken(join(CURSOR, [*good(), "[DONE]"]), stream=True) == []
    assert broken(b": keepalive\n\n" + join(CURSOR, [*good(), "[DONE]"]), stream=True) == []
    assert broken(json.dumps(good()).encode(), stream=False) == []
    assert broken(join(CURSOR, [*good()[:3], error()]), stream=True) == []
    assert broken(json.dumps(error()).encode(), stream=False) == []
    cut = [*good()[:3], {"finish_reason": "length"}, "[DONE]"]
    assert broken(join(CURSOR, cut), stream=True) == []


@pytest.mark.parametrize(
    ("said", "law", "complaint"),
    [
        ([*good()], "terminal-event", "no [DONE]"),
        ([*good()[:3], error(), "[DONE]"], "terminal-event", "[DONE] after an error"),
        ([*good()[:3], error(), {"text": "x"}], "terminal-event", "after an error"),
        ([*good(), "[DONE]", {"text": "x"}], "terminal-event", "after [DONE]"),
        ([error(message="")], "error-form", "no message"),
    ],
)
def test_a_missing_end_is_noticed(said: list[Any], law: str, complaint: str) -> None:
    assert any(n == law and complaint in t for n, t in broken(join(CURSOR, said), stream=True))


def test_an_invalid_body_is_noticed() -> None:
    assert broken(b"{", stream=False)[0][0] == "json"
    assert broken(b"\xff", stream=False)[0][0] == "utf-8"
    assert broken(b"3", stream=False)[0][0] == "json"
    assert broken(b'[3, "text"]', stream=False)[0][0] == "json"
    assert broken(json.dumps([error()]).encode(), stream=False)[0][0] == "terminal-event"
    assert broken(json.dumps({"error": {}}).encode(), stream=False)[0][0] == "error-form"
    named = join(CURSOR, [*good(), "[DONE]"]).replace(b"data: ", b"event: x\ndata: ", 1)
    assert broken(named, stream=True)[0][0] == "no-event-names"


def test_the_reduced_answer_of_a_stream() -> None:
    said = neutral.reduce(CURSOR, join(CURSOR, [*good(), "[DONE]"]), stream=True)
    assert (said["text"], said["thinking"], said["stop"]) == ("So.", "Hm.", "tool_use")
    assert [(c["name"], c["arguments"]) for c in said["tool_calls"]] == [
        ("Read", {"path": "f"}),
        ("get_weather", {}),
    ]
    assert said["usage"]["output"] == 2
    assert neutral.reduce(CURSOR, json.dumps(good()).encode(), stream=False) == said
    failed = neutral.reduce(CURSOR, join(CURSOR, [*good()[:3], error()]), stream=True)
    assert (failed["stop"], failed["error"], failed["tool_calls"]) == ("error", {"message": "It broke."}, [])
