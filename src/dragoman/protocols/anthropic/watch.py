"""May an Anthropic upstream's event go to an Anthropic client as it is?

Yes, while the stream keeps Anthropic's own grammar (protocols.md 1A.7): named events, `message_start`
first, blocks numbered from zero, one open at a time, and a stop reason that tells the truth.
"""

from __future__ import annotations

import msgspec

from ...wire.frames import Frame
from ..ids import WORDS
from . import types

_decode_block = msgspec.json.Decoder(types.Block).decode
_decode_message = msgspec.json.Decoder(types.Message).decode


class Watch:
    """Follows one answer."""

    def __init__(self) -> None:
        self._started = False
        self._next = 0
        self._open = False
        self._stop: str | None = None
        self._ids: set[str] = set()
        self._whole = False
        self._stopped = False

    def passes(self, event: types.StreamEvent, frame: Frame) -> bool:
        try:
            return self._passes(event, frame)
        except ValueError:
            return False  # a strict client would refuse it as well

    def _passes(self, event: types.StreamEvent, frame: Frame) -> bool:
        if event.type == "message":
            return self._message(frame.data)
        if frame.event != event.type or not (self._started or event.type == "message_start"):
            return False
        match event.type:
            case "content_block_delta":
                return self._open and event.index == self._next - 1
            case "content_block_start":
                return self._block_start(event)
            case "content_block_stop":
                was_open, self._open = self._open, False
                return was_open and event.index == self._next - 1
            case "message_start":
                return self._message_start(event)
            case "message_delta":
                return self._message_delta(event)
            case "message_stop":
                self._stopped = True
                return self._stop is not None and not self._open
            case _:
                return True

    def closed(self) -> bool:
        return self._whole or self._stopped

    def _message_start(self, event: types.StreamEvent) -> bool:
        again, self._started = self._started, True
        message = _decode_message(bytes(event.message)) if event.message else types.Message()
        return not again and _named(message) and message.content == [] and message.stop_reason is None

    def _block_start(self, event: types.StreamEvent) -> bool:
        if not self._started or self._open or event.index != self._next or self._stop:
            return False
        self._next += 1
        self._open = True
        return not event.content_block or self._block(bytes(event.content_block))

    def _block(self, raw: bytes) -> bool:
        block = _decode_block(raw)
        if block.type != "tool_use":
            return True
        id = block.id or ""
        if bytes(block.input).strip() not in (b"", b"{}") and not self._whole:
            return False
        if not (WORDS.legal(id) and block.name) or id in self._ids:
            return False
        self._ids.add(id)
        return True

    def _message_delta(self, event: types.StreamEvent) -> bool:
        reason = event.delta.stop_reason if event.delta else None
        if self._open or self._stop or event.usage is None:
            return False
        self._stop = reason
        return reason is None or self._truthful(reason)

    def _truthful(self, reason: str) -> bool:
        return (reason == "tool_use") == bool(self._ids) or reason not in ("tool_use", "end_turn")

    def _message(self, data: bytes) -> bool:
        self._whole = True
        message = _decode_message(data)
        blocks = [bytes(block) for block in message.content or ()]
        if not (_named(message) and message.stop_reason and message.content is not None):
            return False
        return all(self._block(block) for block in blocks) and self._truthful(message.stop_reason)


def _named(message: types.Message) -> bool:
    """Is everything there that a client's own type demands?"""
    usage = message.usage
    counted = usage is not None and usage.input_tokens is not None and usage.output_tokens is not None
    return bool(message.id and message.model and counted) and (message.type, message.role) == (
        "message",
        "assistant",
    )
