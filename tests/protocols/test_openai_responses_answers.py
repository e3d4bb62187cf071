"""Responses answers: text that is sent up to four times is read once; written events repeat it exactly."""

from typing import Any

import pytest
from support.decoded import answer, events, rendered, written

from dragoman.model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Unknown,
    Usage,
    UsageSeen,
)
from dragoman.model.messages import (
    Citation,
    Media,
    Opaque,
    Raw,
    Refusal,
    Seal,
    Text,
    Thinking,
    ToolCall,
)

P = "openai-responses"
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
CALL = {"id": "fc_1", "type": "function_call", "call_id": "a", "name": "f", "arguments": ""}


def response(kind: str = "completed", **fields: Any) -> dict[str, Any]:
    status = kind if kind not in ("created", "in_progress", "done") else "in_progress"
    base = {"id": "r1", "object": "response", "created_at": 7.0, "model": "g", "status": status, "output": []}
    return {"type": f"response.{kind}", "response": {**base, **fields}}


def added(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def event(kind: str, index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}", "output_index": index, **fields}


def said_text(text: str) -> dict[str, Any]:
    return {**MESSAGE, "content": [{"type": "output_text", "text": text, "annotations": []}]}


TEXT = [event("output_text.delta", content_index=0, delta=piece) for piece in ("h", "i")]
ARGUMENTS = [event("function_call_arguments.delta", delta=piece) for piece in ("{", "}")]
WHOLE_CALL = {**CALL, "arguments": "{}"}


@pytest.mark.parametrize(
    "frames",
    [
        [added(MESSAGE), *TEXT, done(said_text("hi")), response(output=[said_text("hi")])],
        [*TEXT, response()],
        [added(MESSAGE), TEXT[0], done(said_text("hi")), response()],
        [added(MESSAGE), done(said_text("hi")), response()],
        [response(output=[said_text("hi")])],
        [added(MESSAGE), TEXT[0], response(output=[said_text("hi")])],
        [
            added(MESSAGE),
            *TEXT,
            done({**said_text("hi"), "id": "other"}),
            response(output=[{**said_text("hi"), "id": "x"}]),
        ],
        [added(MESSAGE, 4), *({**frame, "output_index": 4} for frame in TEXT), response()],
        [{"type": "response.output_item.added", "output_index": 0, "item": None}, *TEXT, response()],
    ],
    ids=[
        "all",
        "deltas only",
        "half",
        "item only",
        "final only",
        "half and final",
        "other ids",
        "gap",
        "null item",
    ],
)
def test_repeated_text_is_read_once(frames: list[Any]) -> None:
    said = answer(P, response("created"), *frames)
    assert (said.text(), said.end) == ("hi", End(Stop.END))


@pytest.mark.parametrize(
    "frames",
    [
        [
            added(CALL),
            *ARGUMENTS,
            event("function_call_arguments.done", arguments="{}"),
            done(WHOLE_CALL),
            response(),
        ],
        [added(CALL), event("function_call_arguments.done", arguments="{}"), response()],
        [added(CALL), ARGUMENTS[0], event("function_call_arguments.done", arguments="{}"), response()],
        [added(CALL), done(WHOLE_CALL), response()],
        [response(output=[WHOLE_CALL])],
        [*ARGUMENTS, added(CALL), response()],
        [*ARGUMENTS, done(WHOLE_CALL), response(output=[WHOLE_CALL])],
        [added(CALL), done({**CALL, "arguments": {}}), response()],
        [added(CALL), *ARGUMENTS, done({**WHOLE_CALL, "type": "gunction_call"}), response()],
    ],
    ids=["all", "done only", "half", "item only", "final only", "early", "late item", "object", "garbled"],
)
def test_repeated_arguments_are_read_once(frames: list[Any]) -> None:
    said = answer(P, response("created"), *frames)
    assert [(call.id, call.name, call.arguments) for call in said.calls()] == [("a", "f", "{}")]
    assert len(said.parts) == 1
    assert said.end == End(Stop.TOOL)


def test_a_plain_answer() -> None:
    usage = {
        "input_tokens": 9,
        "output_tokens": 2,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 1},
    }
    assert events(
        P, response("created"), added(MESSAGE), *TEXT, done(said_text("hi")), response(usage=usage)
    ) == [
        Start("r1", "g", 7),
        BlockStart(0, Text()),
        TextDelta(0, "h"),
        TextDelta(0, "i"),
        BlockEnd(0),
        UsageSeen(Usage(input=5, cache_read=4, output=2, reasoning=1)),
        End(Stop.END),
    ]


