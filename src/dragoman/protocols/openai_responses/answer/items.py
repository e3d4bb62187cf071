"""Decode one output item of a Responses answer while it arrives.

The same text comes up to four times: in deltas, in the `.done` event, in `output_item.done` and in the final
response. Servers leave out some of them: LM Studio sends no argument deltas (litellm#25321), others send only
the final response. An item remembers the emitted text, so each text is emitted once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import ArgumentsDelta, BlockEnd, BlockStart, CitationAdded, Event, Sealed, TextDelta
from ....model.messages import (
    SEPARATOR,
    Citation,
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
from ....wire.structs import StructReader, read_value
from ..own import NAME
from . import wire

_CALLS = {"function_call": "function", "custom_tool_call": "custom"}
_UNDERSTOOD = frozenset({"message", "reasoning", *_CALLS})
_read_item = StructReader(wire.AnswerItem)


class BlockNumbers:
    """Assigns the block numbers of one answer."""

    def __init__(self) -> None:
        self.used = 0

    def next(self) -> int:
        self.used += 1
        return self.used - 1


class ItemBlock:
    """A block of an item: a content part, the reasoning, or the call."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.pieces: list[str] = []
        self.closed = False

    def remainder(self, whole: str) -> str:
        """The rest of `whole` that is not emitted yet. Empty if `whole` contradicts the emitted text."""
        emitted = "".join(self.pieces)
        return whole[len(emitted) :] if whole.startswith(emitted) else ""


