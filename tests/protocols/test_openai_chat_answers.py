"""Chat answers: those of many servers are read, and the written ones suit strict clients."""

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
    Sealed,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from dragoman.model.messages import Citation, Media, Refusal, Seal, Text, Thinking, ToolCall

P = "openai-chat"
DONE = "[DONE]"


def chunk(finish: str | None = None, usage: Any = None, **delta: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "g"}
    base["choices"] = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return base | ({"usage": usage} if usage else {})


def call(index: int | None = 0, id: str | None = None, name: str | None = None, arguments: Any = None) -> Any:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    given = (("index", index), ("id", id), ("function", function))
    return chunk(tool_calls=[{k: v for k, v in given if v is not None}])


def calls(*frames: Any) -> list[tuple[str, str, str]]:
    said = answer(P, *frames, chunk("tool_calls"), DONE)
    return [(part.id, part.name, part.arguments) for part in said.calls()]


def test_a_plain_answer() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 2,
        "total_tokens": 11,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    last = {**chunk(), "choices": [], "usage": usage}
    assert events(P, chunk(role="assistant", content=""), chunk(content="hi"), chunk("stop"), last, DONE) == [
        Start("c1", "g", 7),
        BlockStart(0, Text()),
        TextDelta(0, "hi"),
        UsageSeen(Usage(input=5, cache_read=4, output=2)),
        BlockEnd(0),
        End(Stop.END),
    ]


def test_text_reasoning_and_refusal_are_distinguished() -> None:
    said = answer(
        P,
        chunk(reasoning_content="hm "),
        chunk(reasoning="so"),
        chunk(content="yes"),
        chunk(refusal="no"),
        chunk("stop"),
    )
    assert (said.thinking(), said.text(), said.refusal()) == ("hm so", "yes", "no")
    assert said.end == End(Stop.REFUSAL)


