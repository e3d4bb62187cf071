"""Whole answers that say nothing unusual: perhaps some words, perhaps calls after them, and nothing else.

Nearly all answers that are not streamed are of this kind. Between equal protocols such an answer can be
judged as it lies there: a protocol's `plain_answer` reads it in one go, and gives None for whatever has a
field, or a value, that its decoder and its watch would have something to say about. What is given here is
what they would have said.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    End,
    Event,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from ..messages import Text, ToolCall


class PlainCall(msgspec.Struct, frozen=True, gc=False):
    """The model asks for a function of no namespace."""

    id: str
    name: str
    arguments: str


class PlainAnswer(msgspec.Struct, frozen=True, gc=False):
    """All that such an answer says."""

    start: Start
    text: str
    calls: Sequence[PlainCall]
    usage: Usage | None
    stop: Stop

    def events(self) -> list[Event]:
        """The same, as whoever listens hears it."""
        out: list[Event] = [self.start]
        block = 0
        if self.text:
            out += (BlockStart(0, Text()), TextDelta(0, self.text), BlockEnd(0))
            block = 1
        for call in self.calls:
            part = ToolCall(id=call.id, name=call.name)
            out += (BlockStart(block, part), ArgumentsDelta(block, call.arguments), BlockEnd(block))
            block += 1
        if self.usage is not None:
            out.append(UsageSeen(self.usage))
        out.append(End(self.stop))
        return out


def never_plain(data: bytes) -> PlainAnswer | None:
    """Of a protocol whose whole answers nobody reads in one go."""
    return None
