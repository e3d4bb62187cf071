"""The reduction of answers to their neutral form: every sample, and difficult endings."""

import json

import pytest
from support.edited_streams import first, join, place, split
from support.sample_streams import ERRORS, SAMPLES
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.conform import neutral
from dragoman.conform.shape import Json, Neutral, UnreadableError

ALL = [(protocol, kind) for protocol in PROTOCOLS for kind in SAMPLES[protocol]]


def without_raw(answer: Neutral) -> dict[str, object]:
    calls = [{k: v for k, v in call.items() if k != "raw"} for call in answer["tool_calls"]]
    return {**answer, "tool_calls": calls}


@pytest.mark.parametrize(("protocol", "kind"), ALL)
def test_a_stream_is_reduced(protocol: str, kind: str) -> None:
    sample = SAMPLES[protocol][kind]
    assert neutral.reduce(protocol, sample.stream, stream=True) == sample.expect


@pytest.mark.parametrize(("protocol", "kind"), [(p, k) for p, k in ALL if SAMPLES[p][k].whole])
def test_a_whole_body_is_reduced(protocol: str, kind: str) -> None:
    sample = SAMPLES[protocol][kind]
    assert sample.whole is not None
    got = neutral.reduce(protocol, sample.whole, stream=False)
    assert without_raw(got) == without_raw(sample.expect)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_error_body_is_reduced(protocol: str) -> None:
    error = ERRORS[protocol]
    assert neutral.reduce(protocol, error.body, stream=False) == error.expect


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_without_its_terminal_event_a_stream_has_no_stop(protocol: str) -> None:
    events = split(SAMPLES[protocol]["text"].stream)
    # Chat: the finish_reason, the usage and [DONE].
    cut = events[:-3] if protocol == CHAT else events[:-1]
    got = neutral.reduce(protocol, join(protocol, cut), stream=True)
    assert got["stop"] is None
    assert got["error"] is None


def test_a_stop_reason_without_message_stop_does_not_count() -> None:
    events = split(SAMPLES[ANTHROPIC]["text"].stream)
    assert events[-2]["type"] == "message_delta"
    got = neutral.reduce(ANTHROPIC, join(ANTHROPIC, events[:-1]), stream=True)
    assert got["stop"] is None


@pytest.mark.parametrize("protocol", [ANTHROPIC, RESPONSES])
def test_a_call_that_was_never_closed_is_raw_even_if_it_looks_whole(protocol: str) -> None:
    sample = SAMPLES[protocol]["tool"]
    events = split(sample.stream)
    closing = {"content_block_stop", "response.output_item.done"}
    end = next(i for i, event in enumerate(events) if event["type"] in closing)
    error = {"type": "error", "error": {"message": "boom", "type": "x"}}
    got = neutral.reduce(protocol, join(protocol, [*events[:end], error]), stream=True)
    assert got["stop"] == "error"
    assert got["error"] == {"message": "boom"}
    assert got["tool_calls"][0]["arguments"] == sample.expect["tool_calls"][0]["raw"]


def test_events_after_an_error_are_ignored() -> None:
    for protocol in PROTOCOLS:
        text = split(SAMPLES[protocol]["text"].stream)
        error = split(SAMPLES[protocol]["error"].stream)
        got = neutral.reduce(protocol, join(protocol, [*error, *text]), stream=True)
        assert got["stop"] == "error"
        assert got["text"] == SAMPLES[protocol]["error"].expect["text"]


def call_of(answer: Neutral) -> tuple[object, str]:
    return answer["tool_calls"][0]["arguments"], answer["tool_calls"][0]["raw"]


@pytest.mark.parametrize(
    ("start", "fragments", "want"),
    [
        ({}, [], ({}, "{}")),
        ({}, [""], ({}, "")),
        ({"a": 1}, [""], ({"a": 1}, '{"a":1}')),
        ({"a": 1}, ['{"b":2}'], ({"b": 2}, '{"b":2}')),
        ({}, ['{"a"'], ('{"a"', '{"a"')),
        ({}, ["[1]"], ("[1]", "[1]")),
        ({}, ['{"a":NaN}'], ('{"a":NaN}', '{"a":NaN}')),
        ({}, ['{"a":1}{"a":1}'], ('{"a":1}{"a":1}', '{"a":1}{"a":1}')),
    ],
)
def test_the_input_of_an_anthropic_call_is_reduced(start: Json, fragments: list[str], want: object) -> None:
    events = split(SAMPLES[ANTHROPIC]["tool"].stream)
    first(events, "content_block_start")["content_block"]["input"] = start
    kept = [event for event in events if event["type"] != "content_block_delta"]
    where = place(kept, "content_block_stop")
    kept[where:where] = [
        {
            "type": "content_block_delta",
            "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": fragment},
        }
        for fragment in fragments
    ]
    assert call_of(neutral.reduce(ANTHROPIC, join(ANTHROPIC, kept), stream=True)) == want


