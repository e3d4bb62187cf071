"""The laws of Anthropic Messages.

A stream is message_start, then blocks one after the other, then message_delta, then message_stop. An
error event may end it at any point, even inside a block. Pings may come anywhere in between.
"""

from __future__ import annotations

import re

from ..shape import Json, compact, is_object
from .base import Complaints, Law
from .framing import (
    CALL_JSON,
    JSON,
    SHAPE,
    STREAM,
    UTF8,
    events,
    filled,
    finished_call,
    json_object,
    whole_number,
    whole_object,
)

# What breaks without each law was tried with anthropic-sdk-python 2.8: RuntimeError if another event comes
# first, and AttributeError if `message_start` lacks `content` or `usage`.
START = Law("message-start", "one message_start, before everything else")
# The SDK skips events without a name. An error without `event: error` is lost, and the answer looks complete.
EVENT_NAME = Law("event-name", "the name of an event is its type")
HEAD = Law("message-head", "the message has its type, role, id, model and stop_sequence")
# IndexError at a gap. With a repeated index, the second block is appended to the first.
BLOCK_INDEX = Law("block-index", "blocks are numbered 0, 1, 2, …")
ONE_BLOCK = Law(
    "one-block-open", "one block is open at a time; deltas go into it; all are closed before message_delta"
)
# Claude Code ignores the input in `content_block_start`.
EMPTY_START = Law("empty-start", "a block and a message start empty: clients only read the deltas")
# The Python SDK drops such a delta, Claude Code stops with an error (litellm#33224).
DELTA_KIND = Law("delta-kind", "a delta fits the kind of its block")
# The SDK overwrites the signature with the next one and does not append.
SIGNATURE = Law("signature-last", "the signature comes in one delta, the last of its block")
NO_EMPTY_BLOCK = Law(
    "no-empty-block", "no text or thinking block is empty: Anthropic refuses it in a request"
)
CALL_ID = Law("call-id", "tool ids match [A-Za-z0-9_-]{1,64} and are unique")
CALL_NAME = Law("call-name", "tool names match [A-Za-z0-9_-]{1,128}")
# A later `message_delta` without a stop reason erases it.
STOP = Law("stop-reason", "there is one known stop_reason, and it fits the content")
# AttributeError if `message_delta` has no usage.
USAGE = Law("usage", "token counts are present, and output_tokens never goes down")
TERMINAL = Law("terminal-event", "message_stop or error ends the stream, once, with nothing after it")
ERROR = Law("error-form", "an error is {type: error, error: {type, message}}")

_MESSAGE = (HEAD, NO_EMPTY_BLOCK, CALL_ID, CALL_NAME, CALL_JSON, STOP, USAGE, ERROR)
LAWS_OF_STREAMS = (
    *STREAM,
    START,
    EVENT_NAME,
    BLOCK_INDEX,
    ONE_BLOCK,
    EMPTY_START,
    DELTA_KIND,
    SIGNATURE,
    TERMINAL,
    *_MESSAGE,
)
LAWS_OF_BODIES = (UTF8, JSON, SHAPE, *_MESSAGE)

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_STOP_REASONS = {
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "compaction",
}
_DELTAS: dict[str, set[str]] = {
    "text": {"text_delta", "citations_delta"},
    "thinking": {"thinking_delta", "signature_delta"},
    "tool_use": {"input_json_delta"},
    "server_tool_use": {"input_json_delta"},
    "mcp_tool_use": {"input_json_delta"},
    "redacted_thinking": set(),
    "compaction": {"compaction_delta"},
}
_KNOWN_DELTAS = frozenset[str]().union(*_DELTAS.values())
_DELTA_TEXT = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
# With these stop reasons the last call may be cut off, and an answer with a call need not stop with tool_use.
_CUT = {"max_tokens", "model_context_window_exceeded", "refusal"}


def check_stream(body: bytes) -> Complaints:
    complaints = Complaints()
    stream = _Stream(complaints)
    for number, event in enumerate(events(body, complaints)):
        complaints.at(f"event {number} ({event.name})", event.raw, event.offset)
        value = json_object(event.data, complaints)
        if value is None:
            continue
        complaints.unless(event.name == value.get("type"), EVENT_NAME, f"its type is {value.get('type')}")
        with complaints.reading(SHAPE):
            stream.feed(value)
    complaints.at_end(body)
    with complaints.reading(SHAPE):
        stream.close()
    return complaints


