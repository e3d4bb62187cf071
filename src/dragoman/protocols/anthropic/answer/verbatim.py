"""Check whether an Anthropic upstream's events may pass unchanged to an Anthropic client.

They may while the stream keeps Anthropic's grammar: named events, `message_start` first,
blocks numbered from zero, one open block at a time with deltas of its own kind, and a stop reason that is
true.
"""

from __future__ import annotations

import msgspec

from ....wire.frames import Frame
from ...common.call_ids import WORDS
from . import wire

_REASONS = (
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "compaction",
    "refusal",
    "model_context_window_exceeded",
)

# By block type: the allowed deltas, and the field of each delta.
_DELTAS: dict[str, dict[str, str]] = {
    "text": {"text_delta": "text", "citations_delta": "citation"},
    "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
    "redacted_thinking": {},
    "tool_use": {"input_json_delta": "partial_json"},
}
_FIELDS = {delta: field for deltas in _DELTAS.values() for delta, field in deltas.items()}

_decode_block = msgspec.json.Decoder(wire.AnthropicBlock).decode
_decode_message = msgspec.json.Decoder(wire.AnthropicMessage).decode


class VerbatimCheck:
    """Checks the events of one answer."""

    __slots__ = (
        "_empty",
        "_ids",
        "_next",
        "_open",
        "_output",
        "_signed",
        "_started",
        "_stop",
        "_stopped",
        "_whole",
    )

    def __init__(self) -> None:
        self._started = False
        self._next = 0
        self._open: str | None = None
        """The type of the open block."""
        self._empty = False
        """The open block is text or thinking without content so far: it must not end empty."""
        self._signed = False
        self._stop: str | None = None
        self._ids: set[str] = set()
        self._output = 0
        self._whole = False
        self._stopped = False

    def passes(self, event: wire.AnthropicEvent, frame: Frame) -> bool:
        try:
            return self._passes(event, frame)
        except ValueError:
            return False  # a strict client would reject the event, too

    def closed(self) -> bool:
        return self._whole or self._stopped

    def _passes(self, event: wire.AnthropicEvent, frame: Frame) -> bool:
        if event.type == "message":
            return self._message(frame.data)
        if frame.event != event.type or not (self._started or event.type == "message_start"):
            return False
        match event.type:
            case "content_block_delta":
                return self._at_open(event) and self._delta(event.delta)
            case "content_block_start":
                return self._block_start(event)
            case "content_block_stop":
                was_open, self._open = self._at_open(event), None
                return was_open and not self._empty
            case "message_start":
                return self._message_start(event)
            case "message_delta":
                return self._message_delta(event)
            case "message_stop":
                self._stopped = True
                return self._stop is not None
            case _:
                return event.type == "ping" or self._stop is None

    def _at_open(self, event: wire.AnthropicEvent) -> bool:
        return self._open is not None and event.index == self._next - 1

    def _delta(self, delta: wire.AnthropicDelta | None) -> bool:
        # The signature is the last delta of its block: Anthropic's SDK overwrites a signature with a later
        # one.
        if delta is None or self._signed:
            return False
        known = _DELTAS.get(self._open or "")
        if known is None:
            field = _FIELDS.get(delta.type)
            return bool(delta.type) and (field is None or getattr(delta, field) is not None)
        field = known.get(delta.type)
        filled = getattr(delta, field) if field else None
        self._empty = self._empty and not (filled and field != "citation")
        self._signed = delta.type == "signature_delta"
        return filled is not None

    def _message_start(self, event: wire.AnthropicEvent) -> bool:
        again, self._started = self._started, True
        message = _decode_message(bytes(event.message))
        fresh = message.content == [] and message.stop_reason is None
        return not again and _named(message) and fresh and self._counted(message.usage)

    def _counted(self, usage: wire.AnthropicUsage | None) -> bool:
        before = self._output
        # Usage never shrinks in the output of Dragoman's encoder, which may have to continue this stream.
        self._output = -1 if usage is None else _count(usage.output_tokens)
        return self._output >= before

    def _block_start(self, event: wire.AnthropicEvent) -> bool:
        if self._open is not None or event.index != self._next or self._stop:
            return False
        block = _decode_block(bytes(event.content_block))
        self._next += 1
        self._open = block.type
        self._signed = False
        self._empty = block.type in ("text", "thinking")
        # Claude Code ignores the input in `content_block_start` and uses only the streamed deltas.
        if block.type == "tool_use" and bytes(block.input).strip() != b"{}":
            return False
        filled = self._empty and (block.text or block.thinking or block.signature)
        return not filled and self._block(block)

    def _block(self, block: wire.AnthropicBlock) -> bool:
        if block.type != "tool_use":
            return bool(block.type) and (block.type != "redacted_thinking" or block.data is not None)
        id = block.id or ""
        if not (WORDS.legal(id) and block.name) or id in self._ids:
            return False
        self._ids.add(id)
        return True

    def _message_delta(self, event: wire.AnthropicEvent) -> bool:
        delta = event.delta
        if self._open is not None or self._stop or delta is None or not self._counted(event.usage):
            return False
        self._stop = delta.stop_reason
        return self._stop is None or self._truthful(self._stop, delta.stop_sequence)

    def _truthful(self, reason: str, sequence: str | None) -> bool:
        if (sequence is not None) != (reason == "stop_sequence"):
            return False
        if reason not in _REASONS:
            return False
        # An agent runs a call only after `tool_use`, and waits for one if the answer has none.
        return (reason == "tool_use") == bool(self._ids) or reason not in ("tool_use", "end_turn")

    def _message(self, data: bytes) -> bool:
        self._whole = True
        message = _decode_message(data)
        if not (_named(message) and message.stop_reason and message.content is not None):
            return False
        blocks = [_decode_block(bytes(block)) for block in message.content]
        if not all(self._block(block) and (block.type != "text" or block.text) for block in blocks):
            return False
        sequence = message.stop_sequence
        return self._truthful(message.stop_reason, sequence if sequence is not msgspec.UNSET else None)


def _count(tokens: int | None) -> int:
    return -1 if tokens is None else tokens


def _named(message: wire.AnthropicMessage) -> bool:
    """Does the message have all members that Anthropic's SDK requires?"""
    usage = message.usage
    counted = usage is not None and min(_count(usage.input_tokens), _count(usage.output_tokens)) >= 0
    kind = (message.type, message.role)
    counted = counted and message.stop_sequence is not msgspec.UNSET
    return bool(message.id and message.model and counted) and kind == ("message", "assistant")
