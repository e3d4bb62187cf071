"""Between the upstream's events and the client's: every tool call whole, valid and once.

Calls get legal, unique ids and the client's own tool names; their arguments go through the assembly the
client wants; ghosts are dropped; calls that models wrote as text are recovered; the stop reason is made to
say what really came out. Blocks are numbered anew, since some vanish and some appear. An event that needs
no change is handed on as the very same object: that is how the exchange knows a frame may pass verbatim.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec

from ..model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Event,
    Failed,
    Ping,
    Start,
    Stop,
    TextDelta,
    Unknown,
    UsageSeen,
)
from ..model.messages import Notice, Text, Thinking, ToolCall
from .calls import Calls
from .plan import Numbers, ToolPlan
from .reask import Rejected
from .receipts import CallReceipt
from .text import Prose

_BESIDE = frozenset({UsageSeen, Ping, Unknown})
# The model's own reasons; whether it called a tool is seen from what came out.
_BY_CALLS = frozenset({Stop.END, Stop.TOOL, Stop.STOP_SEQUENCE, Stop.PAUSE})


class ToolStage:
    """One answer's events, made right."""

    __slots__ = ("_calls", "_numbers", "_others", "_prose", "_same", "over", "rejected")

    def __init__(self, plan: ToolPlan) -> None:
        self._same = plan.same
        self._numbers: Numbers = count()
        self._calls = Calls(plan, self._numbers)
        self._prose = Prose(plan, self._numbers, self._calls)
        self._others: dict[int, int] = {}
        self.over = False
        """Nothing that comes now is for the client."""
        self.rejected: tuple[Rejected, ...] = ()
        """Calls to ask the upstream for again; until then the answer has no end."""

    def resume(self) -> None:
        """The upstream was asked again, and its next answer goes on where the last one stopped."""
        self.rejected = ()
        self.over = False

    @property
    def receipts(self) -> list[CallReceipt]:
        return self._calls.receipts

    @property
    def notices(self) -> tuple[Notice, ...]:
        """What became of the words that did not go out; of calls, the receipts tell."""
        ends, frames = (tokens.strip() for tokens in self._prose.dropped)
        found: list[Notice] = []
        if frames:
            begins = f"{frames} begins a message of the model, and is no part of what it says"
            found.append(Notice("frame-tokens-dropped", "answer", begins))
        if ends:
            over = f"{ends} ends the model's turn, and is no part of what it says"
            found.append(Notice("end-tokens-dropped", "answer", over))
        return tuple(found)

    def process(self, events: list[Any]) -> list[Event]:
        """The client's events for the upstream's."""
        out: list[Event] = []
        for event in events:
            if self.over:
                break
            kind: type = type(event)  # pyright: ignore[reportUnknownVariableType]
            if kind is ArgumentsDelta:
                self._calls.arguments(event, out)
            elif kind is TextDelta and event.block not in self._others:
                self._prose.delta(event, out)
                if self._prose.cut is not None:
                    self._end(self._prose.cut, out)
            elif kind in _BESIDE:
                out.append(event)
            elif kind is BlockStart:
                self._start(event, out)
            elif kind is BlockEnd:
                self._block_end(event, _stop_in(events), out)
            else:
                self._rare(event, out)
        return out

    def _rare(self, event: Event, out: list[Event]) -> None:
        if type(event) is End:
            self._end(event, out)
        elif type(event) is CitationAdded:
            self._prose.cite(event, out)
        elif type(event) is Start:
            # An id of another protocol would be taken for one of the client's.
            out.append(event if self._same else Start("", event.model, event.created, event.extras))
        elif type(event) is Failed:
            self.over = True
            self._calls.break_off()
            out.append(event)
        else:
            self._renumbered(event, out)

    def _start(self, event: BlockStart, out: list[Event]) -> None:
        self._calls.settle(out)
        part = event.part
        mark = self._prose.settle(out, call=type(part) is ToolCall)
        if type(part) is ToolCall:
            self._calls.start(event, part, mark)
        elif type(part) is Text or type(part) is Thinking:
            self._prose.start(event, out)
        else:
            number = self._others[event.block] = next(self._numbers)
            out.append(event if number == event.block else BlockStart(number, part))

    def _block_end(self, event: BlockEnd, stop: Stop | None, out: list[Event]) -> None:
        if event.block in self._others:
            number = self._others.pop(event.block)
            out.append(event if number == event.block else BlockEnd(number))
        elif not self._prose.end_block(event, out):
            self._calls.end_block(event, stop, out)
        elif self._prose.cut is not None:
            self._end(self._prose.cut, out)

    def _renumbered(self, event: Any, out: list[Event]) -> None:
        number = self._prose.number(event.block, out)
        if number is None:
            number = self._calls.number(event.block)
        if number is None:
            number = self._others.get(event.block)
        if number == event.block:
            out.append(event)
        elif number is not None:
            out.append(msgspec.structs.replace(event, block=number))

    def _end(self, event: End, out: list[Event]) -> None:
        self.over = True
        self._prose.end(out)
        event = self._prose.cut or event
        result = self._calls.end(event.stop, out)
        if result is not None:
            if isinstance(result, Failed):
                out.append(result)
            else:
                self.rejected = result
            return
        stop = event.stop
        if stop in _BY_CALLS:
            stop = Stop.TOOL if self._calls.delivered else (Stop.END if stop is Stop.TOOL else stop)
        out.append(event if stop is event.stop else msgspec.structs.replace(event, stop=stop))


def _stop_in(events: list[Event]) -> Stop | None:
    """Why the answer ends, where that is said in the same breath."""
    last = events[-1]
    return last.stop if type(last) is End else None
