"""Answers of Bedrock's Converse: whole, streamed, cut anywhere, and broken in every way."""

import base64
import json
from typing import Any

import pytest
from support import aws

from dragoman.model.events import Failed, FailureKind, Stop
from dragoman.model.messages import Media, Text
from dragoman.protocols.common.collect import collect
from dragoman.protocols.common.sealed_reasoning import from_slot
from dragoman.translation.translation import Options, Translation
from dragoman.wire.event_stream import encode_event, encode_message

NAME = "bedrock-converse"


def message(kind: str, event: Any) -> bytes:
    return encode_event(kind, json.dumps(event).encode())


MESSAGES = [message(kind, event) for kind, event in aws.CONVERSE]
STREAM = b"".join(MESSAGES)


def read(*chunks: bytes, stream: bool = True) -> tuple[Any, Failed | None]:
    """The answer that a client gets, and the failure it ends in."""
    events: list[Any] = []
    exchange = Translation(NAME, "anthropic", options=Options(stream=stream, issuer="bedrock"))
    exchange.tap = events.extend
    for chunk in chunks:
        exchange.feed(chunk)
    exchange.close()
    return (None if exchange.failure else collect(events)), exchange.failure


def delta(index: int, **inner: Any) -> bytes:
    return message("contentBlockDelta", {"contentBlockIndex": index, "delta": inner})


def stop(index: int) -> bytes:
    return message("contentBlockStop", {"contentBlockIndex": index})


def test_a_stream_is_the_same_however_it_is_cut_and_the_same_as_a_body() -> None:
    answer, failure = read(STREAM)
    assert failure is None
    assert answer.end.stop is Stop.TOOL
    assert [type(part).__name__ for part in answer.parts] == ["Thinking", "Text", "ToolCall"]
    assert (answer.usage.input, answer.usage.output, answer.usage.cache_read) == (12, 34, 5)
    dripped, failure = read(*(STREAM[at : at + 1] for at in range(len(STREAM))))
    assert failure is None
    assert (dripped.parts, dripped.usage, dripped.end) == (answer.parts, answer.usage, answer.end)
    whole, _ = read(json.dumps(aws.CONVERSE_BODY).encode(), stream=False)
    assert whole.usage == answer.usage
    for one, other in zip(whole.parts, answer.parts, strict=True):
        if hasattr(one, "arguments"):
            assert json.loads(one.arguments) == json.loads(other.arguments)
        else:
            assert one == other


def test_a_stream_that_is_cut_before_its_stop_reason_is_never_a_success() -> None:
    end = len(b"".join(MESSAGES[:-1]))
    for at in range(1, end):
        answer, failure = read(STREAM[:at])
        assert answer is None
        assert failure is not None
    answer, failure = read(STREAM[:end])  # only usage is missing
    assert failure is None
    assert answer.end.stop is Stop.TOOL


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", Stop.END),
        ("max_tokens", Stop.MAX_TOKENS),
        ("stop_sequence", Stop.STOP_SEQUENCE),
        ("guardrail_intervened", Stop.FILTER),
        ("content_filtered", Stop.FILTER),
        ("model_context_window_exceeded", Stop.CONTEXT_FULL),
    ],
)
def test_stop_reasons(reason: str, stop: Stop) -> None:
    answer, _ = read(delta(0, text="x"), message("messageStop", {"stopReason": reason}))
    assert answer.end.stop is stop


@pytest.mark.parametrize("reason", ["malformed_tool_use", "malformed_model_output"])
def test_a_broken_answer_is_a_failure(reason: str) -> None:
    _, failure = read(delta(0, text="x"), message("messageStop", {"stopReason": reason}))
    assert failure is not None
    assert failure.kind is FailureKind.UPSTREAM


@pytest.mark.parametrize(
    ("exception", "kind"),
    [
        ("throttlingException", FailureKind.RATE_LIMIT),
        ("serviceUnavailableException", FailureKind.OVERLOADED),
        ("internalServerException", FailureKind.SERVER),
        ("modelStreamErrorException", FailureKind.UPSTREAM),
        ("validationException", FailureKind.INVALID_REQUEST),
        ("modelTimeoutException", FailureKind.TIMEOUT),
        ("somethingNewException", FailureKind.UPSTREAM),
    ],
)
def test_exceptions_inside_the_stream(exception: str, kind: FailureKind) -> None:
    _, failure = read(*MESSAGES[:7], aws.exception(exception, "not now"), *MESSAGES[7:])
    assert failure is not None
    assert (failure.kind, failure.message, failure.code) == (kind, "not now", exception)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, FailureKind.RATE_LIMIT),
        (529, FailureKind.OVERLOADED),
        (400, FailureKind.INVALID_REQUEST),
        (200, FailureKind.UPSTREAM),
        ("529", FailureKind.UPSTREAM),
    ],
)
def test_the_status_of_the_models_own_error(status: Any, kind: FailureKind) -> None:
    said = {"message": "The model failed.", "originalStatusCode": status, "originalMessage": "no"}
    headers = {":exception-type": "modelStreamErrorException", ":message-type": "exception"}
    _, failure = read(*MESSAGES[:7], encode_message(headers, json.dumps(said).encode()))
    assert failure is not None
    assert (failure.kind, failure.message) == (kind, "The model failed.")


def test_hidden_reasoning_in_pieces() -> None:
    pieces = [base64.b64encode(data).decode() for data in (b"hid", b"den!")]
    answer, _ = read(
        *(delta(0, reasoningContent={"redactedContent": piece}) for piece in pieces),
        stop(0),
        delta(1, text="x"),
        stop(1),
        message("messageStop", {"stopReason": "end_turn"}),
    )
    seal = answer.parts[0].seal
    assert (base64.b64decode(seal.data), seal.redacted, seal.issuer) == (b"hidden!", True, "bedrock")


