"""Send one block at a time to clients whose protocol does not interleave blocks.

An OpenAI Chat upstream may interleave the fragments of several calls. Anthropic's stream grammar is
sequential, and the encoders for Responses, Gemini and Cursor have one open block. The first block streams
live. Events of later blocks wait until the blocks before them end. (Anthropic's Python SDK accepts
interleaved blocks, but the documented grammar does not, and some clients have their own parsers.)
"""

from __future__ import annotations

from typing import assert_never

from ..model.events import (
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


class BlockSequencer:
    """Puts the blocks of one answer into sequence."""

    __slots__ = ("_current", "_waiting")

    def __init__(self) -> None:
        self._current: int | None = None
        self._waiting: dict[int, list[Event]] = {}

    def process(self, events: list[Event]) -> list[Event]:
        """Return the events that may go out now. If no blocks overlap, these are all of `events`."""
        if self._waiting:
            return self._reorder(events)
        current = self._current
        for event in events:
            if type(event) is BlockStart:
                if current is not None:
                    return self._reorder(events)
                current = event.block
            elif type(event) is BlockEnd:
                current = None
        self._current = current
        return events

    def _reorder(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            match event:
                case (
                    BlockStart(block) | TextDelta(block) | ArgumentsDelta(block) | CitationAdded(block)
                    | Sealed(block) | BlockEnd(block)
                ):  # fmt: skip
                    self._in_block(event, block, out)
                case Carried(block=block) | Unknown(block=block) if block is not None:
                    self._in_block(event, block, out)
                case Start() | UsageSeen() | Ping() | Carried() | Unknown() | End() | Failed():
                    out.append(event)
                case _:
                    assert_never(event)
        return out

    def _in_block(self, event: Event, block: int, out: list[Event]) -> None:
        if self._current is None:
            self._current = block
        if block != self._current:
            self._waiting.setdefault(block, []).append(event)
            return
        out.append(event)
        if type(event) is BlockEnd:
            self._next(out)

    def _next(self, out: list[Event]) -> None:
        """The open block ended: release the waiting blocks, up to the first one that has not ended."""
        self._current = None
        while self._waiting:
            block = next(iter(self._waiting))
            events = self._waiting.pop(block)
            out.extend(events)
            if type(events[-1]) is not BlockEnd:
                self._current = block
                return
