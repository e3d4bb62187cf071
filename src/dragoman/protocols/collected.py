"""A whole answer, put together from its events. The twin of a stream: `collect(stream) == the body`."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..events import (
    DELTAS,
    NO_USAGE,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Event,
    Failed,
    Sealed,
    Start,
    UsageSeen,
)
from ..messages import Citation, Media, Part, Refusal, Seal, Text, Thinking, ToolCall

_NO_START = Start()


class Block:
    """One block while it grows."""

    __slots__ = ("citations", "complete", "part", "pieces", "seal")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.pieces: list[str] = []
        self.citations: list[Citation] = []
        self.seal: Seal | None = None
        self.complete = True

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def finished(self) -> Part:
        part = self.part
        match part:
            case Text():
                citations = (*part.citations, *self.citations)
                return msgspec.structs.replace(part, text=part.text + self.text, citations=citations)
            case Refusal():
                return Refusal(part.text + self.text)
            case Thinking():
                seal = self.seal or part.seal
                return msgspec.structs.replace(part, text=part.text + self.text, seal=seal)
            case ToolCall():
                seal = self.seal or part.seal
                return msgspec.structs.replace(part, arguments=part.arguments + self.text, seal=seal)
            case _:
                return part


class Answer:
    """Everything an answer said. Calls that were cut off are not in `parts`."""

    __slots__ = ("_blocks", "_parts", "end", "failed", "start", "usage")

    def __init__(self) -> None:
        self.start = _NO_START
        self.usage = NO_USAGE
        self.end: End | None = None
        self.failed: Failed | None = None
        self._blocks: dict[int, Block] = {}
        self._parts: list[Part] | None = None

    def add(self, event: Event) -> None:
        self._parts = None
        if isinstance(event, DELTAS):
            self._blocks[event.block].pieces.append(event.text)
        else:
            self._rare(event)

    def _rare(self, event: Event) -> None:
        # Not by `match`: taking the fields out of a pattern costs more than all the rest of it.
        if isinstance(event, BlockStart):
            self._blocks[event.block] = Block(event.part)
        elif isinstance(event, BlockEnd):
            self._blocks[event.block].complete = event.complete
        elif isinstance(event, UsageSeen):
            self.usage = self.usage.updated(event.usage)
        elif isinstance(event, Start):
            self.start = event
        elif isinstance(event, End):
            self.end = event
        elif isinstance(event, CitationAdded):
            self._blocks[event.block].citations.append(event.citation)
        elif isinstance(event, Sealed):
            self._blocks[event.block].seal = event.seal
        elif isinstance(event, Failed):
            self.failed = event

    @property
    def parts(self) -> list[Part]:
        if self._parts is None:
            self._parts = [b.finished() for _, b in sorted(self._blocks.items()) if b.complete]
        return self._parts

    def calls(self) -> list[ToolCall]:
        return [part for part in self.parts if isinstance(part, ToolCall)]

    def text(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    def thinking(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Thinking))

    def refusal(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Refusal))

    def media(self) -> list[Media]:
        return [part for part in self.parts if isinstance(part, Media)]


def collect(events: Iterable[Event]) -> Answer:
    """The whole answer."""
    answer = Answer()
    for event in events:
        answer.add(event)
    return answer