@pytest.mark.parametrize(
    ("call", "want"),
    [
        ({"name": "f", "args": {}}, ({}, "{}")),
        ({"name": "f"}, ("", "")),
        ({"name": "f", "args": None}, ("", "")),
        ({"name": "f", "args": "x"}, ('"x"', '"x"')),
    ],
)
def test_the_args_of_a_gemini_call_are_reduced(call: Json, want: object) -> None:
    content = {"parts": [{"functionCall": call}]}
    body = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    got = neutral.reduce(GEMINI, json.dumps(body).encode(), stream=False)
    assert call_of(got) == want
    assert got["tool_calls"][0]["id"] == "@0"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("STOP", "end_turn"),
        ("MAX_TOKENS", "max_tokens"),
        ("SAFETY", "content_filter"),
        ("RECITATION", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "error"),
        ("UNEXPECTED_TOOL_CALL", "error"),
        ("NEWS", "NEWS"),
    ],
)
def test_how_a_gemini_answer_ends(reason: str, stop: str) -> None:
    body = json.dumps({"candidates": [{"finishReason": reason}]}).encode()
    assert neutral.reduce(GEMINI, body, stream=False)["stop"] == stop


def test_a_gemini_error_may_be_wrapped_in_a_list() -> None:
    body = b"[" + ERRORS[GEMINI].body + b"]"
    assert neutral.reduce(GEMINI, body, stream=False) == ERRORS[GEMINI].expect


def test_gemini_usage_without_counts_keeps_earlier_counts() -> None:
    events = split(SAMPLES[GEMINI]["text"].stream)
    events[0]["usageMetadata"] = {"promptTokenCount": 5, "thoughtsTokenCount": 2}
    for event in events[1:]:
        event["usageMetadata"] = {"trafficType": "ON_DEMAND"}
    got = neutral.reduce(GEMINI, join(GEMINI, events), stream=True)
    assert got["usage"] == {"input": 5, "output": 2, "reasoning": 2}


def test_chat_reasoning_in_other_members_is_reduced() -> None:
    message = {
        "role": "assistant",
        "content": "x",
        "reasoning": "hm",
        "reasoning_details": [
            {"type": "reasoning.text", "text": "hm", "signature": "c2ln"},
            {"type": "reasoning.encrypted", "data": "ZW5j"},
            {"type": "reasoning.summary", "summary": "hm"},
        ],
    }
    body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    got = neutral.reduce(CHAT, json.dumps(body).encode(), stream=False)
    assert got["thinking"] == "hm"
    assert got["opaque"] == ["c2ln", "ZW5j"]


def test_a_chat_error_may_be_a_string() -> None:
    got = neutral.reduce(CHAT, b'data: {"error":"slow down"}\n\ndata: [DONE]\n\n', stream=True)
    assert got["error"] == {"message": "slow down"}


@pytest.mark.parametrize(
    ("details", "status", "stop"),
    [
        (None, "completed", "end_turn"),
        ({"reason": "max_output_tokens"}, "incomplete", "max_tokens"),
        ({"reason": "content_filter"}, "incomplete", "content_filter"),
        (None, "failed", "error"),
        (None, "cancelled", "error"),
    ],
)
def test_how_a_responses_answer_ends(details: Json | None, status: str, stop: str) -> None:
    body = {"output": [], "status": status, "incomplete_details": details}
    assert neutral.reduce(RESPONSES, json.dumps(body).encode(), stream=False)["stop"] == stop


def test_a_responses_call_that_is_incomplete_is_raw() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    body = {
        "output": [{**call, "status": "incomplete"}],
        "status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"},
    }
    got = neutral.reduce(RESPONSES, json.dumps(body).encode(), stream=False)
    assert call_of(got) == ("{}", "{}")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("body", [b"", b"<html>", b"3", b"\xff"])
def test_a_body_that_is_no_answer_is_unreadable(protocol: str, body: bytes) -> None:
    with pytest.raises(UnreadableError):
        neutral.reduce(protocol, body, stream=False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_stream_that_is_no_answer_is_unreadable(protocol: str) -> None:
    with pytest.raises(UnreadableError):
        neutral.reduce(protocol, b"data: nonsense\n\n", stream=True)
