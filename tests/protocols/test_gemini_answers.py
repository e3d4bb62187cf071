"""Gemini answers: parts, streamed arguments and finish reasons are read, and written answers are legal."""

import json
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
    Usage,
    UsageSeen,
)
from dragoman.model.messages import Citation, Media, Opaque, Raw, Refusal, Seal, Text, Thinking, ToolCall

P = "gemini"


def chunk(*parts: Any, finish: str | None = None, usage: Any = None, **candidate: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}, "index": 0, **candidate}
    if finish:
        found["finishReason"] = finish
    value = {"candidates": [found], "responseId": "r1", "modelVersion": "g"}
    return value | ({"usageMetadata": usage} if usage else {})


def call(**fields: Any) -> dict[str, Any]:
    return {"functionCall": fields}


STOP = chunk(finish="STOP")


def test_a_plain_answer() -> None:
    usage = {
        "promptTokenCount": 9,
        "cachedContentTokenCount": 4,
        "candidatesTokenCount": 2,
        "thoughtsTokenCount": 3,
    }
    assert events(P, chunk({"text": "hm", "thought": True}), chunk({"text": "hi"}, usage=usage), STOP) == [
        Start("r1", "g"),
        BlockStart(0, Thinking()),
        TextDelta(0, "hm"),
        BlockEnd(0),
        BlockStart(1, Text()),
        TextDelta(1, "hi"),
        UsageSeen(Usage(input=5, cache_read=4, output=5, reasoning=3)),
        BlockEnd(1),
        End(Stop.END),
    ]


def test_calls_are_whole_and_keep_every_digit() -> None:
    body = json.dumps(chunk(call(name="f", id="a", args={"n": 1}), call(name="g"))).replace(
        '"n": 1', '"n": 1.10'
    )
    found = answer(P, body, STOP).calls()
    assert [(part.id, part.name, part.arguments) for part in found] == [
        ("a", "f", '{"n": 1.10}'),
        ("", "g", ""),
    ]


@pytest.mark.parametrize(
    "parts",
    [
        [
            call(name="f", id="a", willContinue=True),
            call(
                partialArgs=[{"jsonPath": "$.x", "stringValue": "a", "willContinue": True}], willContinue=True
            ),
            call(
                partialArgs=[
                    {"jsonPath": "$.x", "stringValue": "b"},
                    {"jsonPath": "$.l[0].n", "numberValue": 1},
                ],
                willContinue=True,
            ),
            call(),
        ],
        [
            call(name="f", id="a", partialArgs=[{"jsonPath": "$.x", "stringValue": "ab"}], willContinue=True),
            call(willContinue=True),
            call(partialArgs=[{"jsonPath": "$['l'][0]['n']", "numberValue": 1}]),
        ],
        [
            call(name="f", id="a", partialArgs=[{"jsonPath": "$.x", "stringValue": "ab"}], willContinue=True),
            call(partialArgs=[{"jsonPath": "$.l[0].n", "numberValue": 1}], willContinue=True),
        ],
    ],
    ids=["closed by an empty call", "closed by the last piece", "closed by the end"],
)
def test_streamed_arguments_are_joined(parts: list[Any]) -> None:
    """Quirk 125."""
    (found,) = answer(P, *(chunk(part) for part in parts), STOP).calls()
    assert json.loads(found.arguments) == {"x": "ab", "l": [{"n": 1}]}


def test_pieces_that_do_not_fit_are_an_error() -> None:
    for path in ("$.x[5]", "$.x.y"):
        pieces = [{"jsonPath": "$.x", "stringValue": "a"}, {"jsonPath": path, "stringValue": "b"}]
        last = events(P, chunk(call(name="f", partialArgs=pieces)), STOP)[-1]
        assert isinstance(last, Failed)