def test_hidden_reasoning_reaches_the_client_and_comes_back() -> None:
    """An Anthropic client gets it in its own slot, in an envelope, also in a stream."""
    exchange = Translation(NAME, "anthropic", options=Options(stream=True, issuer="bedrock"))
    events = (
        delta(0, reasoningContent={"redactedContent": "aGlkZGVu"}),
        stop(0),
        delta(1, text="x"),
        stop(1),
        message("messageStop", {"stopReason": "end_turn"}),
    )
    stream = exchange.feed(b"".join(events)) + exchange.close()
    frames = [json.loads(line[6:]) for line in stream.decode().splitlines() if line.startswith("data: ")]
    starts = [frame["content_block"] for frame in frames if frame["type"] == "content_block_start"]
    assert [block["type"] for block in starts] == ["redacted_thinking", "text"]
    seal = from_slot(starts[0]["data"], "anthropic").seal
    assert (seal.protocol, seal.data, seal.issuer, seal.redacted) == (NAME, "aGlkZGVu", "bedrock", True)


def test_a_tool_that_bedrock_runs_is_no_call_of_the_client() -> None:
    called: Any = {"toolUseId": "t", "name": "nova_grounding", "type": "server_tool_use"}
    found: Any = {"toolUseId": "t", "type": "nova_grounding_result"}
    answer, failure = read(
        message("contentBlockStart", {"contentBlockIndex": 0, "start": {"toolUse": called}}),
        delta(0, toolUse={"input": '{"query": "x"}'}),
        stop(0),
        message("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolResult": found}}),
        delta(1, toolResult=[{"text": "a page"}]),
        stop(1),
        delta(2, text="Found."),
        message("messageStop", {"stopReason": "end_turn"}),
    )
    assert failure is None
    assert (answer.parts, answer.end.stop) == ([Text("Found.")], Stop.END)
    content = [
        {"toolUse": called | {"input": {"query": "x"}}},
        {"toolResult": found | {"content": [{"text": "a page"}]}},
        {"text": "Found."},
    ]
    body = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": "end_turn"}
    whole, _ = read(json.dumps(body).encode(), stream=False)
    assert (whole.parts, whole.end) == (answer.parts, answer.end)


def test_an_image() -> None:
    image = {"format": "jpeg", "source": {"bytes": "aW1hZ2U="}}
    answer, failure = read(
        message("contentBlockStart", {"contentBlockIndex": 0, "start": {"image": {"format": "jpeg"}}}),
        delta(0, image={"source": {"bytes": "aW1hZ2U="}}),
        stop(0),
        message("messageStop", {"stopReason": "end_turn"}),
    )
    assert failure is None
    assert answer.parts == [Media(kind="image", media_type="image/jpeg", data="aW1hZ2U=")]
    body = {
        "output": {"message": {"role": "assistant", "content": [{"image": image}]}},
        "stopReason": "end_turn",
    }
    whole, _ = read(json.dumps(body).encode(), stream=False)
    assert whole.parts == answer.parts


def test_the_stop_sequence_that_matched() -> None:
    ended = {"stopReason": "stop_sequence", "additionalModelResponseFields": {"stop_sequence": "END"}}
    answer, _ = read(delta(0, text="x"), message("messageStop", ended))
    assert (answer.end.stop, answer.end.sequence) == (Stop.STOP_SEQUENCE, "END")


def test_blocks_without_their_marks() -> None:
    """A delta of another kind at the same index, no stop events, a call that was not started."""
    answer, failure = read(
        delta(0, reasoningContent={"text": "hm"}),
        delta(0, text="x"),
        delta(1, toolUse={"input": "{}"}),
        message("messageStop", {"stopReason": "end_turn"}),
        message("metadata", {"usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}}),
        delta(2, text="after the end"),
    )
    assert failure is None
    assert [type(part).__name__ for part in answer.parts] == ["Thinking", "Text"]


def test_events_that_are_newer_than_the_decoder() -> None:
    answer, failure = read(MESSAGES[0], message("surprise", {"a": 1}), *MESSAGES[5:8], *MESSAGES[12:])
    assert failure is None
    assert answer.text() == "Let me see."


def test_half_an_emoji_in_each_of_two_deltas() -> None:
    halves = [
        rb'{"contentBlockIndex":0,"delta":{"text":"\ud83d"}}',
        rb'{"contentBlockIndex":0,"delta":{"text":"\ude00"}}',
    ]
    answer, _ = read(
        *(encode_event("contentBlockDelta", half) for half in halves),
        message("messageStop", {"stopReason": "end_turn"}),
    )
    assert answer.text() == "😀"


def test_citations() -> None:
    cited = {
        "title": "A page",
        "sourceContent": [{"text": "quoted"}],
        "location": {"web": {"url": "https://a.b"}},
    }
    answer, _ = read(
        delta(0, text="x"),
        delta(0, citation=cited),
        stop(0),
        message("messageStop", {"stopReason": "end_turn"}),
    )
    [citation] = answer.parts[0].citations
    assert (citation.url, citation.title, citation.text) == ("https://a.b", "A page", "quoted")


def test_an_error_in_place_of_a_body() -> None:
    _, failure = read(b'{"error":{"message":"no","type":"validationException"}}', stream=False)
    assert failure is not None
    assert failure.kind is FailureKind.INVALID_REQUEST
