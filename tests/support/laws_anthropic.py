"""The laws of Anthropic Messages.

Stream: message_start, then blocks one after the other, then message_delta, then message_stop; or
an error event at any point, which leaves open what is open. Pings may stand anywhere between.
"""

import re

from .laws_framing import (
    Complaints,
    events,
    filled,
    finished_call,
    json_object,
    whole_number,
    whole_object,
)
from .shape import Json, compact

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
_DELTA_TEXT = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
# After these a call may have been cut off, and an answer with a call need not say tool_use.
_CUT = {"max_tokens", "model_context_window_exceeded", "refusal"}


def check_stream(body: bytes) -> list[str]:
    complaints = Complaints()
    stream = _Stream(complaints)
    for number, event in enumerate(events(body, complaints)):
        complaints.place = f"event {number} ({event.name})"
        value = json_object(event.data, complaints)
        if value is None:
            continue
        complaints.unless(event.name == value.get("type"), f"its type is {value.get('type')}")
        with complaints.reading():
            stream.feed(value)
    complaints.place = "end"
    with complaints.reading():
        stream.close()
    return complaints.found


def check_whole(body: bytes) -> list[str]:
    complaints = Complaints()
    value = whole_object(body, complaints)
    if value is None:
        return complaints.found
    with complaints.reading():
        if value.get("type") == "error":
            _check_error(complaints, value)
        else:
            _check_message(complaints, value)
    return complaints.found


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
        complain.unless(self.ended is None, f"comes after {self.ended}")
        if kind == "error":
            self.ended = kind
            _check_error(complain, event)
            return
        complain.unless(self.started or kind == "message_start", "comes before message_start")
        complain.unless(self.stop is None or kind in ("message_stop", "ping"), "comes after the stop_reason")
        handler = getattr(self, f"_on_{kind}", None)
        if handler is not None:
            handler(event)

    def close(self) -> None:
        self.complain.unless(self.ended, "no message_stop and no error")
        if self.ended == "message_stop" and self.stop is not None:
            self.calls.check(self.stop)

    def _on_message_start(self, event: Json) -> None:
        message = event["message"]
        complain = self.complain
        complain.unless(not self.started, "a second message_start")
        self.started = True
        _check_head(complain, message)
        complain.unless(message["content"] == [], "content is not empty yet")
        complain.unless(message["stop_reason"] is None, "stop_reason is set already")
        self._count(message["usage"])
        complain.unless(whole_number(message["usage"].get("input_tokens")), "no input_tokens")

    def _on_content_block_start(self, event: Json) -> None:
        complain = self.complain
        complain.unless(self.open is None, "a block is still open")
        complain.unless(event["index"] == self.blocks, f"index is not {self.blocks}")
        self.open = _Block(event["index"], event["content_block"], complain)
        self.blocks += 1
        self.calls.kinds.add(self.open.kind)

    def _on_content_block_delta(self, event: Json) -> None:
        if self.open is None or event["index"] != self.open.index:
            self.complain.add(f"block {event['index']} is not open")
        else:
            self.open.add(event["delta"])

    def _on_content_block_stop(self, event: Json) -> None:
        if self.open is None or event["index"] != self.open.index:
            self.complain.add(f"block {event['index']} is not open")
            return
        self.open.close()
        if self.open.kind == "tool_use":
            self.calls.add(self.open.start, self.open.text.get("input_json_delta") or "{}")
        self.open = None

    def _on_message_delta(self, event: Json) -> None:
        self.complain.unless(self.open is None, "a block is still open")
        self._count(event["usage"])
        if event["delta"].get("stop_reason") is not None:
            _check_stop(self.complain, event["delta"])
            self.stop = event["delta"]

    def _on_message_stop(self, _: Json) -> None:
        self.ended = "message_stop"
        self.complain.unless(self.stop is not None, "no stop_reason was sent")
        self.complain.unless(self.open is None, "a block is still open")

    def _count(self, usage: Json) -> None:
        output = usage.get("output_tokens")
        if not whole_number(output):
            self.complain.add("no output_tokens")
            return
        self.complain.unless(output >= self.output, "output_tokens went down")
        self.output = output


