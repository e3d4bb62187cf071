"""Putting blocks in line for clients that want one after another.

OpenAI Chat may advance several calls at once; Anthropic, Responses and Gemini clients get block by block.
The first block to appear goes through live; what belongs to later ones waits until it is their turn.
"""

from __future__ import annotations

from typing import Any

from ..model.events import ArgumentsDelta, BlockEnd, BlockStart, CitationAdded, Event, Sealed, TextDelta

_IN_BLOCK = frozenset({BlockStart, TextDelta, ArgumentsDelta, CitationAdded, Sealed, BlockEnd})


class Serial:
    """One answer's blocks, one at a time."""

    __slots__ = ("_current", "_waiting")

    def __init__(self) -> None:
        self._current: int | None = None
        self._waiting: dict[int, list[Event]] = {}

    def process(self, events: list[Any]) -> list[Event]:
        """The events that may go out now: all of them, where each block is over when the next begins."""
        if self._waiting:
            return self._put_in_line(events)
        current = self._current
        for event in events:
            kind: type = type(event)  # pyright: ignore[reportUnknownVariableType]
            if kind is BlockStart:
                if current is not None:
                    return self._put_in_line(events)
                current = event.block
            elif kind is BlockEnd:
                current = None
        self._current = current
        return events

    def _put_in_line(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if type(event) in _IN_BLOCK:
                self._in_block(event, out)
            else:
                out.append(event)
        return out

    def _in_block(self, event: Any, out: list[Event]) -> None:
        if self._current is None:
            self._current = event.block
        if event.block != self._current:
            self._waiting.setdefault(event.block, []).append(event)
            return
        out.append(event)
        if type(event) is BlockEnd:
            self._next(out)

    def _next(self, out: list[Event]) -> None:
        """The open block ended: the next in line catches up, and so on while they are whole."""
        self._current = None
        while self._waiting:
            block = next(iter(self._waiting))
            events = self._waiting.pop(block)
            out.extend(events)
            if type(events[-1]) is not BlockEnd:
                self._current = block
                return
