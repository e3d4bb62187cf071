"""Each law of Gemini generateContent, and a stream or body that breaks it."""

import json
from typing import Any

import pytest
from support.edited_streams import Spoil, split, spoiled
from support.sample_streams import SAMPLES
from support.unbroken_laws import unbroken
from support.wires import GEMINI

from dragoman.conform import laws, neutral


def candidate(event: Any) -> Any:
    return event["candidates"][0]


def part(event: Any) -> Any:
    return event["candidates"][0]["content"]["parts"][0]


def call(event: Any) -> Any:
    return part(event)["functionCall"]


STREAMS: dict[str, tuple[str, Spoil, str]] = {
    "no finishReason": ("text", lambda e: candidate(e[-1]).pop("finishReason"), "no finishReason"),
    "two finishReasons": ("text", lambda e: e.append(e[-1]), "comes after the finishReason"),
    "usage afterwards": ("text", lambda e: e.append({"usageMetadata": {}}), "comes after the fin"),
    "text after a block": (
        "text",
        lambda e: e.insert(0, {"promptFeedback": {"blockReason": "SAFETY"}}),
        "comes after a blockReason",
    ),
    "responseId changes": ("text", lambda e: e[1].update(responseId="x"), "responseId changed"),
    "model changes": ("text", lambda e: e[1].update(modelVersion="x"), "modelVersion changed"),
    "wrong role": ("text", lambda e: candidate(e[0])["content"].update(role="user"), "role"),
    "text is none": ("text", lambda e: part(e[0]).update(text=None), "text is not text"),
    "parts is text": ("text", lambda e: candidate(e[0])["content"].update(parts="x"), "malformed"),
    "no name": ("tool", lambda e: call(e[0]).update(name=""), "without a name"),
    "args as text": ("tool", lambda e: call(e[0]).update(args="{}"), "args is not an object"),
    "no args": ("tool", lambda e: call(e[0]).pop("args"), "args is not an object"),
    "empty id": ("tool", lambda e: call(e[0]).update(id=""), "an empty call id"),
    "same id": ("parallel", lambda e: call(e[1]).update(id=call(e[0])["id"]), "the same id"),
    "odd signature": (
        "tool",
        lambda e: part(e[0]).update(thoughtSignature="not base64!"),
        "not base64",
    ),
    "usage total": ("text", lambda e: e[-1]["usageMetadata"].update(totalTokenCount=1), "the sum"),
    "usage goes down": (
        "text",
        lambda e: e[0]["usageMetadata"].update(candidatesTokenCount=999, totalTokenCount=1056),
        "went down",
    ),
    "usage is text": (
        "text",
        lambda e: e[0]["usageMetadata"].update(promptTokenCount=-1, totalTokenCount=-1),
        "not a number",
    ),
    "going on after an error": ("error", lambda e: e.append(e[0]), "comes after an error"),
    "error code is text": ("error", lambda e: e[-1]["error"].update(code="x"), "not a number"),
    "error without a message": ("error", lambda e: e[-1]["error"].update(message=""), "message"),
    "[DONE]": ("text", lambda e: e.append("[DONE]"), "[DONE]"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_broken_stream_is_noticed(name: str) -> None:
    kind, spoil, complaint = STREAMS[name]
    stream = spoiled(GEMINI, SAMPLES[GEMINI][kind].stream, spoil)
    found = laws.check(GEMINI, stream, stream=True)
    assert any(complaint in str(broken) for broken in found), found


def test_an_event_has_no_name() -> None:
    stream = b"event: message\n" + SAMPLES[GEMINI]["text"].stream
    assert [*map(str, laws.check(GEMINI, stream, stream=True))] == ["event 0: has a name: message"]


def test_a_blocked_prompt_is_an_end() -> None:
    blocked = b'data: {"promptFeedback":{"blockReason":"SAFETY"}}\n\n'
    assert laws.check(GEMINI, blocked, stream=True) == []
    assert neutral.reduce(GEMINI, blocked, stream=True)["stop"] == "content_filter"


def test_a_url_safe_signature_is_base64_too() -> None:
    stream = spoiled(
        GEMINI,
        SAMPLES[GEMINI]["tool"].stream,
        lambda e: part(e[0]).update(thoughtSignature="_-8="),
    )
    assert laws.check(GEMINI, stream, stream=True) == []


def test_a_stream_may_be_one_array() -> None:
    sample = SAMPLES[GEMINI]["parallel"]
    array = json.dumps(split(sample.stream)).encode()
    assert laws.check(GEMINI, array, stream=True) == []
    assert neutral.reduce(GEMINI, array, stream=True) == sample.expect
    assert laws.check(GEMINI, array[:-1], stream=True)


BODIES: dict[str, tuple[str, Spoil, str]] = {
    "no finishReason": ("text", lambda b: candidate(b).pop("finishReason"), "no finishReason"),
    "no name": ("tool", lambda b: call(b).pop("name"), "without a name"),
    "args as text": ("tool", lambda b: call(b).update(args="{}"), "args is not an object"),
    "usage total": ("text", lambda b: b["usageMetadata"].update(totalTokenCount=1), "the sum"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_broken_body_is_noticed(name: str) -> None:
    kind, spoil, complaint = BODIES[name]
    body = json.loads(SAMPLES[GEMINI][kind].whole or b"")
    spoil(body)
    found = laws.check(GEMINI, json.dumps(body).encode(), stream=False)
    assert any(complaint in str(broken) for broken in found), found


@pytest.mark.parametrize("error", ["x", {"code": 500}, {"code": "500", "message": "x"}])
def test_a_broken_error_body_is_noticed(error: Any) -> None:
    assert laws.check(GEMINI, json.dumps({"error": error}).encode(), stream=False)


def test_every_law_is_broken_by_something_here() -> None:
    elsewhere = {"no-event-names"}  # broken by other tests above
    assert unbroken(GEMINI, STREAMS, BODIES) == elsewhere
