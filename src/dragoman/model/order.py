"""The legal order of events: two tables, and the checker that applies them to every decoder.

An answer is in one of three states. `ANSWER` lists the events that are legal in each state, and the state
that follows. Each open block has a kind of part. `BLOCK` lists the events that are legal in an open block of
that kind. Everything else is illegal. The manual draws its state diagram from these two tables.
"""

from __future__ import annotations

from typing import Any, Literal, cast

from .errors import Fault, OrderError
from .events import (
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
from .messages import Media, Opaque, Refusal, Search, Text, Thinking, ToolCall, ToolResult

State = Literal["idle", "open", "over"]

ANSWER: dict[State, dict[type, State]] = {
    # A failure may be the first event: an upstream can refuse a request inside an HTTP 200.
    "idle": {Start: "open", Ping: "idle", Unknown: "idle", Carried: "idle", Failed: "over"},
    "open": {
        BlockStart: "open",
        TextDelta: "open",
        ArgumentsDelta: "open",
        CitationAdded: "open",
        Sealed: "open",
        BlockEnd: "open",
        UsageSeen: "open",
        Ping: "open",
        Unknown: "open",
        Carried: "open",
        End: "over",
        Failed: "over",
    },
    "over": {},
}

BLOCK: dict[type, frozenset[type]] = {
    Text: frozenset({TextDelta, CitationAdded, BlockEnd}),
    Refusal: frozenset({TextDelta, BlockEnd}),
    Thinking: frozenset({TextDelta, Sealed, BlockEnd}),
    # Gemini signs calls, not only thoughts.
    ToolCall: frozenset({ArgumentsDelta, Sealed, BlockEnd}),
    ToolResult: frozenset({BlockEnd}),
    Media: frozenset({BlockEnd}),
    Opaque: frozenset({ArgumentsDelta, BlockEnd}),
    Search: frozenset({BlockEnd}),
}

IN_BLOCK: frozenset[type] = frozenset({TextDelta, ArgumentsDelta, CitationAdded, Sealed, BlockEnd})


class Order:
    """Checks the events of one answer. Raises `OrderError` at the first illegal event."""

    __slots__ = ("_fault", "_next_block", "open", "state")

    def __init__(self, fault: Fault) -> None:
        self.state: State = "idle"
        self.open: dict[int, type] = {}
        self._fault: Fault = fault
        self._next_block = 0

    def check(self, events: list[Event]) -> None:
        state = self.state
        admitted = ANSWER[state]
        opened = self.open
        for event in cast("list[Any]", events):  # `kind` narrows the type, which pyright cannot see
            kind: type = type(event)  # pyright: ignore[reportUnknownVariableType]
            if kind not in admitted:
                raise self._illegal(f"{kind.__name__} is not allowed while the answer is {state}")
            if kind in IN_BLOCK:
                block = event.block
                if block not in opened or kind not in BLOCK[opened[block]]:
                    raise self._misplaced(kind, block, opened.get(block))
                if kind is BlockEnd:
                    del opened[block]
            elif kind is BlockStart:
                self._check_start(event)
            elif kind is Carried or kind is Unknown:
                if event.block is not None and event.block not in opened:
                    raise self._misplaced(kind, event.block, None)
            else:
                if kind is End and opened:
                    raise self._illegal(f"End came while blocks {sorted(opened)} are open")
                state = self.state = admitted[kind]
                admitted = ANSWER[state]

    def _check_start(self, event: BlockStart) -> None:
        # Block numbers only grow. So no block can open twice, without a set of all earlier numbers.
        if event.block < self._next_block:
            raise self._illegal(f"block {event.block} was opened before")
        self._next_block = event.block + 1
        self.open[event.block] = type(event.part)

    def _misplaced(self, kind: type, block: int, part: type | None) -> OrderError:
        if part is None:
            return self._illegal(f"{kind.__name__} is for block {block}, which is not open")
        return self._illegal(f"{kind.__name__} does not fit a {part.__name__} block")

    def _illegal(self, event: str) -> OrderError:
        return OrderError(f"illegal order: {event}", self._fault)