def test_reasoning_with_summaries_and_encrypted_content() -> None:
    item = {"id": "rs_1", "type": "reasoning", "summary": []}
    full = {
        **item,
        "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
        "encrypted_content": "enc",
    }
    pieces = [
        event("reasoning_summary_text.delta", summary_index=n, delta=text)
        for n, text in enumerate(("one", "two"))
    ]
    for frames in ([added(item), *pieces, done(full)], [added(item), done(full)]):
        (part,) = answer(P, response("created"), *frames, response()).parts
        assert isinstance(part, Thinking)
        assert (part.text, part.seal) == ("one\n\ntwo", Seal(P, "enc", "rs_1", issuer="up"))


def test_a_refusal_sets_the_stop_reason() -> None:
    refused = {**MESSAGE, "content": [{"type": "refusal", "refusal": "no"}]}
    for frames in ([event("refusal.delta", content_index=0, delta="no")], [done(refused)]):
        said = answer(P, response("created"), added(MESSAGE), *frames, response())
        assert (said.refusal(), said.end) == ("no", End(Stop.REFUSAL))


def test_freeform_and_namespaced_calls() -> None:
    item = {
        "id": "ctc_1",
        "type": "custom_tool_call",
        "call_id": "a",
        "name": "p",
        "input": "",
        "namespace": "ns",
    }
    delta = event("custom_tool_call_input.delta", delta="x")
    (call,) = answer(
        P, response("created"), added(item), delta, done({**item, "input": "x"}), response()
    ).calls()
    assert (call.kind, call.namespace, call.arguments) == ("custom", "ns", "x")


def test_responses_only_items_stay_whole() -> None:
    item = {"id": "ws_1", "type": "web_search_call", "action": {"query": "q"}}
    found = events(
        P, response("created"), added(item), event("web_search_call.searching"), done(item), response()
    )
    assert BlockStart(0, Opaque(Raw(P, item), "web_search_call")) in found
    assert any(
        isinstance(one, Unknown) and one.event == "response.web_search_call.searching" for one in found
    )


def test_annotations_are_citations() -> None:
    note = {"type": "url_citation", "url": "https://x", "title": "X", "start_index": 0, "end_index": 2}
    frame = event("output_text.annotation.added", content_index=0, annotation=note)
    found = events(P, response("created"), added(MESSAGE), *TEXT, frame, response())
    assert CitationAdded(0, Citation("https://x", "X", start=0, end=2, raw=Raw(P, note))) in found


@pytest.mark.parametrize(
    ("details", "want"),
    [
        ({"reason": "max_output_tokens"}, Stop.MAX_TOKENS),
        ({"reason": "content_filter"}, Stop.FILTER),
        ({"reason": "steered"}, Stop.PAUSE),
        (None, Stop.MAX_TOKENS),
    ],
)
def test_incomplete_answers(details: Any, want: Stop) -> None:
    assert events(P, response("created"), response("incomplete", incomplete_details=details))[-1] == End(want)


@pytest.mark.parametrize(
    ("frame", "kind", "message"),
    [
        (response("failed", error={"code": "server_error", "message": "boom"}), FailureKind.SERVER, "boom"),
        (response("failed", error=None), FailureKind.UPSTREAM, "the upstream's response was failed"),
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow"}, FailureKind.RATE_LIMIT, "slow"),
        (
            {"type": "error", "error": {"type": "server_error", "message": "nested"}},
            FailureKind.SERVER,
            "nested",
        ),
    ],
    ids=["failed", "no reason", "flat", "nested"],
)
def test_errors_are_read(frame: Any, kind: FailureKind, message: str) -> None:
    found = events(P, response("created"), frame, response("failed", error={"message": "again"}))
    assert [event for event in found if isinstance(event, Failed)] == [found[-1]]
    assert isinstance(found[-1], Failed)
    assert (found[-1].kind, found[-1].message) == (kind, message)


def test_an_answer_without_a_final_response_is_cut() -> None:
    for frames in (
        [],
        [response("created")],
        [response("created"), added(MESSAGE), *TEXT, done(said_text("hi"))],
    ):
        last = events(P, *frames)[-1]
        assert isinstance(last, Failed)
        assert last.code == "stream_cut"


# Writing.

SAID: list[Event] = [
    Start("", "g"),
    BlockStart(0, Thinking()),
    TextDelta(0, "hm"),
    Sealed(0, Seal(P, "enc")),
    BlockEnd(0),
    BlockStart(1, Text()),
    TextDelta(1, "h"),
    TextDelta(1, "i"),
    CitationAdded(1, Citation("https://x", "X")),
    BlockEnd(1),
    BlockStart(2, ToolCall(id="a", name="f")),
    ArgumentsDelta(2, "{}"),
    BlockEnd(2),
    BlockStart(3, ToolCall(id="b", name="p", kind="custom")),
    ArgumentsDelta(3, "x"),
    BlockEnd(3),
    UsageSeen(Usage(input=5, cache_read=4, output=2)),
    End(Stop.TOOL),
]