@pytest.mark.parametrize(
    "frames",
    [
        [call(0, "a", "f", ""), call(0, arguments='{"x"'), call(0, arguments=":1}")],
        [call(None, "a", "f", '{"x"'), call(None, arguments=":1}")],
        [call(3, "a", "f", '{"x"'), call(3, arguments=":1}")],
        [call(0, "a", "f", '{"x"'), call(1, arguments=":1}")],
        [call(0, "a", "f", '{"x"'), call(0, "a", "f", ":1}")],
        [call(0, "a", "f", '{"x"'), call(0, "", "", ":1}")],
        [call(0, "a", None, '{"x"'), call(0, None, "f", ":1}")],
        [call(0, "a", "f", {"x": 1})],
        [call(0, "a", "f", '{"x":1}'), chunk(tool_calls=[])],
        [chunk(tool_calls=[{"index": "0", "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}}])],
    ],
    ids=[
        "plain",
        "no index",
        "odd index",
        "stray index",
        "repeated id",
        "empty id",
        "late name",
        "object",
        "empty list",
        "text index",
    ],
)
def test_one_call_in_every_form_of_fragments(frames: list[Any]) -> None:
    assert calls(*frames) == [("a", "f", '{"x":1}')]


@pytest.mark.parametrize(
    "frames",
    [
        [call(0, "a", "f", "{}"), call(1, "b", "g", "{}")],
        [call(0, "a", "f", "{}"), call(0, "b", "g", "{}")],
        [call(None, "a", "f", "{}"), call(None, "b", "g", "{}")],
        [call(0, "a", "f", "{"), call(1, "b", "g", "{"), call(0, arguments="}"), call(1, arguments="}")],
    ],
    ids=["plain", "same index", "no index", "interleaved"],
)
def test_two_calls_with_every_form_of_index_and_id(frames: list[Any]) -> None:
    assert calls(*frames) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_an_old_function_call() -> None:
    assert calls(
        chunk(function_call={"name": "f", "arguments": "{"}), chunk(function_call={"arguments": "}"})
    ) == [("", "f", "{}")]


def test_a_freeform_call() -> None:
    head = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "p", "input": "x"}}
    tail = {"index": 0, "custom": {"input": "y"}}
    said = answer(P, chunk(tool_calls=[head]), chunk(tool_calls=[tail]), chunk("tool_calls"), DONE)
    assert said.calls() == [ToolCall(id="a", name="p", kind="custom", arguments="xy")]


def test_an_empty_custom_member_beside_a_function_is_ignored() -> None:
    """Quirk 110: Snowflake sends both with every call."""
    both = {
        "index": 0,
        "id": "a",
        "function": {"name": "f", "arguments": "{}"},
        "custom": {"input": "", "name": ""},
    }
    assert calls(chunk(tool_calls=[both])) == [("a", "f", "{}")]


@pytest.mark.parametrize(
    ("frames", "want"),
    [
        ([chunk("stop")], Stop.END),
        ([chunk("length")], Stop.MAX_TOKENS),
        ([chunk("content_filter")], Stop.FILTER),
        ([chunk("eos")], Stop.END),
        ([chunk("length"), chunk("stop")], Stop.MAX_TOKENS),
        ([chunk(), DONE], Stop.END),
        ([chunk("stop"), DONE, chunk(content="late")], Stop.END),
    ],
    ids=["stop", "length", "filter", "new", "graver first", "done only", "after done"],
)
def test_finish_reasons_are_read(frames: list[Any], want: Stop) -> None:
    said = answer(P, chunk(content="hi"), *frames)
    assert (said.text(), said.end) == ("hi", End(want))


def test_an_answer_without_finish_reason_or_done_is_cut() -> None:
    for frames in ([], [chunk(role="assistant")], [chunk(content="hi")], [DONE]):
        last = events(P, *frames)[-1]
        assert isinstance(last, Failed)
        assert last.code == "stream_cut"


@pytest.mark.parametrize(
    ("frame", "kind", "message"),
    [
        (
            {"error": {"message": "slow", "type": "rate_limit_error", "code": 429}},
            FailureKind.RATE_LIMIT,
            "slow",
        ),
        ({"error": "plain"}, FailureKind.UPSTREAM, "plain"),
        (
            {"error": {"code": "tool_use_failed", "message": "bad", "status_code": 400}},
            FailureKind.INVALID_REQUEST,
            "bad",
        ),
        ({**chunk("error"), "error": {"code": 502, "message": "gone"}}, FailureKind.UPSTREAM, "gone"),
        (chunk("error"), FailureKind.UPSTREAM, "the upstream ended the answer with 'error'"),
        ({"object": "error", "message": "odd", "code": "3280"}, FailureKind.UPSTREAM, "odd"),
        ({"detail": "not found"}, FailureKind.UPSTREAM, "not found"),
        (
            {"base_resp": {"status_code": 1008, "status_msg": "no money"}, "choices": None},
            FailureKind.UPSTREAM,
            "no money",
        ),
    ],
    ids=["openai", "string", "groq", "openrouter", "reason", "mistral", "fastapi", "minimax"],
)
def test_errors_in_a_200_are_read(frame: Any, kind: FailureKind, message: str) -> None:
    last = events(P, chunk(content="hi"), frame, DONE)[-1]
    assert isinstance(last, Failed)
    assert (last.kind, last.message) == (kind, message)


def test_separate_reasoning_tokens_are_added() -> None:
    """Quirk 111: at xAI the total is more than its parts."""
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 26,
        "total_tokens": 289,
        "completion_tokens_details": {"reasoning_tokens": 253},
    }
    assert answer(P, chunk("stop", usage=usage)).usage == Usage(input=10, output=279, reasoning=253)


def test_usage_in_the_last_chunk_of_groq() -> None:
    last = {**chunk("stop"), "x_groq": {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}}
    assert answer(P, chunk(content="hi"), last).usage == Usage(input=1, output=2)


def test_content_as_a_list_is_read() -> None:
    content = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "hi"},
        "!",
    ]
    said = answer(P, chunk(content=content), chunk("stop"))
    assert (said.thinking(), said.text()) == ("hm", "hi!")


def detail(data: str) -> list[dict[str, object]]:
    return [{"type": "reasoning.encrypted", "data": data, "index": 0}]


def sealed(data: str, text: str = "") -> Thinking:
    return Thinking(
        text, seal=Seal(P, f'[{{"type":"reasoning.encrypted","data":"{data}","index":0}}]', issuer="up")
    )


def test_opaque_reasoning_belongs_to_its_reasoning_text() -> None:
    said, end = chunk(content="hi"), chunk("stop")
    thought = chunk(reasoning="hm")
    early = answer(P, chunk(reasoning_details=detail("x")), said, end)
    assert early.parts == [sealed("x"), Text("hi")]
    for chunks in (
        [chunk(reasoning_details=detail("x")), thought],
        [thought, chunk(reasoning_details=detail("x"))],
    ):
        assert answer(P, *chunks, said, end).parts == [sealed("x", "hm"), Text("hi")]
        assert answer(P, *chunks, end).parts == [sealed("x", "hm")]
    twice = answer(
        P,
        thought,
        chunk(reasoning_details=detail("x")),
        said,
        thought,
        chunk(reasoning_details=detail("y")),
        end,
    )
    assert twice.parts == [sealed("x", "hm"), Text("hi"), sealed("y", "hm")]


