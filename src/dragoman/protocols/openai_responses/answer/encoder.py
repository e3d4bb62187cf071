"""Encode events for OpenAI Responses clients: a stream whose last event repeats the whole answer.

Each block becomes one output item: a message with one content part, a reasoning item, or a call. The encoder
keeps finished items, so `response.completed` repeats exactly the items of the `output_item.done` events.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Event,
    Failed,
    Sealed,
    Start,
    TextDelta,
    Unknown,
    Usage,
    UsageSeen,
)
from ....model.messages import Citation, Media, Opaque, Part, Refusal, Search, Text, Thinking, ToolCall
from ....wire.frames import Frame, escape_separators, json_string, one_line
from ....wire.structs import read_value
from ...base import AnswerContext
from ...common.collect import BlockBuilder
from .. import searches
from ..own import NAME
from . import objects, wire

_json = msgspec.json.Encoder().encode
_decode_place = msgspec.json.Decoder(wire.FramePosition).decode


class ItemBuilder(BlockBuilder):
    """Collects the open block, which becomes an item."""

    def __init__(self, part: Part, item: dict[str, Any], added: bool) -> None:
        super().__init__(part)
        self.item = item
        self.added = added
        """Has the client got `output_item.added` for this item?"""
        self.has_part = False
        """Has the client got `added` for its content part or summary part?"""
        self.delta_parts: tuple[bytes, bytes] | None = None
        """The bytes of a delta before its sequence number, and between the number and the text."""
        self.raw_reasoning = False
        """Did the client get reasoning as content, not as a summary, in the upstream's own frames?"""

    @property
    def summary(self) -> str:
        """The text of the open part of a summary."""
        return self.summaries[-1] if self.ends else self.text


def has_no_deltas(part: Part) -> bool:
    """Is the item sent without deltas? The call of a built-in tool holds an object, which has none."""
    return isinstance(part, (Media, Opaque, Search)) or objects.builtin_of(part) != ""


