"""Encode events for OpenAI Responses clients: a stream whose last event repeats the whole answer.

A block becomes an output item, or a part of one if the upstream speaks Responses and has several parts in an
item. The encoder keeps finished items, so `response.completed` repeats the items of the `output_item.done`
events.
"""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from ....model.events import (
    NO_USAGE,
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    Carried,
    CitationAdded,
    End,
    Event,
    Failed,
    Ping,
    Sealed,
    Start,
    TextDelta,
    Unknown,
    UsageSeen,
)
from ....model.messages import Citation, Extras, Part, Refusal, Search, Text, ToolCall, members_for
from ....wire.frames import escape_separators
from ....wire.structs import read_value
from ...base import AnswerContext
from ...common.extras import merged
from ...common.fields import Obj, is_object
from .. import searches
from ..own import NAME
from . import objects
from .forms import (
    ADDED,
    ANNOTATED,
    ARGUMENTS,
    BY_DELTA,
    CREATED,
    DONE,
    IN_PROGRESS,
    OTHER,
    QUEUED,
    REASONING,
    UNFINISHED,
    Origin,
)
from .open_item import OpenItem, OpenPart, State, form_of, repeated, required, text_of

_json = msgspec.json.Encoder().encode
_RUNNING = (IN_PROGRESS, QUEUED)
_OBJECTS = ("item", "part", "response")