def test_opaque_reasoning_after_the_text_is_kept() -> None:
    parts = answer(
        P, chunk(reasoning="hm"), chunk(content="hi"), chunk(reasoning_details=detail("x")), chunk("stop")
    ).parts
    assert parts == [Thinking("hm"), Text("hi"), sealed("x")]


def test_signatures_of_gemini_behind_chat_are_read() -> None:
    head = {
        "index": 0,
        "id": "a",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "c2ln"}},
    }
    (part,) = answer(P, chunk(tool_calls=[head]), chunk("tool_calls")).calls()
    assert part.seal is not None
    assert (part.seal.data, part.seal.issuer) == ("c2ln", "up")


def test_annotations_are_citations() -> None:
    note = {
        "type": "url_citation",
        "url_citation": {"url": "https://x", "title": "X", "start_index": 1, "end_index": 3},
    }
    found = events(P, chunk(content="hi"), chunk(annotations=[note]), chunk("stop"))
    assert CitationAdded(0, Citation("https://x", "X", start=1, end=3)) in found


# Writing.


def test_a_written_answer() -> None:
    frames = written(
        P,
        Start("", "g"),
        BlockStart(0, Thinking()),
        TextDelta(0, "hm"),
        BlockEnd(0),
        BlockStart(1, Text()),
        TextDelta(1, "hi"),
        BlockStart(2, ToolCall(id="a", name="f")),
        ArgumentsDelta(2, "{"),
        BlockStart(3, ToolCall(id="b", name="p", kind="custom")),
        ArgumentsDelta(3, "x"),
        ArgumentsDelta(2, "}"),
        UsageSeen(Usage(input=5, cache_read=4, output=2, reasoning=1)),
        End(Stop.TOOL),
    )
    assert frames[-1] == DONE
    usage = frames[-2]["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (9, 2, 11)
    assert frames[-2]["choices"] == []
    deltas = [frame["choices"][0]["delta"] for frame in frames[:-2]]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "hi"},
        {
            "tool_calls": [
                {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": "{"}}]},
        {"tool_calls": [{"index": 1, "id": "b", "type": "custom", "custom": {"name": "p", "input": ""}}]},
        {"tool_calls": [{"index": 1, "custom": {"input": "x"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]},
        {},
    ]
    assert [frame["choices"][0]["finish_reason"] for frame in frames[:-2]] == [None] * 8 + ["tool_calls"]
    assert {(frame["id"], frame["created"], frame["model"]) for frame in frames[:-1]} == {
        ("chatcmpl-e1", 5, "g")
    }


@pytest.mark.parametrize(
    ("part", "stop", "finish"),
    [
        (Refusal(), Stop.REFUSAL, "stop"),
        (Text(), Stop.REFUSAL, "content_filter"),
        (Text(), Stop.PAUSE, "stop"),
    ],
)
def test_finish_reasons(part: Any, stop: Stop, finish: str) -> None:
    said = [Start(), BlockStart(0, part), TextDelta(0, "no"), BlockEnd(0), End(stop)]
    assert written(P, *said)[-2]["choices"][0]["finish_reason"] == finish
    assert rendered(P, *said)["choices"][0]["finish_reason"] == finish


def test_listed_extras_are_numbered_so_that_the_sdk_can_merge_them() -> None:
    frames = written(
        P,
        Start(),
        BlockStart(0, Thinking()),
        Sealed(0, Seal(P, '[{"type":"reasoning.encrypted","data":"x"}]')),
        BlockEnd(0),
        BlockStart(1, Text()),
        TextDelta(1, "hi"),
        CitationAdded(1, Citation("https://x")),
        BlockEnd(1),
        BlockStart(2, Media(kind="image", media_type="image/png", data="aGk=")),
        BlockEnd(2),
    )
    listed = [
        item
        for frame in frames
        for field in frame["choices"][0]["delta"].values()
        if isinstance(field, list)
        for item in field
    ]
    assert [item["index"] for item in listed] == [0, 1, 2]


def test_an_error_has_a_message_and_a_type() -> None:
    failed = Failed(FailureKind.RATE_LIMIT, "slow", 429, "tokens")
    assert written(P, failed) == [
        {"error": {"message": "slow", "type": "rate_limit_error", "param": None, "code": "tokens"}}
    ]
