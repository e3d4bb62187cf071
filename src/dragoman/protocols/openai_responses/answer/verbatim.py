"""Check whether a Responses upstream's events may pass unchanged to a Responses client.

They may while they keep the rules of OpenAI's SDK: `response.created` first, sequence numbers without gaps,
one response id, dense output indexes, and items that keep their identity from `added` to `done` to the final
response. GitHub Copilot changes ids in every event, and the SDK then raises "identity changed".
"""

from __future__ import annotations

import msgspec

from ....wire.frames import Frame
from ...common.call_ids import WORDS
from . import wire
from .verbatim_items import CALLS, ItemCheck, belongs_to_item, starts_empty

# The events that contain the response, and the statuses that it may have there.
_LIFECYCLE: dict[str, tuple[str, ...]] = {
    "response.created": ("in_progress", "queued"),
    "response.queued": ("queued",),
    "response.in_progress": ("in_progress",),
    "response.completed": ("completed",),
    "response.incomplete": ("incomplete",),
    "response.failed": ("failed",),
}
UNFINISHED = ("queued", "in_progress")
"""A response in the background. The client asks for it later, by its id."""
_REASONS = ("max_output_tokens", "max_messages", "content_filter", "steered")
_FINAL = frozenset({"response.completed", "response.incomplete"})
_decode_item = msgspec.json.Decoder(wire.AnswerItem).decode
_decode_response = msgspec.json.Decoder(wire.ResponseObject).decode


class VerbatimCheck:
    """Checks the events of one answer."""

    def __init__(self) -> None:
        self._sequence = 0
        self._id: str | None = None
        self._seen: set[str] = set()
        self._items: list[ItemCheck] = []
        self._calls: set[str] = set()

    def passes(self, event: wire.ResponsesEvent, frame: Frame) -> bool:
        try:
            return self._passes(event, frame)
        except ValueError:
            return False  # a strict client would reject the event, too

    def _passes(self, event: wire.ResponsesEvent, frame: Frame) -> bool:
        if event.object == "response":
            return self._whole(frame.data)
        if frame.event != event.type or event.sequence_number != self._sequence:
            return False
        self._sequence += 1
        if event.type in _LIFECYCLE:
            return self._lifecycle(event)
        if self._id is None:
            return False
        if event.type == "response.output_item.added":
            return event.output_index == len(self._items) and self._add(bytes(event.item))
        if event.output_index is None:
            return not belongs_to_item(event.type)
        if not 0 <= event.output_index < len(self._items):
            return False
        item = self._items[event.output_index]
        if event.type == "response.output_item.done":
            return not item.done and item.finish(_decode_item(bytes(event.item)), bytes(event.item))
        return item.passes(event)

    def _lifecycle(self, event: wire.ResponsesEvent) -> bool:
        response = _decode_response(bytes(event.response))
        if event.type in self._seen or response.status not in _LIFECYCLE[event.type]:
            return False
        if not self._seen and event.type != "response.created":
            return False
        if not _named(response) or response.id != (self._id or response.id):
            return False
        self._seen.add(event.type)
        self._id = response.id
        if event.type in _FINAL:
            return _explained(response) and self._repeats([bytes(raw) for raw in response.output or ()])
        return event.type == "response.failed" or not (response.output or self._items)

    def _repeats(self, output: list[bytes]) -> bool:
        """Does the final output repeat all finished items?"""
        # With an empty final output, the SDK returns an empty answer, although all items were streamed.
        if len(output) != len(self._items):
            return False
        pairs = zip(self._items, output, strict=True)
        return all(item.done and (item.raw == raw or _same(item.raw, raw)) for item, raw in pairs)

    def _add(self, raw: bytes) -> bool:
        item = _decode_item(raw)
        if not (item.id and item.type) or any(item.id == other.identity[0] for other in self._items):
            return False
        if self._items and not self._items[-1].done:
            return False  # the encoder could not take over: it has one open item at a time
        self._items.append(ItemCheck(item))
        return starts_empty(item) and self._legal_call(item)

    def _legal_call(self, item: wire.AnswerItem) -> bool:
        if item.type not in CALLS:
            return True
        id = item.call_id or ""
        if not WORDS.legal(id) or id in self._calls or not item.name:
            return False
        self._calls.add(id)
        return item.status in ("in_progress", "completed", "incomplete")

    def _whole(self, data: bytes) -> bool:
        response = _decode_response(data)
        if response.status in UNFINISHED:
            return _named(response) and not response.output
        items = [_decode_item(bytes(raw)) for raw in response.output or ()]
        if f"response.{response.status}" not in _FINAL or not (_explained(response) and _named(response)):
            return False
        cut = response.status == "incomplete"
        calls = [item for item in items if item.type in CALLS]
        texts = [c.arguments if c.type == "function_call" else c.input for c in calls]
        if not all(isinstance(text, str) for text in texts):
            return False
        whole = all(cut or call.status == "completed" for call in calls)
        return whole and all(item.type and self._legal_call(item) for item in items)


def _named(response: wire.ResponseObject) -> bool:
    created = type(response.created_at) in (int, float)
    named = bool(response.id and response.model and response.object == "response")
    return named and created and response.output is not None and _adds_up(response.usage)


def _same(one: bytes, other: bytes) -> bool:
    return msgspec.json.decode(one) == msgspec.json.decode(other)


def _explained(response: wire.ResponseObject) -> bool:
    details = response.incomplete_details or {}
    reason = details.get("reason")
    return response.status != "incomplete" or reason in _REASONS


def _adds_up(usage: wire.ResponsesUsage | None) -> bool:
    if usage is None:
        return True
    if usage.input_tokens is None or usage.output_tokens is None:
        return False
    if min(usage.input_tokens, usage.output_tokens) < 0:
        return False
    detailed = usage.input_tokens_details is not None and usage.output_tokens_details is not None
    return detailed and usage.total_tokens == usage.input_tokens + usage.output_tokens