class OpenItem:
    """An output item while it arrives."""

    def __init__(self, numbers: BlockNumbers, issuer: str) -> None:
        self._numbers = numbers
        self._issuer = issuer
        self.item = wire.AnswerItem()
        self.raw = b""
        self.done = False
        self._blocks: dict[tuple[str, int], ItemBlock] = {}
        self._waiting: list[str] = []
        self._part: tuple[str, int] | None = None
        """The part of the reasoning with the latest delta."""

    @property
    def is_call(self) -> bool:
        return self.item.type in _CALLS

    @property
    def silent(self) -> bool:
        """Is this a message without any content so far?"""
        return self.item.type == "message" and not self._blocks and not self.done

    def update(self, raw: bytes, out: list[Event]) -> None:
        """Update the item from an `added` or `done` event."""
        self.raw = raw
        item, known = _read_item(raw), self.item.type
        if item.type not in _UNDERSTOOD and known in _UNDERSTOOD:
            item.type = known  # an item that began with a known type keeps it
        item.type = item.type or known
        self.item = item
        if self._waiting and self._whole_arguments():
            self._waiting = [self._whole_arguments()]
        if self.is_call and self.item.name and ("call", 0) not in self._blocks:
            call = self._open("call", 0, self._call(), out)
            for piece in self._waiting:
                self._grow(call, piece, out)
            self._waiting.clear()

    def begin(self, raw: bytes, out: list[Event]) -> None:
        """Begin the item with its `added` event."""
        self.update(raw, out)
        if self.item.type == "reasoning":
            self._block("thinking", 0, Thinking(extras=self._own_id()), out)

    def text(self, index: int, piece: str, out: list[Event]) -> None:
        if piece:
            self._grow(self._block("text", index, Text(extras=self._own_id(index)), out), piece, out)

    def refusal(self, index: int, piece: str, out: list[Event]) -> None:
        if piece:
            self._grow(self._block("refusal", index, Refusal(), out), piece, out)

    def thinking(self, kind: str, part: int, piece: str, out: list[Event]) -> None:
        """Add reasoning text. The parts of a summary become one thinking block, separated by blank lines.

        `kind`: a server may send a summary and the full reasoning. Only the kind that comes first is emitted.
        """
        block = self._block("thinking", 0, Thinking(extras=self._own_id()), out)
        first, last = self._part or (kind, part)
        if not piece or first != kind:
            return
        self._part = (kind, part)
        if part != last and block.pieces:
            self._separate(block, out)
        self._grow(block, piece, out)

    def arguments(self, piece: str, out: list[Event]) -> None:
        block = self._blocks.get(("call", 0))
        if block is None:
            self._waiting.append(piece)  # the name is in the item, which has not arrived yet
        else:
            self._grow(block, piece, out)

    def all_arguments(self, given: Any, out: list[Event]) -> None:
        """Emit the rest of the whole arguments, from a `.done` event or from the item."""
        whole = _as_text(given)
        block = self._blocks.get(("call", 0))
        if block is None:
            if not self._waiting and whole:
                self._waiting.append(whole)
        elif rest := block.remainder(whole):
            self._grow(block, rest, out)

    def cite(self, index: int, annotation: Any, out: list[Event]) -> None:
        if isinstance(annotation, dict):
            block = self._block("text", index, Text(extras=self._own_id(index)), out)
            out.append(CitationAdded(block.number, read_citation(annotation)))  # pyright: ignore[reportUnknownArgumentType]

    def finish(self, out: list[Event]) -> None:
        """Emit the content that is not emitted yet, and close the item."""
        if self.done:
            return
        self.done = True
        item = self.item
        if item.type == "message":
            self._finish_message(out)
        elif item.type == "reasoning":
            self._finish_reasoning(out)
        elif self.is_call:
            if ("call", 0) not in self._blocks:
                self._open("call", 0, self._call(), out)
            self.all_arguments(self._whole_arguments(), out)
        elif self.raw and item.type:
            self._open("opaque", 0, Opaque(Raw(NAME, read_value(self.raw)), item.type), out)
        self.close(out)

    def close(self, out: list[Event]) -> None:
        if self._waiting and ("call", 0) not in self._blocks:
            block = self._open("call", 0, self._call(), out)  # a ghost: it has no name
            self._grow(block, "".join(self._waiting), out)
            self._waiting.clear()
        # An incomplete call is useless, but incomplete text is still useful.
        complete = not self.is_call or self.item.status != "incomplete"
        for block in self._blocks.values():
            if not block.closed:
                block.closed = True
                out.append(BlockEnd(block.number, complete))

    def _finish_message(self, out: list[Event]) -> None:
        for index, content in enumerate(self.item.content or ()):
            if content.refusal is not None:
                block = self._block("refusal", index, Refusal(), out) if content.refusal else None
                whole = content.refusal
            else:
                whole = content.text or ""
                part = Text(extras=self._own_id(index))
                block = self._block("text", index, part, out) if whole else None
            cited = ("text", index) in self._blocks and bool(self._blocks["text", index].pieces)
            if block is not None and (rest := block.remainder(whole)):
                self._grow(block, rest, out)
            if not cited:
                for annotation in content.annotations or ():
                    self.cite(index, annotation, out)

    def _finish_reasoning(self, out: list[Event]) -> None:
        item = self.item
        texts = [c.text for c in item.summary or () if c.text] or [
            c.text for c in item.content or () if c.text
        ]
        if texts or item.encrypted_content:
            block = self._block("thinking", 0, Thinking(extras=self._own_id()), out)
            self._rest_of_reasoning(block, texts, out)
            if item.encrypted_content:
                # Taken from `done`: OpenAI says that the copy in `added` may be incomplete.
                seal = Seal(NAME, item.encrypted_content, item.id, issuer=self._issuer)
                out.append(Sealed(block.number, seal))

    def _rest_of_reasoning(self, block: ItemBlock, texts: list[str], out: list[Event]) -> None:
        """Emit the part of the whole reasoning that no delta contained."""
        emitted = "".join(block.pieces)
        if not SEPARATOR.join(texts).startswith(emitted):
            return
        known = len(emitted)
        for number, text in enumerate(texts):
            if number and not known:
                self._separate(block, out)
            elif number:
                known = max(0, known - len(SEPARATOR))
            self._grow(block, text[known:], out)
            known = max(0, known - len(text))

    def _call(self) -> ToolCall:
        item = self.item
        id = item.call_id or item.id or ""
        kind = "custom" if item.type == "custom_tool_call" else "function"
        return ToolCall(
            id=id, name=item.name or "", kind=kind, namespace=item.namespace, extras=self._own_id()
        )

    def _whole_arguments(self) -> str:
        return _as_text(self.item.arguments if self.item.type == "function_call" else self.item.input)

    def _own_id(self, index: int = 0) -> Extras | None:
        """The item's id, for a Responses client that may have it from a verbatim frame."""
        return Extras(NAME, {"item_id": self.item.id}) if self.item.id and index == 0 else None

    def _block(self, kind: str, index: int, part: Part, out: list[Event]) -> ItemBlock:
        return self._blocks.get((kind, index)) or self._open(kind, index, part, out)

    def _open(self, kind: str, index: int, part: Part, out: list[Event]) -> ItemBlock:
        block = ItemBlock(self._numbers.next())
        self._blocks[kind, index] = block
        out.append(BlockStart(block.number, part))
        return block

    def _separate(self, block: ItemBlock, out: list[Event]) -> None:
        if not block.closed:
            block.pieces.append(SEPARATOR)
            out.append(TextDelta(block.number, SEPARATOR, separates=True))

    def _grow(self, block: ItemBlock, piece: str, out: list[Event]) -> None:
        if piece and not block.closed:
            block.pieces.append(piece)
            call = self._blocks.get(("call", 0)) is block
            out.append((ArgumentsDelta if call else TextDelta)(block.number, piece))


def _as_text(arguments: Any) -> str:
    """Arguments as text. OpenAI's `tool_search_call` has an object, and so have calls of some servers."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else msgspec.json.encode(arguments).decode()


def read_citation(annotation: dict[str, Any]) -> Citation:
    return Citation(
        url=str(annotation.get("url") or ""),
        title=str(annotation.get("title") or annotation.get("filename") or ""),
        start=annotation.get("start_index"),
        end=annotation.get("end_index"),
        raw=Raw(NAME, annotation),
    )