def check_whole(body: bytes) -> Complaints:
    complaints = Complaints()
    value = whole_object(body, complaints)
    if value is None:
        return complaints
    with complaints.reading(SHAPE):
        if value.get("type") == "error":
            _check_error(complaints, value)
        else:
            _check_message(complaints, value)
    return complaints


class _Stream:
    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.started = False
        self.ended: str | None = None
        self.blocks = 0
        self.open: _Block | None = None
        self.calls = _Calls(complaints)
        self.stop: Json | None = None
        self.output = 0

    def feed(self, event: Json) -> None:
        kind = event["type"]
        complain = self.complain
        complain.unless(self.ended is None, TERMINAL, f"comes after {self.ended}")
        if kind == "error":
            self.ended = kind
            _check_error(complain, event)
            return
        complain.unless(self.started or kind == "message_start", START, "comes before message_start")
        complain.unless(
            self.stop is None or kind in ("message_stop", "ping"), TERMINAL, "comes after the stop_reason"
        )
        handler = getattr(self, f"_on_{kind}", None)
        if handler is not None:
            handler(event)

    def close(self) -> None:
        self.complain.unless(self.ended, TERMINAL, "no message_stop and no error")
        if self.ended == "message_stop" and self.stop is not None:
            self.calls.check(self.stop)

    def _on_message_start(self, event: Json) -> None:
        message = event["message"]
        complain = self.complain
        complain.unless(not self.started, START, "a second message_start")
        self.started = True
        _check_head(complain, message)
        complain.unless(message["content"] == [], EMPTY_START, "content is not empty yet")
        complain.unless(message["stop_reason"] is None, EMPTY_START, "stop_reason is set already")
        self._count(message["usage"])
        complain.unless(whole_number(message["usage"].get("input_tokens")), USAGE, "no input_tokens")

    def _on_content_block_start(self, event: Json) -> None:
        complain = self.complain
        complain.unless(self.open is None, ONE_BLOCK, "a block is still open")
        complain.unless(event["index"] == self.blocks, BLOCK_INDEX, f"index is not {self.blocks}")
        self.open = _Block(event["index"], event["content_block"], complain)
        self.blocks += 1
        self.calls.kinds.add(self.open.kind)

    def _on_content_block_delta(self, event: Json) -> None:
        if self.open is None or event["index"] != self.open.index:
            self.complain.add(ONE_BLOCK, f"block {event['index']} is not open")
        else:
            self.open.add(event["delta"])

    def _on_content_block_stop(self, event: Json) -> None:
        if self.open is None or event["index"] != self.open.index:
            self.complain.add(ONE_BLOCK, f"block {event['index']} is not open")
            return
        self.open.close()
        if self.open.kind == "tool_use":
            self.calls.add(self.open.start, self.open.text.get("input_json_delta") or "{}")
        self.open = None

    def _on_message_delta(self, event: Json) -> None:
        self.complain.unless(self.open is None, ONE_BLOCK, "a block is still open")
        self._count(event["usage"])
        if event["delta"].get("stop_reason") is not None:
            _check_stop(self.complain, event["delta"])
            self.stop = event["delta"]

    def _on_message_stop(self, _: Json) -> None:
        self.ended = "message_stop"
        self.complain.unless(self.stop is not None, STOP, "no stop_reason was sent")
        self.complain.unless(self.open is None, ONE_BLOCK, "a block is still open")

    def _count(self, usage: Json) -> None:
        output = usage.get("output_tokens")
        if not whole_number(output):
            self.complain.add(USAGE, "no output_tokens")
            return
        self.complain.unless(output >= self.output, USAGE, "output_tokens went down")
        self.output = output


