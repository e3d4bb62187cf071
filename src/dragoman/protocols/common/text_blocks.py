"""Blocks for wires that have none: OpenAI Chat and Gemini send bare pieces of text, thought and refusal.

A run is a stretch of pieces of one kind. The first piece opens its block; a piece of another kind, or
whatever else comes between, closes it.
"""

from __future__ import annotations

from ...model.events import BlockEnd, BlockStart, Event, TextDelta
from ...model.messages import Part, Refusal, Text, Thinking


class TextBlocks:
    """Numbers the blocks of one answer and keeps the open run."""

    __slots__ = ("_block", "_kind", "_next", "seen")

    def __init__(self) -> None:
        self._next = 0
        self._block = -1
        self._kind: type | None = None
        self.seen = False
        """Has any block been opened?"""

    @property
    def block(self) -> int | None:
        """The open run's block."""
        return self._block if self._kind else None

    @property
    def thought(self) -> int | None:
        """The open run's block, if it is a thought."""
        return self._block if self._kind is Thinking else None

    def open(self, part: Part, out: list[Event]) -> int:
        """A block that is not a run: a call, a picture, …"""
        block = self._next
        self._next += 1
        self.seen = True
        out.append(BlockStart(block, part))
        return block

    def text(self, text: str, out: list[Event]) -> None:
        if self._kind is not Text:
            self._begin(Text, out)
        out.append(TextDelta(self._block, text))

    def thinking(self, text: str, out: list[Event]) -> None:
        self._grow(Thinking, text, out)

    def refusal(self, text: str, out: list[Event]) -> None:
        self._grow(Refusal, text, out)

    def end(self, out: list[Event]) -> None:
        """Close the open run, if there is one."""
        if self._kind is None:
            return
        out.append(BlockEnd(self._block))
        self._kind = None

    def _grow(self, kind: type[Thinking | Refusal], text: str, out: list[Event]) -> None:
        if self._kind is not kind:
            self._begin(kind, out)
        out.append(TextDelta(self._block, text))

    def _begin(self, kind: type[Text | Thinking | Refusal], out: list[Event]) -> None:
        self.end(out)
        self._block = self.open(kind(), out)
        self._kind = kind
