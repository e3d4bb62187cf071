"""Anthropic answers: quirks of real streams are read, and the written streams are strict."""

from typing import Any

import pytest
from support.decoded import answer, events, rendered, written

from dragoman.model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Failed,
    FailureKind,
    Ping,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Unknown,
    Usage,
    UsageSeen,
)
from dragoman.model.messages import Citation, Media, Opaque, Raw, Refusal, Seal, Text, Thinking, ToolCall

P = "anthropic"


def begun(**message: Any) -> dict[str, Any]:
    base = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [],
        "usage": {"input_tokens": 3},
    }
    return {"type": "message_start", "message": {**base, **message}}


def start(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def stop(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def stopped(reason: str, usage: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "type": "message_delta",
        "delta": {"stop_reason": reason, **more},
        "usage": usage or {"output_tokens": 4},
    }


OVER = {"type": "message_stop"}
STARTED = [Start("m1", "c"), UsageSeen(Usage(input=3))]


def test_a_plain_answer() -> None:
    assert events(
        P,
        begun(),
        {"type": "ping"},
        start(0, type="text", text=""),
        delta(0, "text_delta", text="hi"),
        stop(0),
        stopped("end_turn"),
        OVER,
    ) == [
        *STARTED,
        Ping(),
        BlockStart(0, Text()),
        TextDelta(0, "hi"),
        BlockEnd(0),
        UsageSeen(Usage(output=4)),
        End(Stop.END),
    ]


def test_thinking_with_its_signature_and_redacted_thinking() -> None:
    found = events(
        P,
        begun(),
        start(0, type="thinking", thinking="", signature=""),
        delta(0, "thinking_delta", thinking="hm"),
        delta(0, "signature_delta", signature="sig"),
        stop(0),
        start(1, type="redacted_thinking", data="blob"),
        stop(1),
        stopped("end_turn"),
        OVER,
    )
    assert Sealed(0, Seal(P, "sig", issuer="up")) in found
    assert BlockStart(1, Thinking(seal=Seal(P, "blob", issuer="up", redacted=True))) in found


def test_an_answer_that_is_complete_in_message_start() -> None:
    """Quirk 98: programmatic tool calling sends nothing but `message_start` and `message_stop`."""
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
    whole = begun(content=[{"type": "text", "text": "ok"}, call], stop_reason="tool_use")
    said = answer(P, whole, OVER)
    assert (said.text(), said.calls()[0].arguments) == ("ok", '{"a": 1}')
    assert said.end == End(Stop.TOOL)


def test_input_in_the_start_of_a_call_is_used_unless_it_is_streamed() -> None:
    """Quirk 99."""
    given = start(0, type="tool_use", id="t1", name="f", input={"a": 1})
    assert answer(P, begun(), given, stop(0), stopped("tool_use"), OVER).calls()[0].arguments == '{"a": 1}'
    streamed = [
        delta(0, "input_json_delta", partial_json='{"b":'),
        delta(0, "input_json_delta", partial_json="2}"),
    ]
    said = answer(P, begun(), given, *streamed, stop(0), stopped("tool_use"), OVER)
    assert said.calls()[0].arguments == '{"b":2}'


def test_the_last_usage_replaces_that_of_the_start() -> None:
    """Quirks 92 and 100: counts are cumulative, and a missing count keeps its value."""
    first = {"input_tokens": 55_196, "cache_read_input_tokens": 7, "output_tokens": 1}
    last = {"input_tokens": 181, "output_tokens": 9, "output_tokens_details": {"thinking_tokens": 5}}
    said = answer(P, begun(usage=first), stopped("end_turn", last), OVER)
    assert said.usage == Usage(input=181, cache_read=7, output=9, reasoning=5)


@pytest.mark.parametrize(
    ("reason", "want"),
    [
        ("end_turn", Stop.END),
        ("max_tokens", Stop.MAX_TOKENS),
        ("tool_use", Stop.TOOL),
        ("pause_turn", Stop.PAUSE),
        ("refusal", Stop.REFUSAL),
        ("model_context_window_exceeded", Stop.CONTEXT_FULL),
        ("something_new", Stop.END),
    ],
)
def test_stop_reasons(reason: str, want: Stop) -> None:
    assert events(P, begun(), stopped(reason), OVER)[-1] == End(want)


def test_a_stop_sequence_and_an_explanation_are_kept() -> None:
    assert events(P, begun(), stopped("stop_sequence", stop_sequence="END"), OVER)[-1] == End(
        Stop.STOP_SEQUENCE, "END"
    )
    details = {"type": "refusal", "explanation": "unsafe"}
    assert events(P, begun(), stopped("refusal", stop_details=details), OVER)[-1] == End(
        Stop.REFUSAL, None, "unsafe"
    )


def test_server_tool_blocks_are_streamed() -> None:
    """A server tool's input is streamed like a call's, but the client does not run it."""
    said = [
        begun(),
        start(0, type="server_tool_use", id="s1", name="web_search", input={}),
        delta(0, "input_json_delta", partial_json='{"q":'),
        delta(0, "input_json_delta", partial_json='"x"}'),
        stop(0),
        stopped("end_turn"),
        OVER,
    ]
    value = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    opaque = Opaque(Raw(P, value), "server_tool_use")
    assert events(P, *said)[2:6] == [
        BlockStart(0, opaque),
        ArgumentsDelta(0, '{"q":'),
        ArgumentsDelta(0, '"x"}'),
        BlockEnd(0),
    ]
    assert rendered(P, *events(P, *said))["content"] == [{**value, "input": {"q": "x"}}]


def test_citations() -> None:
    cited = {"type": "web_search_result_location", "url": "https://x", "title": "X", "cited_text": "x"}
    found = events(
        P, begun(), start(0, type="text", text=""), delta(0, "citations_delta", citation=cited), stop(0)
    )
    assert found[3] == CitationAdded(0, Citation("https://x", "X", "x", raw=Raw(P, cited)))


@pytest.mark.parametrize(
    "frames",
    [
        [delta(0, "text_delta", text="hi")],
        [start(0, type="text", text=""), delta(0, "text_delta", text="hi")],
        [start(5, type="text", text=""), delta(5, "text_delta", text="hi"), stop(5)],
        [{"type": "content_block_start", "content_block": {"type": "text", "text": "hi"}}],
        [start(0, type="text", text="hi"), begun(), stop(0)],
        [start(0, type="text", text="hi"), stop(0), stop(0), stop(7)],
        [start(0, type="text", text="hi"), {"type": "content_block_delta", "index": 0}, stop(0)],
        [start(0, type="text", text="hi"), delta(0, "hologram_delta", beam=1), stop(0)],
    ],
    ids=["no start", "no stop", "gap", "no index", "started twice", "stopped twice", "no delta", "new delta"],
)
def test_incomplete_blocks_are_read(frames: list[Any]) -> None:
    said = answer(P, begun(), *frames, stopped("end_turn"), OVER)
    assert (said.text(), said.end) == ("hi", End(Stop.END))


@pytest.mark.parametrize(
    ("frame", "kind", "message"),
    [
        (
            {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
            FailureKind.OVERLOADED,
            "busy",
        ),
        (
            {"type": "x", "error": {"type": "rate_limit_error", "message": "slow"}},
            FailureKind.RATE_LIMIT,
            "slow",
        ),
        ({"type": "error", "error": "plain"}, FailureKind.UPSTREAM, "plain"),
    ],
)
def test_errors_end_the_answer(frame: Any, kind: FailureKind, message: str) -> None:
    last = events(P, begun(), frame, stopped("end_turn"), OVER)[-1]
    assert isinstance(last, Failed)
    assert (last.kind, last.message) == (kind, message)


@pytest.mark.parametrize("kept", range(6))
def test_an_answer_without_a_stop_reason_is_cut(kept: int) -> None:
    whole = [
        begun(),
        start(0, type="text", text=""),
        delta(0, "text_delta", text="hi"),
        stop(0),
        {"type": "ping"},
    ]
    last = events(P, *whole[:kept])[-1]
    assert isinstance(last, Failed)
    assert last.code == "stream_cut"


def test_a_stop_reason_without_message_stop_is_an_end() -> None:
    assert events(P, begun(), stopped("end_turn"))[-1] == End(Stop.END)


def test_unknown_events_are_kept() -> None:
    found = events(P, begun(), {"type": "amazon-bedrock-invocationMetrics", "n": 1})
    assert (
        Unknown(
            P, "amazon-bedrock-invocationMetrics", b'{"type": "amazon-bedrock-invocationMetrics", "n": 1}'
        )
        in found
    )


# Writing.

OPENED = [Start("", "c"), UsageSeen(Usage(input=3, cache_read=2))]


def test_a_written_answer() -> None:
    frames = written(
        P,
        *OPENED,
        BlockStart(0, Thinking()),
        TextDelta(0, "hm"),
        Sealed(0, Seal(P, "sig")),
        BlockEnd(0),
        BlockStart(1, ToolCall(id="t1", name="f")),
        ArgumentsDelta(1, '{"a":1}'),
        BlockEnd(1),
        UsageSeen(Usage(output=9)),
        End(Stop.TOOL),
    )
    assert [frame["type"].removeprefix("content_block_") for frame in frames] == [
        "message_start",
        *("start", "delta", "delta", "stop"),
        *("start", "delta", "stop"),
        "message_delta",
        "message_stop",
    ]
    assert frames[3]["delta"] == {"type": "signature_delta", "signature": "sig"}
    assert [frame["index"] for frame in frames[1:8]] == [0, 0, 0, 0, 1, 1, 1]
    assert frames[8]["usage"] == {
        "input_tokens": 3,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 2,
        "output_tokens": 9,
    }


def test_a_foreign_seal_on_a_call_is_written_as_a_thinking_block_before_it() -> None:
    sealed = ToolCall(id="t1", name="f", seal=Seal("gemini", "c2ln"))
    said = [*OPENED, BlockStart(0, sealed), BlockEnd(0), End(Stop.TOOL)]
    blocks = [frame["content_block"]["type"] for frame in written(P, *said) if "content_block" in frame]
    assert blocks == ["thinking", "tool_use"]
    assert [block["type"] for block in rendered(P, *said)["content"]] == ["thinking", "tool_use"]


def test_dropped_blocks_leave_no_gap_in_the_indexes() -> None:
    said = [
        *OPENED,
        BlockStart(0, Media(kind="image", data="aGk=")),
        BlockEnd(0),
        BlockStart(1, Opaque(Raw("gemini", {"x": 1}), "x")),
        BlockEnd(1),
        BlockStart(2, Refusal()),
        TextDelta(2, "no"),
        BlockEnd(2),
        End(Stop.REFUSAL, detail="unsafe"),
    ]
    frames = written(P, *said)
    assert [frame.get("index") for frame in frames if "index" in frame] == [0, 0, 0]
    assert frames[-2]["delta"]["stop_details"]["explanation"] == "unsafe"
    assert rendered(P, *said)["content"] == [{"type": "text", "text": "no"}]


def test_an_error_before_the_start_is_the_only_event() -> None:
    assert written(P, Ping(), Unknown(P, "x", b"{}")) == []
    failed = Failed(FailureKind.OVERLOADED, "busy", 529)
    assert written(P, failed) == [
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}, "request_id": "e1"}
    ]


def test_numbers_keep_their_digits_in_a_body() -> None:
    said = [
        *OPENED,
        BlockStart(0, ToolCall(id="t1", name="f")),
        ArgumentsDelta(0, '{"a": 12345678901234567890123}'),
    ]
    assert rendered(P, *said, BlockEnd(0), End(Stop.TOOL))["content"][0]["input"] == {
        "a": 12345678901234567890123
    }