class _Block:
    def __init__(self, index: int, start: Json, complaints: Complaints) -> None:
        self.index = index
        self.start = start
        self.kind: str = start["type"]
        self.complain = complaints
        self.text: dict[str, str] = {}
        self.deltas: list[str] = []
        # Claude Code clears a block at its start and only keeps the deltas.
        for key in ("text", "thinking", "signature", "input"):
            if key in start and self.kind in ("text", "thinking", "tool_use"):
                complaints.unless(not start[key], EMPTY_START, f"{key} is not empty yet")

    def add(self, delta: Json) -> None:
        kind = delta["type"]
        # Clients ignore a kind that they do not know: Anthropic may add kinds at any time.
        fits = kind in _DELTAS.get(self.kind, {kind}) or kind not in _KNOWN_DELTAS
        self.complain.unless(fits, DELTA_KIND, f"{kind} in a {self.kind} block")
        if "signature_delta" in (kind, *self.deltas[-1:]):
            # Clients replace the first signature by the second one.
            last = self.deltas[-1:] != ["signature_delta"]
            self.complain.unless(last, SIGNATURE, f"{kind} after the signature")
        self.deltas.append(kind)
        if kind in _DELTA_TEXT:
            self.text[kind] = self.text.get(kind, "") + delta[_DELTA_TEXT[kind]]

    def close(self) -> None:
        if self.kind == "text":
            self.complain.unless(self.text.get("text_delta"), NO_EMPTY_BLOCK, "an empty text block")
        if self.kind == "thinking":
            self.complain.unless(any(self.text.values()), NO_EMPTY_BLOCK, "an empty thinking block")


class _Calls:
    """The finished tool_use blocks of one answer."""

    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.seen: list[tuple[str, str]] = []
        self.ids: set[str] = set()
        self.kinds: set[str] = set()

    def add(self, block: Json, raw: str) -> None:
        call_id, name = block["id"], block["name"]
        self.complain.unless(_CALL_ID.fullmatch(call_id), CALL_ID, f"illegal tool id {call_id!r}")
        self.complain.unless(call_id not in self.ids, CALL_ID, f"tool id {call_id!r} is used twice")
        self.complain.unless(_NAME.fullmatch(name), CALL_NAME, f"illegal tool name {name!r}")
        self.complain.unless(is_object(block["input"]), CALL_JSON, "input is not an object")
        self.ids.add(call_id)
        self.seen.append((name, raw))

    def check(self, ending: Json) -> None:
        reason = ending["stop_reason"]
        # Only the last call can have been cut off.
        whole = self.seen[:-1] if reason in _CUT else self.seen
        for name, raw in whole:
            finished_call(self.complain, name, raw)
        self.complain.unless(
            reason != "end_turn" or not self.seen, STOP, "stop_reason end_turn beside a tool call"
        )
        self.complain.unless(
            reason != "tool_use" or self.kinds & {"tool_use", "server_tool_use"},
            STOP,
            "stop_reason tool_use without a call",
        )


def _check_message(complaints: Complaints, message: Json) -> None:
    _check_head(complaints, message)
    calls = _Calls(complaints)
    for number, block in enumerate(message["content"]):
        complaints.place = f"block {number}"
        calls.kinds.add(block["type"])
        if block["type"] == "text":
            complaints.unless(block["text"], NO_EMPTY_BLOCK, "an empty text block")
        if block["type"] == "tool_use":
            calls.add(block, compact(block["input"]))
    complaints.place = ""
    for name in ("input_tokens", "output_tokens"):
        complaints.unless(whole_number(message["usage"].get(name)), USAGE, f"no {name}")
    _check_stop(complaints, message)
    calls.check(message)


def _check_head(complaints: Complaints, message: Json) -> None:
    complaints.unless(message["type"] == "message", HEAD, "its type is not message")
    complaints.unless(message["role"] == "assistant", HEAD, "the role is not assistant")
    complaints.unless(filled(message["id"]), HEAD, "no id")
    complaints.unless(filled(message["model"]), HEAD, "no model")
    complaints.unless("stop_sequence" in message, HEAD, "no stop_sequence")


def _check_stop(complaints: Complaints, ending: Json) -> None:
    reason = ending["stop_reason"]
    complaints.unless(reason in _STOP_REASONS, STOP, f"unknown stop_reason {reason!r}")
    named = ending.get("stop_sequence") is not None
    complaints.unless(named == (reason == "stop_sequence"), STOP, f"stop_sequence does not fit {reason!r}")


def _check_error(complaints: Complaints, value: Json) -> None:
    with complaints.reading(ERROR):
        error = value["error"]
        complaints.unless(filled(error["type"]), ERROR, "the error has no type")
        complaints.unless(filled(error["message"]), ERROR, "the error has no message")
