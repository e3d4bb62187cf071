"""Each law of Anthropic Messages, and a stream or body that breaks it."""

import json
from typing import Any

import pytest
from support.edited_streams import Events, Spoil, first, place, spoiled
from support.sample_streams import SAMPLES
from support.unbroken_laws import unbroken
from support.wires import ANTHROPIC

from dragoman.conform import laws


def move(events: Events, kind: str, to: int) -> None:
    events.insert(to, events.pop(place(events, kind)))


def start(events: Events) -> Any:
    return first(events, "message_start")["message"]


def block(events: Events) -> Any:
    return first(events, "content_block_start")["content_block"]


def delta(events: Events) -> Any:
    return first(events, "content_block_delta")["delta"]


def ending(events: Events) -> Any:
    return first(events, "message_delta")


def drop(events: Events, kind: str) -> None:
    del events[place(events, kind)]


def reuse_id(events: Events) -> None:
    blocks = [e["content_block"] for e in events if e["type"] == "content_block_start"]
    blocks[1]["id"] = blocks[0]["id"]


def open_two(events: Events) -> None:
    stop = place(events, "content_block_stop")
    events.insert(stop + 1, events.pop(stop))


def add_signature(events: Events) -> None:
    where = next(i for i, e in enumerate(events) if e.get("delta", {}).get("type") == "signature_delta")
    events.insert(where, events[where])


def keep_no_text(events: Events) -> None:
    events[:] = [e for e in events if e["type"] != "content_block_delta"]


def cut_call(events: Events) -> None:
    last = [e for e in events if e["type"] == "content_block_delta"][-1]
    last["delta"]["partial_json"] = '"'