def test_signatures_are_read_from_every_part() -> None:
    """Quirks 93 and 126: on a call, on text, or late on a part without text."""
    signed = {**call(name="f", args={}), "thoughtSignature": "c2ln"}
    (found,) = answer(P, chunk(signed), STOP).calls()
    assert found.seal == Seal(P, "c2ln", issuer="up")
    for part in ({"text": "hi", "thoughtSignature": "c2ln"}, {"text": "", "thoughtSignature": "c2ln"}):
        parts = answer(P, chunk({"text": "so "}), chunk(part), STOP).parts
        assert parts[-1] == Thinking(seal=Seal(P, "c2ln", issuer="up"))


def test_media_and_gemini_only_parts() -> None:
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    code = {"executableCode": {"language": "PYTHON", "code": "1"}}
    assert answer(P, chunk(picture, code), STOP).parts == [
        Media(kind="image", media_type="image/png", data="aGk="),
        Opaque(Raw(P, code), "executableCode"),
    ]


@pytest.mark.parametrize(
    ("reason", "want", "detail"),
    [
        ("STOP", Stop.END, None),
        ("MAX_TOKENS", Stop.MAX_TOKENS, None),
        ("SAFETY", Stop.FILTER, "SAFETY"),
        ("RECITATION", Stop.FILTER, "RECITATION"),
        ("MODEL_ARMOR", Stop.FILTER, "MODEL_ARMOR"),
    ],
)
def test_finish_reasons_are_read(reason: str, want: Stop, detail: str | None) -> None:
    assert events(P, chunk({"text": "hi"}), chunk(finish=reason))[-1] == End(want, detail=detail)


@pytest.mark.parametrize("reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"])
def test_a_failed_call_is_an_error(reason: str) -> None:
    """Quirks 84 and 123: the call beside it must not run, either."""
    last = events(P, chunk(call(name="f", args={"a": 1}), finish=reason, finishMessage="bad call"))[-1]
    assert isinstance(last, Failed)
    assert (last.message, last.code) == ("bad call", reason)


def test_a_blocked_prompt_is_filtered() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}}
    assert events(P, blocked)[-1] == End(Stop.FILTER, detail="SAFETY")


def test_usage_without_counts_is_ignored() -> None:
    """Quirk 124: Vertex."""
    assert not any(
        isinstance(event, UsageSeen)
        for event in events(P, chunk({"text": "hi"}, usage={"trafficType": "X"}), STOP)
    )


def test_sources_are_citations() -> None:
    cited = {"citationSources": [{"uri": "https://x", "startIndex": 1, "endIndex": 2}]}
    grounded = {"groundingChunks": [{"web": {"uri": "https://y", "title": "Y"}}, {"maps": {}}]}
    found = events(P, chunk({"text": "hi"}, citationMetadata=cited, groundingMetadata=grounded), STOP)
    assert [event.citation for event in found if isinstance(event, CitationAdded)] == [
        Citation("https://x", start=1, end=2),
        Citation("https://y", "Y"),
    ]


@pytest.mark.parametrize(
    ("frame", "kind", "message"),
    [
        (
            {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}},
            FailureKind.OVERLOADED,
            "busy",
        ),
        (
            {"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}},
            FailureKind.RATE_LIMIT,
            "slow",
        ),
        ({"error": "plain"}, FailureKind.UPSTREAM, "plain"),
    ],
)
def test_errors_are_read(frame: Any, kind: FailureKind, message: str) -> None:
    last = events(P, chunk({"text": "hi"}), frame)[-1]
    assert isinstance(last, Failed)
    assert (last.kind, last.message) == (kind, message)


def test_an_answer_without_a_finish_reason_is_cut() -> None:
    for frames in ([], [chunk({"text": "hi"})]):
        last = events(P, *frames)[-1]
        assert isinstance(last, Failed)
        assert last.code == "stream_cut"


# Writing.

