"""One block of the upstream's answer on its way to the client.

The client gets some blocks late, and others never: a call may be a copy, a text may be a leaked call.
"""

from __future__ import annotations

import msgspec

from ..model.events import BlockEnd, BlockStart, Carried, CitationAdded, Event, Unknown
from ..model.messages import Extras, Text
from .plan import Numbers

InBlock = CitationAdded | Carried | Unknown
"""What belongs to a block and is neither text nor arguments."""


class ClientBlock:
    """A block, its number for the client, and what waits until the client gets it."""

    __slots__ = ("_waiting", "number", "start")

    def __init__(self, start: BlockStart) -> None:
        self.start = start
        """The start as the client gets it, except for its number."""
        self.number: int | None = None
        """The client's number. None while the client has no such block."""
        self._waiting: list[InBlock] = []

    @property
    def waits(self) -> bool:
        """Does anything wait for the block?"""
        return bool(self._waiting)

    def pass_on(self, event: InBlock, out: list[Event]) -> None:
        """Give the client what belongs to the block. It waits until the client has the block."""
        if self.number is None:
            self._waiting.append(event)
        else:
            same = event.block == self.number
            out.append(event if same else msgspec.structs.replace(event, block=self.number))

    def open(self, numbers: Numbers, out: list[Event]) -> int:
        """The client's number. If the client has no such block, it gets the block and what waited for it."""
        if self.number is None:
            start, waiting = self.start, self._waiting
            self.number, self._waiting = next(numbers), []
            same = start.block == self.number
            out.append(start if same else BlockStart(self.number, start.part, start.extras))
            for event in waiting:
                self.pass_on(event, out)
        return self.number

    def interrupt(self, out: list[Event]) -> None:
        """A call inside a text splits it: what follows the call is a new block."""
        if self.number is not None:
            out.append(BlockEnd(self.number))
            self.number, self.start = None, BlockStart(self.start.block, Text())

    def close(self, end: BlockEnd | None, out: list[Event]) -> None:
        """The block is over for the client. It may never have got the block."""
        self.drop_waiting(out)
        if self.number is None:
            carry(end and end.extras, out)
        else:
            out.append(
                BlockEnd(self.number) if end is None else BlockEnd(self.number, end.complete, end.extras)
            )

    def drop_waiting(self, out: list[Event]) -> None:
        """The client does not get the block. Members that waited for it go without a block."""
        for event in self._waiting:
            if type(event) is Carried:
                carry(event.extras, out)
        self._waiting = []


def carry(extras: Extras | None, out: list[Event]) -> None:
    """Pass on the members of a frame that has no other event for the client."""
    if extras is not None:
        out.append(Carried(extras))