class StreamEncoder:
    """Writes one answer as events. The protocol record sets `serial`, so at most one item is open."""

    def __init__(self, context: AnswerContext) -> None:
        self.items: list[Obj] = []
        """The finished items, as the client got them."""
        self.response: Obj = {}
        """The response of the newest event that has one."""
        self._context = context
        self._sequence = 0
        self._start = Start()
        self._usage = NO_USAGE
        self._own_usage: Obj | None = None
        self._finished: list[OpenItem] = []
        self._positions: dict[int, int] = {}
        """The positions of items, by the upstream's index."""
        self._ids = objects.ItemIds(context.id)
        self._item: OpenItem | None = None
        self._part: OpenPart | None = None
        """The open part of the item."""
        self._ahead: Obj | None = None
        """Members of deltas whose text the client gets later, or not at all."""
        self._told: set[str] = set()
        """The types of the events about the whole response that the client has."""
        self._refused = False

    def encode(self, events: list[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta or type(event) is ArgumentsDelta:
                if type(event) is TextDelta and event.separates:
                    self._next_part(event, out)
                else:
                    self._grow(event.text, event.extras, out)
            else:
                self._rare(event, out)
        if self._ahead is not None and self._part is not None and self._part.state is State.ADDED:
            self._grow("", None, out)
        return b"".join(out)

    def _rare(self, event: Event, out: list[bytes]) -> None:
        match event:
            case BlockStart():
                self._begin(event.part, members_for(NAME, event.extras).get("origin"), out)
            case BlockEnd():
                self._end_block(event.complete, out)
            case CitationAdded():
                self._cite(event.citation, members_for(NAME, event.extras), out)
            case Sealed():
                if self._item is not None:
                    self._item.seal = event.seal
            case Carried():
                self._carried(members_for(NAME, event.extras), event.block, out)
            case Unknown():
                self._unknown(event, out)
            case Start() | UsageSeen() | Ping() | End() | Failed():
                self._about_answer(event, out)
            case TextDelta() | ArgumentsDelta():
                raise AssertionError("`encode` handles deltas")
            case _:
                assert_never(event)

    def _about_answer(self, event: Start | UsageSeen | Ping | End | Failed, out: list[bytes]) -> None:
        match event:
            case Start():
                self._begin_answer(event, out)
            case UsageSeen():
                self._usage = self._usage.updated(event.usage)
                self._own_usage = members_for(NAME, event.extras) or self._own_usage
            case Ping():
                pass
            case End():
                self._end(event, out)
            case Failed():
                self._fail(event, out)
            case _:
                assert_never(event)

    def _emit(self, kind: str, out: list[bytes], own: Obj | None = None, **fields: Any) -> None:
        """Write an event. `own` is the upstream's frame of the same type."""
        value = {"type": kind, "sequence_number": self._sequence, **fields}
        if own:
            value = merged(value, {name: v for name, v in own.items() if name not in _OBJECTS})
        self._sequence += 1
        out.append(b"event: %s\ndata: %s\n\n" % (kind.encode(), escape_separators(_json(value))))

    # The response.

    def _begin_answer(self, event: Start, out: list[bytes]) -> None:
        self._start = event
        own = members_for(NAME, event.extras)
        # OpenAI's SDK raises if the first event is not `response.created`.
        kind = own.get("type", IN_PROGRESS)
        self._tell(CREATED, own if kind == CREATED else None, out)
        self._tell(kind, own or None, out)

    def _tell(self, kind: str, own: Obj | None, out: list[bytes]) -> None:
        """Write an event about the response as a whole. Each comes once, and before any output."""
        if kind in self._told or self._item is not None or self.items:
            return
        self._told.add(kind)
        given = own.get("response") if own else None
        given = given if is_object(given) else None
        status = "queued" if kind == QUEUED else "in_progress"
        if kind == CREATED and given is not None and given.get("status") in UNFINISHED:
            status = given["status"]
        self.response = objects.response_object(self._start, self._context, status, [], given)
        self._emit(kind, out, own, response=self.response)

    def _end(self, event: End, out: list[bytes]) -> None:
        self._end_item(out)
        own = members_for(NAME, event.extras)
        usage = objects.usage_object(self._usage, self._own_usage)
        self.response = objects.finished_response(
            self._start, self._context, self._output(own), event, usage, refused=self._refused
        )
        self._emit(f"response.{self.response['status']}", out, own, response=self.response)

    def _output(self, own: Obj) -> list[Obj]:
        """The output of the final response: all items, with the members that they have there."""
        given: dict[int, Obj] = own["response"]["output"] if own else {}
        output = list(self.items)
        for index, position in self._positions.items():
            if index in given:
                item = self._finished[position].written(given[index])
                output[position] = repeated(item, output[position])
        return output

    def _fail(self, event: Failed, out: list[bytes]) -> None:
        error = objects.error_object(event)
        own = members_for(NAME, event.extras)
        # OpenAI's SDK raises for this event, not for `response.failed`. The documented form is flat, but the
        # SDK shows the message only in the nested form. So the event has both.
        flat = {"code": error["code"], "message": error["message"], "param": None}
        self._emit("error", out, own if own.get("type") == "error" else None, **flat, error=error)

    # Items.

    def _begin(self, part: Part, origin: Origin | None, out: list[bytes]) -> None:
        self._end_part(out)
        if objects.builtin_of(part):
            origin = None  # the client gets another type of item
        item, form = self._item, form_of(part, origin)
        if item is None or not item.continues(origin):
            self._end_item(out)
            item = self._new_item(Text() if form is OTHER else part, origin, out)
        self._refused = self._refused or isinstance(part, Refusal)
        if item is None:
            return
        if form is not None or isinstance(part, ToolCall):
            self._part = item.new_part(part, form or ARGUMENTS, origin)
        item.keep([] if origin is None else origin.frames)
        if item.state is State.NEW and (form is not None or origin is not None):
            added = item.written_at_start()
            self._emit(ADDED, out, item.frames.get(ADDED), output_index=len(self.items), item=added)
        if form is OTHER and self._part is not None:
            self._begin_part(item, self._part, out)
        if given := text_of(part):
            self._grow(given, None, out)

    def _new_item(self, part: Part, origin: Origin | None, out: list[bytes]) -> OpenItem | None:
        """Open an item; None for a part that Responses answers cannot contain."""
        if isinstance(part, ToolCall) and part.seal is not None:
            carrier = objects.seal_carrier(part, part.seal, self._ids.mint("rs", len(self.items)))
            self._whole(OpenItem(part, carrier["id"], None), carrier, carrier, out)
        if objects.item_object(part, "") is None:
            return None
        id = self._ids.take(part, None if origin is None else origin.id, len(self.items))
        self._item = OpenItem(part, id, origin)
        return self._item

    def _end_block(self, complete: bool, out: list[bytes]) -> None:
        """End the part, and the item unless the upstream may have more parts for it."""
        item = self._item
        if item is None:
            return
        item.complete = complete
        self._end_part(out)
        if item.origin is None or DONE in item.frames or not item.continues(item.origin):
            self._end_item(out)

    def _end_item(self, out: list[bytes]) -> None:
        self._end_part(out)
        item, self._item = self._item, None
        if item is None:
            return
        own = item.frames.get(DONE)
        written = item.written(None if own is None else own.get("item"))
        if item.state is State.NEW:
            begun = searches.begun(written) if isinstance(item.part, Search) else written
            self._whole(item, begun, written, out)
            return
        # Codex runs every call that is done. A cut freeform input (a patch, a script) has no syntax that
        # shows the cut, so a cut freeform call gets no `done` events.
        if item.complete or not _is_freeform(item.part):
            self._emit(DONE, out, own, output_index=len(self.items), item=written)
        self._keep(item, written)

    def _whole(self, item: OpenItem, begun: Obj, written: Obj, out: list[bytes]) -> None:
        """Send an item without deltas. A search of Dragoman has all the events of a running one."""
        place = len(self.items)
        self._emit(ADDED, out, output_index=place, item=begun)
        for step in ("in_progress", "searching", "completed") if isinstance(item.part, Search) else ():
            self._emit(f"response.web_search_call.{step}", out, output_index=place, item_id=item.id)
        self._emit(DONE, out, output_index=place, item=written)
        self._keep(item, written)

    def _keep(self, item: OpenItem, written: Obj) -> None:
        item.state = State.DONE
        if item.origin is not None:
            self._positions[item.origin.item] = len(self.items)
        self.items.append(written)
        self._finished.append(item)

    # Parts.

    def _where(self, item: OpenItem, part: OpenPart) -> Obj:
        where: Obj = {"item_id": item.id, "output_index": len(self.items)}
        if part.form.index:
            where[part.form.index] = part.place
        return where

    def _begin_part(self, item: OpenItem, part: OpenPart, out: list[bytes]) -> None:
        part.state = State.ADDED
        form, where = part.form, self._where(item, part)
        if form.holder:
            own = part.frames.get(f"{form.holder}.added")
            # Servers of OpenAI's open models send no event for a part of reasoning. DeepSeek sends them.
            if own is not None or form is not REASONING:
                given = None if own is None else own.get("part")
                self._emit(f"{form.holder}.added", out, own, **where, part=part.entry("", given))
        if form.family and item.has_deltas:
            part.prepare_deltas(where)

    def _grow(self, text: str, extras: Extras | None, out: list[bytes]) -> None:
        item, part = self._item, self._part
        if item is None or part is None:
            return
        if part.state is State.NEW:
            self._begin_part(item, part, out)
        part.pieces.append(text)
        if not part.head:
            return
        if extras is not part.extras or part.once or self._ahead is not None:
            part.set_tail(extras, self._ahead)
            self._ahead = None
        data = _json(text)
        if not data.isascii():
            data = escape_separators(data)
        out.append(b"%b%d%b%b%b" % (part.head, self._sequence, part.middle, data, part.tail))
        self._sequence += 1

    def _next_part(self, event: TextDelta, out: list[bytes]) -> None:
        """End a part of reasoning. The next text begins another one, without the separator."""
        item, part = self._item, self._part
        if item is None or part is None:
            return
        self._end_part(out)
        if part.state is not State.NEW:
            self._part = item.new_part(item.part, part.form, None)
        else:
            item.parts.append(part)
            self._part = part

    def _cite(self, citation: Citation, own: Obj, out: list[bytes]) -> None:
        item, part = self._item, self._part
        if item is None or part is None:
            return
        if part.state is State.NEW:
            self._begin_part(item, part, out)
        number, note = len(part.citations), objects.annotation(citation)
        part.citations.append(citation)
        own = {name: value for name, value in own.items() if name != "annotation"}
        self._emit(ANNOTATED, out, own, **self._where(item, part), annotation_index=number, annotation=note)

    def _end_part(self, out: list[bytes]) -> None:
        item, part, self._part = self._item, self._part, None
        if item is None or part is None:
            return
        self._ahead = None
        if part.state is State.NEW and part.form.list:
            item.drop_empty()
            return
        form = part.form
        if part.state is State.NEW:
            self._begin_part(item, part, out)
        part.state = State.DONE
        if not item.has_deltas or (not item.complete and _is_freeform(item.part)):
            return
        where, text = self._where(item, part), part.text
        own = part.frames.get(f"{form.family}.done")
        if form.family:
            fields = {form.member: text}
            if own is None:
                fields |= required(form)
            if form is ARGUMENTS and isinstance(item.part, ToolCall) and (own is None or "name" in own):
                fields["name"] = item.part.name
            self._emit(f"{form.family}.done", out, own, **where, **fields)
        own = part.frames.get(f"{form.holder}.done")
        if form.holder and (form is not REASONING or f"{form.holder}.added" in part.frames):
            given = None if own is None else own.get("part")
            self._emit(f"{form.holder}.done", out, own, **where, part=part.entry(text, given))

    # Frames that only this protocol knows.

    def _carried(self, own: Obj, block: int | None, out: list[bytes]) -> None:
        kind = own.get("type")
        if kind in _RUNNING:
            self._tell(kind, own, out)
        elif block is None or self._item is None:
            return  # the client has no such item
        elif kind is not None and kind not in BY_DELTA:
            self._item.keep([own])
        elif self._part is not None:
            delta = {name: value for name, value in own.items() if name != "type"}
            self._ahead = {**(self._ahead or {}), **delta}

    def _unknown(self, event: Unknown, out: list[bytes]) -> None:
        """Send an unknown event of the upstream with our numbers."""
        if event.protocol != NAME or not self._sequence:
            return
        value: Obj = read_value(event.data)
        if "output_index" in value:
            item, position = self._item, len(self.items)
            if event.block is None:
                known = self._positions.get(value["output_index"])
                item, position = (None, -1) if known is None else (self._finished[known], known)
            if item is None:
                return  # the client has no such item
            value["output_index"] = position
            if "item_id" in value:
                value["item_id"] = item.id
        value |= {"type": event.event, "sequence_number": self._sequence}
        self._sequence += 1
        out.append(b"event: %s\ndata: %s\n\n" % (event.event.encode(), escape_separators(_json(value))))


def _is_freeform(part: Part) -> bool:
    return isinstance(part, ToolCall) and part.kind == "custom"