class StreamEncoder:
    """Writes one answer as events. The protocol record sets `serial`, so at most one item is open."""

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._sequence = 0
        self._start = Start()
        self._usage = Usage()
        self._items: list[dict[str, Any]] = []
        self._ids = objects.ItemIds(context.id)
        self._open: ItemBuilder | None = None
        self._shown: dict[str, Any] | None = None
        """An item that the client got in the upstream's own `added` frame, before its block began."""
        self._raw_part = False
        """Did the client get `content_part.added` in the upstream's own frame, for the open item?"""
        self._refused = False

    def encode(self, events: list[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            match event:
                case TextDelta(separates=True):
                    self._next_summary(event.text, out)
                case TextDelta(_, text) | ArgumentsDelta(_, text):
                    self._grow(text, out)
                case BlockStart(_, part):
                    self._begin(part, out)
                case BlockEnd(_, complete):
                    self._finish(complete, out)
                case _:
                    self._other_event(event, out)
        return b"".join(out)

    def verbatim(self, frame: Frame, events: list[Event]) -> bytes:
        self.encode(events)
        place = _decode_place(frame.data)
        if place.sequence_number is not None:
            self._sequence = place.sequence_number + 1
        self._note_raw_reasoning(place.type)
        if place.type == "response.output_item.added" and self._open is None:
            self._shown = msgspec.json.decode(bytes(place.item))
        if place.type == "response.output_item.done" and place.output_index is not None:
            # The final response must repeat the item as the client has it.
            item = msgspec.json.decode(bytes(place.item))
            self._items[place.output_index :] = [item]
            self._ids.taken(item["id"])  # an item without content has no block that takes its id
            self._open = self._shown = None  # also if the tool stage still holds back the end of its block
        return b"event: %b\ndata: %b\n\n" % (frame.event.encode(), one_line(frame.data))

    def _note_raw_reasoning(self, kind: str) -> None:
        """Note how the client gets reasoning in verbatim frames: the encoder may have to continue it."""
        if kind.startswith("response.output_item."):
            self._raw_part = False
        elif kind == "response.content_part.added":
            self._raw_part = True
        elif kind == "response.reasoning_text.delta" and self._open and not self._open.raw_reasoning:
            self._open.raw_reasoning, self._open.delta_parts = True, None

    def _other_event(self, event: Event, out: list[bytes]) -> None:
        match event:
            case Start():
                self._start = event
                # OpenAI's SDK raises if the first event is not `response.created`.
                for kind in ("response.created", "response.in_progress"):
                    self._emit(kind, out, response=self._response("in_progress"))
            case Sealed(_, seal):
                if self._open is not None:
                    self._open.seal = seal
            case CitationAdded(_, citation):
                self._cite(citation, out)
            case UsageSeen(usage):
                self._usage = self._usage.updated(usage)
            case End():
                self._end(event, out)
            case Failed():
                self._fail(event, out)
            case Unknown(protocol, name, data) if protocol == NAME and self._sequence:
                self._forward_unknown(name, data, out)
            case _:
                pass

    def _emit(self, kind: str, out: list[bytes], **fields: Any) -> None:
        value = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        out.append(b"event: %s\ndata: %s\n\n" % (kind.encode(), escape_separators(_json(value))))

    def _emit_item(self, what: str, item: dict[str, Any], out: list[bytes]) -> None:
        self._emit(f"response.output_item.{what}", out, output_index=len(self._items), item=item)

    def _forward_unknown(self, name: str, data: bytes, out: list[bytes]) -> None:
        """Send an unknown event of the upstream with our sequence number."""
        value: dict[str, Any] = read_value(data)
        if "output_index" in value:
            return  # its index counts the upstream's items, which may differ from ours
        value |= {"type": name, "sequence_number": self._sequence}
        self._sequence += 1
        out.append(b"event: %s\ndata: %s\n\n" % (name.encode(), escape_separators(_json(value))))

    def _where(self, block: ItemBuilder) -> dict[str, Any]:
        where: dict[str, Any] = {"item_id": block.item["id"], "output_index": len(self._items)}
        if isinstance(block.part, Thinking) and not block.raw_reasoning:
            where["summary_index"] = len(block.ends)
        elif not isinstance(block.part, ToolCall):
            where["content_index"] = 0
        return where

    def _begin(self, part: Part, out: list[bytes]) -> None:
        shown = self._shown_for(part, out)
        if isinstance(part, ToolCall) and part.seal is not None:
            self._whole(objects.seal_carrier(part, part.seal, self._ids.mint("rs", len(self._items))), out)
        id = self._ids.take(part, len(self._items)) if shown is None else shown["id"]
        item = objects.item_object(part, id)
        added = shown is not None or not has_no_deltas(part)
        self._open = None if item is None else ItemBuilder(part, item, added)
        self._refused = self._refused or isinstance(part, Refusal)
        if item is not None and added and shown is None:
            self._emit_item("added", item, out)

    def _shown_for(self, part: Part, out: list[bytes]) -> dict[str, Any] | None:
        """The item that the client already has, if it is the item of `part`. Any other one is closed."""
        shown = self._shown
        if shown is None or not objects.matches_item(part, shown):
            self._close_shown(out)
            return None
        self._shown = None
        self._ids.taken(shown["id"])
        return shown

    def _close_shown(self, out: list[bytes]) -> None:
        """End an item that the client has and that got no content: `done` repeats `added`."""
        shown, self._shown = self._shown, None
        if shown is not None:
            self._ids.taken(shown["id"])
            self._emit_item("done", shown, out)
            self._items.append(shown)

    def _with_part(self, out: list[bytes]) -> ItemBuilder | None:
        """The open block. Opens its content part before the first content."""
        block = self._open
        if block is not None and not block.has_part:
            block.has_part = True
            part = objects.content_part(block.part, "")
            kind = "reasoning_summary_part" if isinstance(block.part, Thinking) else "content_part"
            if part is not None:
                self._emit(f"response.{kind}.added", out, **self._where(block), part=part)
        return block

    def _grow(self, text: str, out: list[bytes]) -> None:
        block = self._with_part(out)
        if block is not None:
            block.pieces.append(text)
            if not has_no_deltas(block.part):
                head, middle = block.delta_parts or self._delta_parts(block)
                out.append(b"%b%d%b%b}\n\n" % (head, self._sequence, middle, json_string(text)))
                self._sequence += 1

    def _next_summary(self, separator: str, out: list[bytes]) -> None:
        """End the open part of a summary. The next text begins another part, without the separator."""
        block = self._open
        if block is None:
            return
        if block.raw_reasoning:
            self._grow(separator, out)
            return
        if block.has_part:
            self._done(Thinking(block.summary), self._where(block), out)
        block.separate(separator)
        block.has_part, block.delta_parts = False, None

    def _delta_parts(self, block: ItemBuilder) -> tuple[bytes, bytes]:
        """The bytes of a block's deltas before the sequence number, and between the number and the text."""
        kind, fields = objects.delta_event(block.part)
        kind = "response.reasoning_text.delta" if block.raw_reasoning else kind
        name, rest = kind.encode(), _json({**self._where(block), **fields, "delta": ""})
        head = b'event: %b\ndata: {"type":"%b","sequence_number":' % (name, name)
        middle = escape_separators(b"," + rest[1 : -len(b'""}')])  # the item id may be the upstream's
        block.delta_parts = (head, middle)
        return block.delta_parts

    def _cite(self, citation: Citation, out: list[bytes]) -> None:
        block = self._with_part(out)
        if block is not None:
            number, note = len(block.citations), objects.annotation(citation)
            block.citations.append(citation)
            kind = "response.output_text.annotation.added"
            self._emit(kind, out, **self._where(block), annotation_index=number, annotation=note)

    def _finish(self, complete: bool, out: list[bytes]) -> None:
        block, self._open = self._open, None
        if block is None:
            return
        part = block.finished()
        item = objects.whole_item(part, block.item["id"], complete)
        if block.raw_reasoning:
            item = objects.with_raw_reasoning(item)
        if isinstance(part, Search):
            self._search(item, out)
        elif has_no_deltas(part):
            self._whole(item, out, added=block.added)
        else:
            self._finish_deltas(part, item, block, complete, out)

    def _finish_deltas(
        self, part: Part, item: dict[str, Any], block: ItemBuilder, complete: bool, out: list[bytes]
    ) -> None:
        """End an item that was sent in deltas."""
        # Codex runs every call that is done. A cut freeform input (a patch, a script) has no syntax that
        # shows the cut, so a cut freeform call gets no `done` events.
        if complete or not (isinstance(part, ToolCall) and part.kind == "custom"):
            if block.has_part or isinstance(part, ToolCall):
                last = Thinking(block.summary) if block.ends else part
                if block.raw_reasoning:
                    self._raw_done(block, out)
                else:
                    self._done(last, self._where(block), out)
            self._emit_item("done", item, out)
        self._items.append(item)

    def _raw_done(self, block: ItemBuilder, out: list[bytes]) -> None:
        where, text = self._where(block), block.text
        self._emit("response.reasoning_text.done", out, **where, text=text)
        if self._raw_part:
            content = {"type": "reasoning_text", "text": text}
            self._emit("response.content_part.done", out, **where, part=content)

    def _done(self, part: Part, where: dict[str, Any], out: list[bytes]) -> None:
        match part:
            case Thinking(text):
                content = objects.content_part(part, text)
                self._emit("response.reasoning_summary_text.done", out, **where, text=text)
                self._emit("response.reasoning_summary_part.done", out, **where, part=content)
            case ToolCall(arguments=text, kind="custom"):
                self._emit("response.custom_tool_call_input.done", out, **where, input=text)
            case ToolCall(name=name, arguments=text):
                kind = "response.function_call_arguments.done"
                self._emit(kind, out, **where, name=name, arguments=text)
            case Text(text):
                content = objects.content_part(part, text)
                self._emit("response.output_text.done", out, **where, text=text, logprobs=[])
                self._emit("response.content_part.done", out, **where, part=content)
            case Refusal(text):
                content = objects.content_part(part, text)
                self._emit("response.refusal.done", out, **where, refusal=text)
                self._emit("response.content_part.done", out, **where, part=content)
            case _:
                pass

    def _whole(self, item: dict[str, Any], out: list[bytes], added: bool = False) -> None:
        """Send an item without deltas."""
        if not added:
            self._emit_item("added", item, out)
        self._emit_item("done", item, out)
        self._items.append(item)

    def _search(self, item: dict[str, Any], out: list[bytes]) -> None:
        """Send a search with all the events of a running one. Dragoman's search is complete already."""
        self._emit_item("added", searches.begun(item), out)
        for step in ("in_progress", "searching", "completed"):
            kind, place = f"response.web_search_call.{step}", len(self._items)
            self._emit(kind, out, output_index=place, item_id=item["id"])
        self._emit_item("done", item, out)
        self._items.append(item)

    def _end(self, event: End, out: list[bytes]) -> None:
        self._close_shown(out)
        response = objects.finished_response(
            self._start, self._context, list(self._items), event, self._usage, refused=self._refused
        )
        self._emit(f"response.{response['status']}", out, response=response)

    def _fail(self, event: Failed, out: list[bytes]) -> None:
        # The documented form is flat, but OpenAI's SDK shows the message only in the nested form. So the
        # event has both.
        error = objects.error_object(event)
        flat = {"code": error["code"], "message": error["message"], "param": None}
        self._emit("error", out, **flat, error=error)

    def _response(self, status: str) -> dict[str, Any]:
        return objects.response_object(self._start, self._context, status, list(self._items))