STREAMS: dict[str, tuple[str, Spoil, str]] = {
    "ping first": ("text", lambda e: move(e, "ping", 0), "before message_start"),
    "no message_start": ("text", lambda e: drop(e, "message_start"), "before message_start"),
    "two message_start": ("text", lambda e: e.insert(1, e[0]), "a second message_start"),
    "no message id": ("text", lambda e: start(e).update(id=""), "no id"),
    "no model": ("text", lambda e: start(e).pop("model"), "malformed"),
    "wrong role": ("text", lambda e: start(e).update(role="user"), "role"),
    "wrong type": ("text", lambda e: start(e).update(type="x"), "type is not message"),
    "no usage": ("text", lambda e: start(e).pop("usage"), "malformed"),
    "no input_tokens": ("text", lambda e: start(e)["usage"].pop("input_tokens"), "input_tokens"),
    "early content": ("text", lambda e: start(e).update(content=[{}]), "content is not empty"),
    "early stop": ("text", lambda e: start(e).update(stop_reason="end_turn"), "set already"),
    "index gap": ("text", lambda e: [x.update(index=1) for x in e if "index" in x], "index is not"),
    "delta elsewhere": (
        "text",
        lambda e: first(e, "content_block_delta").update(index=1),
        "block 1 is not open",
    ),
    "stop elsewhere": (
        "text",
        lambda e: first(e, "content_block_stop").update(index=1),
        "block 1 is not open",
    ),
    "two open blocks": ("parallel", open_two, "still open"),
    "block never closed": ("text", lambda e: drop(e, "content_block_stop"), "still open"),
    "wrong delta": ("text", lambda e: delta(e).update(type="thinking_delta"), "in a text block"),
    "text in start": ("text", lambda e: block(e).update(text="x"), "text is not empty yet"),
    "input in start": ("tool", lambda e: block(e).update(input={"a": 1}), "input is not empty"),
    "empty text block": ("text", keep_no_text, "an empty text block"),
    "empty thinking block": ("thinking_tool", keep_no_text, "an empty thinking block"),
    "two signatures": ("thinking_tool", add_signature, "after the signature"),
    "illegal id": ("tool", lambda e: block(e).update(id="functions.Bash:0"), "illegal tool id"),
    "long id": ("tool", lambda e: block(e).update(id="x" * 65), "illegal tool id"),
    "empty id": ("tool", lambda e: block(e).update(id=""), "illegal tool id"),
    "same id": ("parallel", reuse_id, "used twice"),
    "illegal name": ("tool", lambda e: block(e).update(name="a b"), "illegal tool name"),
    "cut call": ("tool", cut_call, "without a JSON object"),
    "no stop_reason": ("text", lambda e: drop(e, "message_delta"), "no stop_reason"),
    "two stop_reasons": (
        "text",
        lambda e: e.insert(-1, ending(e)),
        "after the stop_reason",
    ),
    "stop_reason taken back": (
        "text",
        lambda e: e.insert(-1, {**ending(e), "delta": {"stop_reason": None}}),
        "after the stop_reason",
    ),
    "unknown stop_reason": ("text", lambda e: ending(e)["delta"].update(stop_reason="x"), "unkn"),
    "end_turn with a call": (
        "tool",
        lambda e: ending(e)["delta"].update(stop_reason="end_turn"),
        "beside a tool call",
    ),
    "tool_use without a call": (
        "text",
        lambda e: ending(e)["delta"].update(stop_reason="tool_use"),
        "without a call",
    ),
    "unnamed stop_sequence": (
        "text",
        lambda e: ending(e)["delta"].update(stop_reason="stop_sequence"),
        "stop_sequence does not fit",
    ),
    "no usage at the end": ("text", lambda e: ending(e).pop("usage"), "malformed"),
    "no output_tokens": ("text", lambda e: ending(e).update(usage={}), "no output_tokens"),
    "usage goes down": (
        "text",
        lambda e: ending(e)["usage"].update(output_tokens=0),
        "went down",
    ),
    "no message_stop": ("text", lambda e: drop(e, "message_stop"), "no message_stop"),
    "ping last": ("text", lambda e: move(e, "ping", len(e)), "comes after message_stop"),
    "two message_stop": ("text", lambda e: e.append(e[-1]), "comes after message_stop"),
    "text after the stop_reason": (
        "text",
        lambda e: move(e, "message_delta", 1),
        "after the stop_reason",
    ),
    "[DONE]": ("text", lambda e: e.append("[DONE]"), "[DONE]"),
    "going on after an error": ("error", lambda e: e.append({"type": "ping"}), "after error"),
    "error without a message": (
        "error",
        lambda e: first(e, "error")["error"].update(message=""),
        "no message",
    ),
    "error without a type": ("error", lambda e: first(e, "error")["error"].pop("type"), "malf"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_broken_stream_is_noticed(name: str) -> None:
    kind, spoil, complaint = STREAMS[name]
    stream = spoiled(ANTHROPIC, SAMPLES[ANTHROPIC][kind].stream, spoil)
    found = laws.check(ANTHROPIC, stream, stream=True)
    assert any(complaint in str(broken) for broken in found), found


def test_an_event_is_named_by_its_type() -> None:
    stream = SAMPLES[ANTHROPIC]["text"].stream
    for spoilt in (
        stream.replace(b"event: ping\n", b""),
        stream.replace(b"event: ping", b"event: p"),
    ):
        assert any("its type is ping" in str(broken) for broken in laws.check(ANTHROPIC, spoilt, stream=True))


def test_an_unknown_event_is_allowed() -> None:
    stream = spoiled(ANTHROPIC, SAMPLES[ANTHROPIC]["text"].stream, lambda e: e.insert(1, {"type": "news"}))
    assert laws.check(ANTHROPIC, stream, stream=True) == []


def test_an_error_may_come_first() -> None:
    stream = spoiled(ANTHROPIC, SAMPLES[ANTHROPIC]["error"].stream, lambda e: e.__delitem__(slice(-1)))
    assert laws.check(ANTHROPIC, stream, stream=True) == []


BODIES: dict[str, tuple[str, Spoil, str]] = {
    "no content": ("text", lambda m: m.pop("content"), "malformed"),
    "no id": ("text", lambda m: m.update(id=""), "no id"),
    "no usage": ("text", lambda m: m["usage"].clear(), "no input_tokens"),
    "no stop_reason": ("text", lambda m: m.update(stop_reason=None), "unknown stop_reason"),
    "empty text": ("text", lambda m: m["content"][0].update(text=""), "empty text block"),
    "illegal id": ("tool", lambda m: m["content"][0].update(id="a:b"), "illegal tool id"),
    "input is text": ("tool", lambda m: m["content"][0].update(input="{}"), "not an object"),
    "end_turn": ("tool", lambda m: m.update(stop_reason="end_turn"), "beside a tool call"),
    "tool_use": ("text", lambda m: m.update(stop_reason="tool_use"), "without a call"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_broken_body_is_noticed(name: str) -> None:
    kind, spoil, complaint = BODIES[name]
    message = json.loads(SAMPLES[ANTHROPIC][kind].whole or b"")
    spoil(message)
    found = laws.check(ANTHROPIC, json.dumps(message).encode(), stream=False)
    assert any(complaint in str(broken) for broken in found), found


@pytest.mark.parametrize("error", [{}, {"type": "api_error"}, {"type": "", "message": "x"}, "x"])
def test_a_broken_error_body_is_noticed(error: Any) -> None:
    body = json.dumps({"type": "error", "error": error}).encode()
    assert laws.check(ANTHROPIC, body, stream=False)


def test_every_law_is_broken_by_something_here() -> None:
    elsewhere = {"event-name"}  # broken by other tests above
    assert unbroken(ANTHROPIC, STREAMS, BODIES) == elsewhere
