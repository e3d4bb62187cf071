"""Collect a whole answer from its events. `collect` of a stream equals the body without streaming."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

import msgspec

from ...model.events import (
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
from ...model.messages import (
    Citation,
    Extras,
    Media,
    Opaque,
    Part,
    Refusal,
    Seal,
    Text,
    Thinking,
    ToolCall,
    thinking_text,
)
from .extras import merged

_NO_START = Start()


class BlockBuilder:
    """Collects the deltas of one block."""

    __slots__ = ("citations", "complete", "ends", "part", "pieces", "seal")

    def __init__(self, part: Part) -> None:
        self.part = part
        self.pieces: list[str] = []
        self.ends: list[int] = []
        """The indexes of the separators in `pieces`: each ends one part of a summary."""
        self.citations: list[Citation] = []
        self.seal: Seal | None = None
        self.complete = True

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def separate(self, text: str) -> None:
        """Add the text between two parts of a summary."""
        self.ends.append(len(self.pieces))
        self.pieces.append(text)

    @property
    def summaries(self) -> tuple[str, ...]:
        """The parts of the summary; empty if it has only one."""
        if not self.ends:
            return ()
        begins = (0, *(end + 1 for end in self.ends))
        return tuple(
            "".join(self.pieces[begin:end])
            for begin, end in zip(begins, (*self.ends, len(self.pieces)), strict=True)
        )

    def finished(self) -> Part:
        """The part with all its deltas."""
        part = self.part
        if type(part) is Text:
            return Text(part.text + self.text, part.cache, (*part.citations, *self.citations), part.extras)
        if type(part) is Refusal:
            return Refusal(part.text + self.text, part.extras)
        if type(part) is Thinking:
            return Thinking(part.text + self.text, self.seal or part.seal, part.extras, self.summaries)
        if type(part) is Opaque:
            return msgspec.structs.replace(part, input=part.input + self.text)
        if type(part) is ToolCall:
            seal = self.seal or part.seal
            return msgspec.structs.replace(part, arguments=part.arguments + self.text, seal=seal)
        return part


class Answer:
    """The content of a whole answer. `parts` does not contain calls that were cut off."""

    __slots__ = (
        "_blocks", "_parts", "carried", "end", "events", "failed", "start", "usage", "usage_extras",
    )  # fmt: skip

    def __init__(self) -> None:
        self.start = _NO_START
        self.usage = NO_USAGE
        self.usage_extras: Extras | None = None
        """What the frames with token counts held besides."""
        self.end: End | None = None
        self.failed: Failed | None = None
        self.carried: list[Extras] = []
        """The members that belong to no part, in order."""
        self.events: list[Event] = []
        """All events, for a protocol whose body is the last event of its stream."""
        self._blocks: dict[int, BlockBuilder] = {}
        self._parts: list[Part] | None = None

    def add(self, event: Event) -> None:
        self.extend((event,))

    def extend(self, events: Iterable[Event]) -> None:
        """Add the next events."""
        self._parts = None
        for event in events:
            self.events.append(event)
            # Compare types: `isinstance` on a msgspec struct goes through its metaclass and is much slower.
            if type(event) is TextDelta:
                block = self._blocks[event.block]
                if event.extras is not None:
                    self.carried.append(event.extras)
                if event.separates:
                    block.separate(event.text)
                else:
                    block.pieces.append(event.text)
            elif type(event) is ArgumentsDelta:
                self._blocks[event.block].pieces.append(event.text)
            else:
                self._other_event(event)

    def _other_event(self, event: Event) -> None:
        match event:
            case BlockStart() | BlockEnd() | CitationAdded() | Sealed():
                self._block_event(event)
            case UsageSeen(usage, extras):
                self.usage = self.usage.updated(usage)
                self.usage_extras = _newest(extras, self.usage_extras)
            case Carried(extras):
                self.carried.append(extras)
            case Start():
                self.start = event
            case End():
                self.end = event
            case Failed():
                self.failed = event
            case TextDelta() | ArgumentsDelta() | Ping() | Unknown():
                pass
            case _:
                assert_never(event)

    def _block_event(self, event: BlockStart | BlockEnd | CitationAdded | Sealed) -> None:
        match event:
            case BlockStart(block, part):
                self._blocks[block] = BlockBuilder(part)
            case BlockEnd(block, complete):
                self._blocks[block].complete = complete
            case CitationAdded(block, citation):
                self._blocks[block].citations.append(citation)
            case Sealed(block, seal):
                self._blocks[block].seal = seal
            case _:
                assert_never(event)

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
        return thinking_text(part for part in self.parts if isinstance(part, Thinking))

    def refusal(self) -> str:
        return "".join(part.text for part in self.parts if isinstance(part, Refusal))

    def media(self) -> list[Media]:
        return [part for part in self.parts if isinstance(part, Media)]


def _newest(newer: Extras | None, older: Extras | None) -> Extras | None:
    if newer is None or older is None:
        return newer or older
    return Extras(newer.protocol, merged(newer.members, older.members))


def collect(events: Iterable[Event]) -> Answer:
    """Collect the whole answer from its events."""
    answer = Answer()
    answer.extend(events)
    return answer