SAID: list[Event] = [
    Start("", "g"),
    BlockStart(0, Thinking()),
    TextDelta(0, "hm"),
    Sealed(0, Seal(P, "c2ln")),
    BlockEnd(0),
    BlockStart(1, Text()),
    TextDelta(1, "hi"),
    CitationAdded(1, Citation("https://x", "X")),
    BlockEnd(1),
    BlockStart(2, ToolCall(id="a", name="f", seal=Seal(P, "c2ln"))),
    ArgumentsDelta(2, '{"n":'),
    ArgumentsDelta(2, "1.10}"),
    BlockEnd(2),
    UsageSeen(Usage(input=5, cache_read=4, output=7, reasoning=3)),
    End(Stop.TOOL),
]


def parts_of(*values: Any) -> list[Any]:
    return [part for value in values for part in value["candidates"][0]["content"]["parts"]]


def test_a_written_answer() -> None:
    frames = written(P, *SAID)
    assert parts_of(*frames) == [
        {"text": "hm", "thought": True},
        {"text": "", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "hi"},
        {"functionCall": {"id": "a", "name": "f", "args": {"n": 1.1}}, "thoughtSignature": "c2ln"},
        {"text": ""},
    ]
    last = frames[-1]
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert last["candidates"][0]["citationMetadata"]["citationSources"] == [
        {"uri": "https://x", "title": "X"}
    ]
    assert last["usageMetadata"] == {
        "promptTokenCount": 9,
        "candidatesTokenCount": 4,
        "totalTokenCount": 16,
        "cachedContentTokenCount": 4,
        "thoughtsTokenCount": 3,
    }


def test_arguments_over_several_lines_are_one_line_of_the_stream() -> None:
    said = [
        Start("", "g"),
        BlockStart(0, ToolCall(id="a", name="f")),
        ArgumentsDelta(0, '{\r\n  "n":\n 1\n}\n'),
        BlockEnd(0),
        End(Stop.TOOL),
    ]
    assert parts_of(*written(P, *said))[0] == {"functionCall": {"id": "a", "name": "f", "args": {"n": 1}}}


def test_a_body_is_the_same_as_the_stream() -> None:
    body = rendered(P, *SAID)
    assert parts_of(body) == [
        {"text": "hm", "thought": True, "thoughtSignature": "c2ln"},
        {"text": "hi"},
        {"functionCall": {"id": "a", "name": "f", "args": {"n": 1.1}}, "thoughtSignature": "c2ln"},
    ]
    assert body["usageMetadata"] == written(P, *SAID)[-1]["usageMetadata"]


def test_a_signature_that_is_not_base64_is_in_an_envelope() -> None:
    """google-genai refuses to read anything else."""
    said = [
        Start(),
        BlockStart(0, ToolCall(id="a", name="f", seal=Seal(P, "no base64!"))),
        BlockEnd(0),
        End(Stop.TOOL),
    ]
    signature = parts_of(*written(P, *said))[0]["thoughtSignature"]
    assert signature.startswith("ZHJhZ29tYW4x")
    assert "!" not in signature


def test_cut_calls_and_unsupported_parts_are_omitted() -> None:
    said = [
        Start(),
        BlockStart(0, Refusal()),
        TextDelta(0, "no"),
        BlockEnd(0),
        BlockStart(1, Opaque(Raw("anthropic", {}), "x")),
        BlockEnd(1),
        BlockStart(2, ToolCall(id="a", name="f")),
        ArgumentsDelta(2, '{"n'),
        BlockEnd(2, complete=False),
        End(Stop.REFUSAL),
    ]
    assert parts_of(*written(P, *said)) == [{"text": "no"}, {"text": ""}]
    assert written(P, *said)[-1]["candidates"][0]["finishReason"] == "SAFETY"


def test_an_error_has_a_code_and_a_status() -> None:
    failed = Failed(FailureKind.RATE_LIMIT, "slow", 429)
    assert written(P, failed) == [{"error": {"code": 429, "message": "slow", "status": "RESOURCE_EXHAUSTED"}}]