class _Block:
    def __init__(self, index: int, start: Json, complaints: Complaints) -> None:
        self.index = index
        self.start = start
        self.kind: str = start["type"]
        self.complain = complaints
        self.text: dict[str, str] = {}
        self.deltas: list[str] = []
        # Claude Code empties a block at its start and takes only what is streamed into it.
        for key in ("text", "thinking", "signature", "input"):
            if key in start and self.kind in ("text", "thinking", "tool_use"):
                complaints.unless(not start[key], f"{key} is not empty yet")

    def add(self, delta: Json) -> None:
        kind = delta["type"]
        if kind not in _DELTAS.get(self.kind, {kind}):
            self.complain.add(f"{kind} in a {self.kind} block")
        if self.deltas and self.deltas[-1] == "signature_delta":
            # A client overwrites the first signature by the second.
            self.complain.add(f"{kind} after the signature")
        self.deltas.append(kind)
        if kind in _DELTA_TEXT:
            self.text[kind] = self.text.get(kind, "") + delta[_DELTA_TEXT[kind]]

    def close(self) -> None:
        if self.kind == "text":
            self.complain.unless(self.text.get("text_delta"), "an empty text block")
        if self.kind == "thinking":
            self.complain.unless(any(self.text.values()), "an empty thinking block")


class _Calls:
    """The finished tool_use blocks of one answer."""

    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.seen: list[tuple[str, str]] = []
        self.ids: set[str] = set()
        self.kinds: set[str] = set()

    def add(self, block: Json, raw: str) -> None:
        call_id, name = block["id"], block["name"]
        self.complain.unless(_CALL_ID.fullmatch(call_id), f"illegal tool id {call_id!r}")
        self.complain.unless(call_id not in self.ids, f"tool id {call_id!r} is used twice")
        self.complain.unless(_NAME.fullmatch(name), f"illegal tool name {name!r}")
        self.complain.unless(isinstance(block["input"], dict), "input is not an object")
        self.ids.add(call_id)
        self.seen.append((name, raw))

    def check(self, ending: Json) -> None:
        reason = ending["stop_reason"]
        # Only the last call can have been cut off.
        whole = self.seen[:-1] if reason in _CUT else self.seen
        for name, raw in whole:
            finished_call(self.complain, name, raw)
        self.complain.unless(reason != "end_turn" or not self.seen, "stop_reason end_turn beside a tool call")
        self.complain.unless(
            reason != "tool_use" or self.kinds & {"tool_use", "server_tool_use"},
            "stop_reason tool_use without a call",
        )


def _check_message(complaints: Complaints, message: Json) -> None:
    _check_head(complaints, message)
    calls = _Calls(complaints)
    for number, block in enumerate(message["content"]):
        complaints.place = f"block {number}"
        calls.kinds.add(block["type"])
        if block["type"] == "text":
            complaints.unless(block["text"], "an empty text block")
        if block["type"] == "tool_use":
            calls.add(block, compact(block["input"]))
    complaints.place = ""
    for name in ("input_tokens", "output_tokens"):
        complaints.unless(whole_number(message["usage"].get(name)), f"no {name}")
    _check_stop(complaints, message)
    calls.check(message)


def _check_head(complaints: Complaints, message: Json) -> None:
    complaints.unless(message["type"] == "message", "its type is not message")
    complaints.unless(message["role"] == "assistant", "the role is not assistant")
    complaints.unless(filled(message["id"]), "no id")
    complaints.unless(filled(message["model"]), "no model")
    complaints.unless("stop_sequence" in message, "no stop_sequence")


def _check_stop(complaints: Complaints, ending: Json) -> None:
    reason = ending["stop_reason"]
    complaints.unless(reason in _STOP_REASONS, f"unknown stop_reason {reason!r}")
    named = ending.get("stop_sequence") is not None
    complaints.unless(named == (reason == "stop_sequence"), f"stop_sequence does not fit {reason!r}")


def _check_error(complaints: Complaints, value: Json) -> None:
    error = value["error"]
    complaints.unless(filled(error["type"]), "the error has no type")
    complaints.unless(filled(error["message"]), "the error has no message")
