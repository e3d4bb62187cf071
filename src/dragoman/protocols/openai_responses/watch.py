"""May a Responses upstream's event go to a Responses client as it is?

Yes, while it keeps what the SDK's helper insists on (protocols.md 1C.6): `response.created` first,
sequence numbers without gaps, one response id, dense output indexes, items that keep their identity from
`added` to `done` to the final response.
"""

from __future__ import annotations

import msgspec

from ...wire.frames import Frame
from ..ids import WORDS
from . import types

_TERMINAL = frozenset({"response.completed", "response.incomplete", "response.failed"})
_decode_item = msgspec.json.Decoder(types.Item).decode
_decode_response = msgspec.json.Decoder(types.Response).decode


class Watch:
    """Follows one answer."""

    def __init__(self) -> None:
        self._sequence = 0
        self._id: str | None = None
        self._added: list[tuple[str | None, str | None]] = []
        self._done: set[int] = set()
        self._calls: set[str] = set()

    def passes(self, event: types.StreamEvent, frame: Frame) -> bool:
        try:
            return self._passes(event, frame)
        except ValueError:
            return False  # a strict client would refuse it as well

    def _passes(self, event: types.StreamEvent, frame: Frame) -> bool:
        if event.object == "response":
            return self._whole(frame.data)
        if frame.event != event.type or event.sequence_number != self._sequence:
            return False
        self._sequence += 1
        if self._id is None and event.type != "response.created":
            return False
        if event.response and not self._same_response(event):
            return False
        match event.type:
            case "response.output_item.added":
                return event.output_index == len(self._added) and self._add(bytes(event.item))
            case "response.output_item.done":
                return self._is_done(event)
            case "response.function_call_arguments.done":
                return bool(event.arguments)  # no arguments at all become `{}`
            case _:
                return event.output_index is None or event.output_index < len(self._added)

    def _same_response(self, event: types.StreamEvent) -> bool:
        response = _decode_response(bytes(event.response))
        if self._id is None:
            self._id = response.id
        if not response.id or response.id != self._id:
            return False
        if event.type in _TERMINAL and event.type != "response.failed":
            output = [_decode_item(bytes(raw)) for raw in response.output or ()]
            return len(self._done) == len(self._added) and self._added == [(i.id, i.call_id) for i in output]
        return True

    def _add(self, raw: bytes) -> bool:
        item = _decode_item(raw)
        if not item.id or any(item.id == id for id, _ in self._added) or item.content:
            return False
        self._added.append((item.id, item.call_id))
        return self._legal_call(item)

    def _legal_call(self, item: types.Item) -> bool:
        if item.type not in ("function_call", "custom_tool_call"):
            return True
        id = item.call_id or ""
        if not WORDS.legal(id) or id in self._calls or not item.name:
            return False
        self._calls.add(id)
        return True

    def _is_done(self, event: types.StreamEvent) -> bool:
        index = event.output_index
        if index is None or index >= len(self._added) or index in self._done:
            return False
        self._done.add(index)
        item = _decode_item(bytes(event.item))
        return self._added[index] == (item.id, item.call_id)

    def _whole(self, data: bytes) -> bool:
        response = _decode_response(data)
        items = [_decode_item(bytes(raw)) for raw in response.output or ()]
        named = bool(response.id and response.model and response.output is not None)
        return named and all(self._legal_call(item) for item in items)
