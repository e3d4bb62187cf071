"""Decode one output item of a Responses answer while it arrives.

The same text comes up to four times: in deltas, in the `.done` event, in `output_item.done` and in the final
response. Servers leave out some of them: LM Studio sends no argument deltas (litellm#25321), others send only
the final response. A block remembers the emitted text, so each text is emitted once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    Carried,
    CitationAdded,
    Event,
    Sealed,
    TextDelta,
    Unknown,
)
from ....model.messages import (
    SEPARATOR,
    Extras,
    Opaque,
    Part,
    Raw,
    Refusal,
    Seal,
    Text,
    Thinking,
    ToolCall,
)
from ...common.fields import Obj, is_object
from ..own import NAME
from .blocks import Block, Blocks, as_text, entries, read_citation
from .forms import (
    ADDED,
    ARGUMENTS,
    BY_TYPE,
    CALLS,
    INPUT,
    OTHER,
    REASONING,
    REFUSAL,
    SUMMARY,
    TEXT,
    Form,
    Origin,
    number,
    of_origin,
    string,
)

_UNDERSTOOD = frozenset({"message", "reasoning", *CALLS})
_NEUTRAL: dict[Form, Part] = {TEXT: Text(), REFUSAL: Refusal(), SUMMARY: Thinking(), REASONING: Thinking()}


class OpenItem:
    """An output item while it arrives."""

    def __init__(self, index: int, blocks: Blocks, kind: str = "", id: str | None = None) -> None:
        self.index = index
        self.type = kind
        self.refused = False
        self.done = False
        self._id = id
        """The first id of the item."""
        self._shared = blocks
        self._members: Obj = {}
        """The item in its newest event."""
        self._encrypted: str | None = None
        self._blocks: list[Block] = []
        self._growing: Block | None = None
        """The block of the last delta."""
        self._waiting: list[str] = []
        """Arguments that came before the call's name."""
        self._frames: list[Obj] = []
        """Frames that announced the next block."""
        self._early: list[Unknown] = []
        """Unknown events that came before the first block."""

    @property
    def is_call(self) -> bool:
        return self.type in CALLS

    def added(self, members: Obj, out: list[Event]) -> None:
        """Begin the item with its `added` event."""
        if self.done:
            return
        self._frames.append(members)
        self._update(members["item"], out)
        if self.type == "reasoning" and not self._shared.keep:
            self._open(None, 0, Thinking(), out)
        elif self.type and self.type not in _UNDERSTOOD and self._shared.keep and not self._blocks:
            self._open(None, 0, Opaque(Raw(NAME, self._members), self.type), out)

    def delta(self, form: Form, members: Obj, out: list[Event]) -> None:
        """Add a piece of text. What is left of `members` is not understood."""
        piece = members.pop("delta", None)
        at = members.pop(form.index, 0)
        block = self._growing
        if block is None or block.form is not form or block.at != at:
            block = self._growing = self._block_for_piece(form, number(at) or 0, piece, out)
        if block is None or not block.open:
            return
        extras = None
        if self._shared.keep:
            for name in ("type", "sequence_number", "output_index", "item_id"):
                members.pop(name, None)
            if members:
                extras = self._shared.last
                if extras.members != members:
                    extras = self._shared.last = Extras(NAME, members)
        if piece and isinstance(piece, str):
            block.pieces.append(piece)
            if form.list:
                out.append(TextDelta(block.number, piece, False, extras))
            else:
                out.append(ArgumentsDelta(block.number, piece, extras))
        elif self._shared.keep:
            out.append(Carried(Extras(NAME, {**members, "type": f"{form.family}.delta"}), block.number))

    def text_done(self, form: Form, members: Obj, out: list[Event]) -> None:
        """The text of a part or call is complete. Emit what no delta contained."""
        if self.done:
            return
        whole = as_text(members.get(form.member))
        if form is ARGUMENTS or form is INPUT:
            self._all_arguments(whole, out)
        elif (form is TEXT or form is REFUSAL) and whole:
            block = self._block_for(form, number(members.get(form.index)) or 0, out)
            self._grow(block, block.remainder(whole), out)
        self.part_done(members, out)

    def part_added(self, form: Form, members: Obj, out: list[Event]) -> None:
        part = members.get("part")
        if self.done or not self._shared.keep or not is_object(part):
            return
        at, kind = number(members.get(form.index)) or 0, string(part, "type")
        known = BY_TYPE.get(kind or "", OTHER)
        if known.item != self.type:
            return
        self._frames.append(members)
        if not kind:
            return  # its text will tell what it is
        if known is OTHER:
            block = self._open(OTHER, at, Opaque(Raw(NAME, part), kind), out)
        else:
            block = self._block_for(known, at, out)
        self._carry_frames(block, out)

    def part_done(self, members: Obj, out: list[Event]) -> None:
        """The end of a text or part, which has nothing new."""
        block = self._last_open()
        if block is not None and self._shared.keep:
            out.append(Carried(Extras(NAME, members), block.number))

    def cite(self, members: Obj, out: list[Event]) -> None:
        if is_object(annotation := members.get("annotation")) and not self.done:
            block = self._block_for(TEXT, number(members.get("content_index")) or 0, out)
            self._cite(block, annotation, Extras(NAME, members) if self._shared.keep else None, out)

    def unknown(self, event: Unknown, out: list[Event]) -> None:
        """An unknown event that names this item."""
        block = self._last_open()
        if block is not None:
            out.append(msgspec.structs.replace(event, block=block.number))
        elif self.done:
            out.append(event)
        else:
            self._early.append(event)

    def finish(self, members: Obj, out: list[Event]) -> None:
        """End the item with its `done` event. Emit the content that is not emitted yet."""
        if self.done:
            return
        item = members.get("item")
        if is_object(item):
            if self._shared.keep and not self._members and not self._blocks:
                self._frames.append({"type": ADDED, "item": {**item, "status": "in_progress"}})
            self._update(item, out)
        self.done = True
        if self.type == "message":
            self._finish_message(out)
        elif self.type == "reasoning":
            self._finish_reasoning(out)
        elif self.is_call:
            if not self._blocks:
                self._open_call(out)
            self._all_arguments(self._whole_arguments(), out)
        elif self.type and self._members and not self._blocks:
            self._open(None, 0, Opaque(Raw(NAME, self._members), self.type), out)
        self._carry_end(members, out)
        self.close(out)

    def close(self, out: list[Event]) -> None:
        if self._waiting and not self._blocks:
            block = self._open_call(out)  # a ghost: it has no name
            self._grow(block, "".join(self._waiting), out)
            self._waiting.clear()
        # An incomplete call is useless, but incomplete text is still useful.
        complete = not self.is_call or self._members.get("status") != "incomplete"
        if self._blocks:
            self._close_block(self._blocks[-1], out, complete)

    def _update(self, item: Obj, out: list[Event]) -> None:
        """Take over the members of an `added` or `done` event."""
        self._members = item
        kind = string(item, "type") or ""
        if kind and (kind in _UNDERSTOOD or self.type not in _UNDERSTOOD):
            self.type = kind  # an item that began with a known type keeps it
        if not self._id:
            self._id = string(item, "id")
        self._encrypted = string(item, "encrypted_content") or self._encrypted
        if not self.is_call:
            return
        if self._waiting and self._whole_arguments():
            self._waiting = [self._whole_arguments()]
        if string(item, "name") and not self._blocks:
            block = self._open_call(out)
            for piece in self._waiting:
                self._grow(block, piece, out)
            self._waiting.clear()

    def _finish_message(self, out: list[Event]) -> None:
        for at, content in enumerate(entries(self._members, "content")):
            whole = string(content, "refusal")
            form = TEXT if whole is None else REFUSAL
            whole = whole or string(content, "text") or ""
            self.refused = self.refused or bool(whole and form is REFUSAL)
            known = self._find(form, at)
            spoken = known is not None and bool(known.pieces)
            if whole:
                block = self._block_for(form, at, out)
                self._grow(block, block.remainder(whole), out)
            elif self._shared.keep and string(content, "type") not in (None, TEXT.type, REFUSAL.type):
                self._other_part(content, at, out)
            known = self._find(form, at)
            # Between equal protocols, the `done` events bring the notes that had no event of their own.
            if known is not None and not (spoken and self._shared.keep):
                for note in entries(content, "annotations")[known.cited :]:
                    self._cite(known, note, None, out)

    def _other_part(self, content: Obj, at: int, out: list[Event]) -> None:
        if self._find(OTHER, at) is None:
            self._open(OTHER, at, Opaque(Raw(NAME, content), string(content, "type") or ""), out)

    def _finish_reasoning(self, out: list[Event]) -> None:
        given = {
            form: [text for entry in entries(self._members, form.list) if (text := string(entry, "text"))]
            for form in (SUMMARY, REASONING)
        }
        if not self._shared.keep:
            # Other protocols have one text for reasoning.
            form = SUMMARY if given[SUMMARY] else REASONING
            given = {form: given[form]}
        for form, texts in given.items():
            if texts:
                block = self._find(form, 0) or self._open(form, 0, Thinking(), out)
                block.form = block.form or form
                self._rest_of_reasoning(block, texts, out)
        if self._encrypted:
            # Taken from `done`: OpenAI says that the copy in `added` may be incomplete.
            block = self._last_open() or self._open(None, 0, Thinking(), out)
            seal = Seal(NAME, self._encrypted, string(self._members, "id"), issuer=self._shared.issuer)
            out.append(Sealed(block.number, seal))

    def _rest_of_reasoning(self, block: Block, texts: list[str], out: list[Event]) -> None:
        """Emit the part of the whole reasoning that no delta contained."""
        emitted = "".join(block.pieces)
        if not SEPARATOR.join(texts).startswith(emitted):
            return
        known = len(emitted)
        for at, text in enumerate(texts):
            if at and not known:
                self._separate(block, at, out)
            elif at:
                known = max(0, known - len(SEPARATOR))
            self._grow(block, text[known:], out)
            known = max(0, known - len(text))

    def _carry_end(self, members: Obj, out: list[Event]) -> None:
        """Keep the frame of the end. It needs a block, so an item without content gets an empty one."""
        if not self._shared.keep or not self.type:
            return
        block = self._last_open()
        if block is None and self.type in ("message", "reasoning"):
            part = Text() if self.type == "message" else Thinking()
            block = self._open(TEXT if self.type == "message" else None, 0, part, out)
        if block is not None:
            out.append(Carried(Extras(NAME, members), block.number))

    def _all_arguments(self, whole: str, out: list[Event]) -> None:
        if self._blocks:
            self._grow(self._blocks[0], self._blocks[0].remainder(whole), out)
        elif not self._waiting and whole:
            self._waiting.append(whole)

    def _whole_arguments(self) -> str:
        return as_text(self._members.get(CALLS[self.type].member))

    def _open_call(self, out: list[Event]) -> Block:
        item = self._members
        form = CALLS.get(self.type, ARGUMENTS)
        call = ToolCall(
            id=string(item, "call_id") or string(item, "id") or self._id or "",
            name=string(item, "name") or "",
            kind="custom" if form is INPUT else "function",
            namespace=string(item, "namespace"),
        )
        return self._open(form, 0, call, out)

    def _block_for_piece(self, form: Form, at: int, piece: Any, out: list[Event]) -> Block | None:
        """The block of a delta; None if it has to wait for its call, or if no client gets it."""
        if not form.list:
            if self._blocks:
                return self._blocks[0]
            self._waiting.append(piece if isinstance(piece, str) else "")
            return None
        self.refused = self.refused or form is REFUSAL
        empty = not (piece and isinstance(piece, str))
        if empty and not (self._shared.keep and self.type == form.item):
            return self._find(form, at)
        if self.done:
            return None
        block = self._block_for(form, at, out)
        return block if block.form is form else None

    def _block_for(self, form: Form, at: int, out: list[Event]) -> Block:
        """The block of part `at`. All parts of a summary share one, with blank lines between them."""
        block = self._find(form, at)
        if block is None:
            return self._open(form, at, _NEUTRAL[form], out)
        if block.form is None:
            block.form, block.at = form, at
        elif block.at != at and block.form is form:
            self._separate(block, at, out)
        return block

    def _find(self, form: Form, at: int) -> Block | None:
        for block in self._blocks:
            if form.item != "reasoning":
                if block.form is form and block.at == at:
                    return block
            # Other protocols have one block for reasoning. Only the form that comes first is emitted.
            elif block.form is form or block.form is None or not self._shared.keep:
                return block
        return None

    def _last_open(self) -> Block | None:
        return self._blocks[-1] if self._blocks and self._blocks[-1].open else None

    def _open(self, form: Form | None, at: int, part: Part, out: list[Event]) -> Block:
        if self._blocks:
            self._close_block(self._blocks[-1], out)
        shared = self._shared
        block = Block(shared.used, form, at)
        shared.used += 1
        self._blocks.append(block)
        extras = None
        if shared.keep:
            extras = of_origin(Origin(self.index, self._id, form, at, self._frames))
        self._frames = []
        out.append(BlockStart(block.number, part, extras))
        out += [msgspec.structs.replace(event, block=block.number) for event in self._early]
        self._early.clear()
        return block

    def _close_block(self, block: Block, out: list[Event], complete: bool = True) -> None:
        if block.open:
            block.open = False
            out.append(BlockEnd(block.number, complete))

    def _carry_frames(self, block: Block, out: list[Event]) -> None:
        """Keep frames that announced a block which is open already."""
        if block.open:
            out += [Carried(Extras(NAME, frame), block.number) for frame in self._frames]
        self._frames = []

    def _separate(self, block: Block, at: int, out: list[Event]) -> None:
        """Begin the next part of reasoning in the same block."""
        block.at = at
        if block.pieces and block.open:
            block.pieces.append(SEPARATOR)
            out.append(TextDelta(block.number, SEPARATOR, separates=True))

    def _grow(self, block: Block, piece: str, out: list[Event]) -> None:
        if piece and block.open:
            block.pieces.append(piece)
            kind = TextDelta if block.form is None or block.form.list else ArgumentsDelta
            out.append(kind(block.number, piece))

    def _cite(self, block: Block, annotation: Obj, extras: Extras | None, out: list[Event]) -> None:
        if block.open:
            block.cited += 1
            out.append(CitationAdded(block.number, read_citation(annotation), extras))
