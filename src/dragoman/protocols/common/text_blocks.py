"""Build blocks for protocols without blocks: OpenAI Chat and Gemini send only pieces of text.

Consecutive pieces of one kind (text, thinking, refusal) form a text block. The first piece opens the block. A
piece of another kind, or a call, closes it.
"""

from __future__ import annotations

from ...model.events import BlockEnd, BlockStart, Event, TextDelta
from ...model.messages import Part, Refusal, Text, Thinking


class TextBlocks:
    """Numbers the blocks of one answer, and keeps track of the open text block."""

    __slots__ = ("_block", "_kind", "_next", "seen")

    def __init__(self) -> None:
        self._next = 0
        self._block = -1
        self._kind: type | None = None
        self.seen = False
        """Has any block been opened?"""

    @property
    def block(self) -> int | None:
        """The number of the open text block."""
        return self._block if self._kind else None

    @property
    def thought(self) -> int | None:
        """The number of the open text block, if it is thinking."""
        return self._block if self._kind is Thinking else None

    @property
    def text_block(self) -> int | None:
        """The number of the open text block, if it is plain text."""
        return self._block if self._kind is Text else None

    def open(self, part: Part, out: list[Event]) -> int:
        """Open a block of another kind (a call, an image, …) and return its number."""
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
        """Close the open text block, if there is one."""
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