def test_the_final_response_repeats_the_items_that_are_done() -> None:
    frames = written(P, *SAID)
    final = frames[-1]["response"]
    assert frames[-1]["type"] == "response.completed"
    assert final["output"] == [frame["item"] for frame in frames if frame["type"].endswith("item.done")]
    assert [item["type"] for item in final["output"]] == [
        "reasoning",
        "message",
        "function_call",
        "custom_tool_call",
    ]
    assert final["usage"]["total_tokens"] == 11
    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))


@pytest.mark.parametrize("end", [End(Stop.MAX_TOKENS), Failed(FailureKind.SERVER, "broken", 500)])
def test_a_cut_freeform_call_is_never_done(end: Event) -> None:
    """Codex runs every item with a done event. Cut JSON fails to parse, but cut text does not."""
    call = BlockStart(0, ToolCall(id="b", name="p", kind="custom"))
    frames = written(P, Start("", "g"), call, ArgumentsDelta(0, "rm -r x"), BlockEnd(0, False), end)
    assert not [frame for frame in frames if frame["type"].endswith(".done")]
    assert frames[-1]["type"] in ("response.incomplete", "error")


def test_a_body_is_the_final_response() -> None:
    final = written(P, *SAID)[-1]["response"]
    body = rendered(P, *SAID)
    assert {**body, "output": [{**i, "id": ""} for i in body["output"]]} == {
        **final,
        "output": [{**i, "id": ""} for i in final["output"]],
    }


@pytest.mark.parametrize(
    ("stop", "part", "status", "reason"),
    [
        (Stop.END, Text(), "completed", None),
        (Stop.MAX_TOKENS, Text(), "incomplete", "max_output_tokens"),
        (Stop.FILTER, Text(), "incomplete", "content_filter"),
        (Stop.REFUSAL, Text(), "incomplete", "content_filter"),
        (Stop.REFUSAL, Refusal(), "completed", None),
    ],
)
def test_stop_reasons_are_written(stop: Stop, part: Any, status: str, reason: str | None) -> None:
    said = [Start(), BlockStart(0, part), TextDelta(0, "no"), BlockEnd(0), End(stop)]
    for final in (written(P, *said)[-1]["response"], rendered(P, *said)):
        assert final["status"] == status
        assert (final["incomplete_details"] or {}).get("reason") == reason


def test_a_cut_call_is_marked() -> None:
    said = [
        Start(),
        BlockStart(0, ToolCall(id="a", name="f")),
        ArgumentsDelta(0, '{"a'),
        BlockEnd(0, complete=False),
    ]
    frames = written(P, *said, End(Stop.MAX_TOKENS))
    assert frames[-1]["response"]["output"][0]["status"] == "incomplete"


def test_pictures_and_foreign_parts() -> None:
    said = [
        Start(),
        BlockStart(0, Media(kind="image", media_type="image/png", data="aGk=")),
        BlockEnd(0),
        BlockStart(1, Opaque(Raw("gemini", {}), "x")),
        BlockEnd(1),
        End(Stop.END),
    ]
    (item,) = written(P, *said)[-1]["response"]["output"]
    assert (item["type"], item["result"]) == ("image_generation_call", "aGk=")


def test_ids_are_never_used_twice() -> None:
    same = Opaque(Raw(P, {"id": "ws_1", "type": "web_search_call"}), "web_search_call")
    blocks: list[Event] = []
    for number in range(2):
        blocks += [BlockStart(number, same), BlockEnd(number)]
    ids = [item["id"] for item in written(P, Start(), *blocks, End(Stop.END))[-1]["response"]["output"]]
    assert ids[0] == "ws_1"
    assert len(set(ids)) == 2


def test_unknown_events_get_new_sequence_numbers() -> None:
    data = b'{"type":"response.new","kind":1,"out":2,"self":3,"sequence_number":99}'
    frame = written(P, Start(), Unknown(P, "response.new", data))[-1]
    assert (frame["kind"], frame["out"], frame["self"], frame["sequence_number"]) == (1, 2, 3, 2)


def test_an_error_is_flat_and_nested() -> None:
    (frame,) = written(P, Failed(FailureKind.RATE_LIMIT, "slow", 429))
    assert (frame["type"], frame["message"], frame["error"]["message"]) == ("error", "slow", "slow")
