"""Makes the tool calls of one answer right, between the upstream's events and the client's events.

- Calls get legal, unique ids and the client's tool names.
- Arguments go through the assembly that the client wants.
- Ghost calls are dropped, and calls that the model wrote as text are recovered.
- The stop reason matches the calls that the client got.

Blocks get new numbers, because some vanish and some are added. The `extras` of a delta that is held or split
go ahead of it, in a `Carried`, so each member goes to the client once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import assert_never

import msgspec

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
    Stop,
    TextDelta,
    Unknown,
    UsageSeen,
)
from ..model.messages import Notice, Search, Text, Thinking, ToolCall
from .calls import CallTracker
from .client_block import carry
from .plan import Numbers, ToolPlan
from .reask import Rejected
from .receipts import CallReceipt
from .search import SearchCall
from .text import TextStage

# Stop reasons of a normal end. Servers mix them up: Ollama, and OpenAI after a forced tool_choice, say "stop"
# after a call (ollama#7963, vllm#25054). So the calls that the client got decide between them.
_BY_CALLS = frozenset({Stop.END, Stop.TOOL, Stop.STOP_SEQUENCE, Stop.PAUSE})
_BESIDE_CALLS = frozenset({Stop.STOP_SEQUENCE, Stop.PAUSE})
"""Of these, the ones that an upstream may mean beside a call: Anthropic pauses a turn that has calls."""


class ToolStage:
    """Processes the events of one answer."""

    __slots__ = (
        "_calls", "_numbers", "_others", "_same", "_text", "_waiting", "over", "rejected", "searches",
    )  # fmt: skip

    def __init__(self, plan: ToolPlan) -> None:
        self._same = plan.same
        self._numbers: Numbers = count()
        self._calls = CallTracker(plan, self._numbers)
        self._text = TextStage(plan, self._numbers, self._calls)
        self._others: dict[int, int] = {}
        self.over = False
        """The answer has ended: later events are ignored."""
        self.rejected: tuple[Rejected, ...] = ()
        """Calls to ask the upstream for again. The answer has no end until then."""
        self.searches: tuple[SearchCall, ...] = ()
        """Searches to run now. The answer has no end until then."""
        self._waiting: End | None = None
        """The end of an answer that also has calls for the client: the model waits for their results."""

    def searched(self, found: Sequence[Search]) -> list[Event]:
        """The results for the client, and the end of the answer if the client has calls to run."""
        out: list[Event] = []
        for search in found:
            number = next(self._numbers)
            out += (BlockStart(number, search), BlockEnd(number))
        if self._waiting is not None:
            out.append(self._waiting)
        return out

    def resume(self) -> None:
        """Continue with the upstream's next answer, after it was asked again."""
        self.rejected = self.searches = ()
        self.over = False

    @property
    def receipts(self) -> list[CallReceipt]:
        return self._calls.receipts

    @property
    def notices(self) -> tuple[Notice, ...]:
        """Notices about text that was dropped. Receipts report dropped calls."""
        ends, frames = (tokens.strip() for tokens in self._text.dropped)
        found: list[Notice] = []
        if frames:
            message = f"{frames} begins a message of the model and is not part of its text"
            found.append(Notice("frame-tokens-dropped", "answer", message))
        if ends:
            message = f"{ends} ends the model's turn and is not part of its text"
            found.append(Notice("end-tokens-dropped", "answer", message))
        return tuple(found)

    def process(self, events: list[Event]) -> list[Event]:
        """Turn the upstream's events into the client's events."""
        out: list[Event] = []
        for event in events:
            if self.over:
                break
            # The most frequent events first: this runs for every fragment.
            if type(event) is ArgumentsDelta and event.block not in self._others:
                self._calls.arguments(event, out)
            elif type(event) is TextDelta and event.block not in self._others:
                self._text.delta(event, out)
                if self._text.cut is not None:
                    self._end(self._text.cut, out)
            else:
                self._rare(event, events, out)
        return out

    def _rare(self, event: Event, events: list[Event], out: list[Event]) -> None:
        match event:
            case BlockStart():
                self._start(event, out)
            case BlockEnd():
                self._block_end(event, _stop_in(events), out)
            case UsageSeen() | Ping():
                out.append(event)
            case CitationAdded():
                self._text.in_text(event, out)
            case Carried() | Unknown():
                self._carried(event, out)
            case Sealed() | TextDelta() | ArgumentsDelta():
                self._renumbered(event, out)
            case Start():
                # The client would take the id of another protocol for one of its own.
                out.append(event if self._same else Start("", event.model, event.created))
            case End():
                self._end(event, out)
            case Failed():
                self.over = True
                self._calls.fail()
                out.append(event)
            case _:
                assert_never(event)

    def _carried(self, event: Carried | Unknown, out: list[Event]) -> None:
        """Pass on what only the upstream's protocol knows. It waits for its block like a citation."""
        block = event.block
        if block is None:
            out.append(event)
        elif not (self._text.in_text(event, out) or self._calls.carry(event, block, out)):
            self._renumbered(event, out)

    def _start(self, event: BlockStart, out: list[Event]) -> None:
        self._calls.begin_next(out)
        part = event.part
        mark = self._text.begin_next(out, call=type(part) is ToolCall)
        if type(part) is ToolCall:
            self._calls.start(event, part, mark, out)
        elif type(part) is Text or type(part) is Thinking:
            self._text.start(event, out)
        else:
            number = self._others[event.block] = next(self._numbers)
            out.append(BlockStart(number, part, event.extras))

    def _block_end(self, event: BlockEnd, stop: Stop | None, out: list[Event]) -> None:
        if event.block in self._others:
            out.append(BlockEnd(self._others.pop(event.block), event.complete, event.extras))
        elif not self._text.end_block(event, out):
            self._calls.end_block(event, stop, out)
        elif self._text.cut is not None:
            self._end(self._text.cut, out)

    def _renumbered(
        self, event: Sealed | TextDelta | ArgumentsDelta | Carried | Unknown, out: list[Event]
    ) -> None:
        """Pass on an event of a block that is neither text nor a call, or a seal of any block."""
        block = event.block
        number = None if block is None else self._number(block, out)
        if number is not None:
            out.append(event if number == block else msgspec.structs.replace(event, block=number))
        elif not isinstance(event, Unknown):
            carry(event.extras, out)

    def _number(self, block: int, out: list[Event]) -> int | None:
        """The client's number of a block. Opens a block of reasoning."""
        number = self._text.number(block, out)
        if number is None:
            number = self._calls.number(block)
        return self._others.get(block) if number is None else number

    def _end(self, event: End, out: list[Event]) -> None:
        self.over = True
        self._text.end(out)
        event = self._text.cut or event
        result = self._calls.end(event.stop, out)
        if result is not None:
            if isinstance(result, Failed):
                out.append(result)
            else:
                self.rejected = result
            return
        stop = event.stop
        if stop in _BY_CALLS and not (self._same and stop in _BESIDE_CALLS and self._calls.untouched):
            stop = Stop.TOOL if self._calls.delivered else (Stop.END if stop is Stop.TOOL else stop)
        event = event if stop is event.stop else msgspec.structs.replace(event, stop=stop)
        self.searches = self._calls.take_searches()
        if not self.searches:
            out.append(event)
        elif self._calls.delivered:
            self._waiting = event


def _stop_in(events: list[Event]) -> Stop | None:
    """The stop reason, if the answer ends in the same frame."""
    last = events[-1]
    return last.stop if type(last) is End else None
