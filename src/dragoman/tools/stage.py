"""Between the upstream's events and the client's: every tool call whole, valid and once.

Calls get legal, unique ids and the client's own tool names; their arguments go through the assembly the
client wants; ghosts are dropped; calls that models wrote as text are recovered; the stop reason is made to
say what really came out. Blocks are numbered anew, since some vanish and some appear. An event that needs
no change is handed on as the very same object: that is how the exchange knows a frame may pass verbatim.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from ..events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Sealed,
    Stop,
    TextDelta,
)
from ..messages import Text, Thinking, ToolCall
from ..protocols import ids
from ..protocols.ids import IdRule
from ..protocols.names import Called, ToolNames
from .call import Assembly, FreeText, OpenCall, Unwrapped, Wrapped
from .callnames import resolve
from .receipts import CallReceipt
from .rules import Rules
from .textflow import Recovered, TextFlow

# The upstream itself says that not everything came: a call that is cut is no surprise then.
_CUT = frozenset({Stop.MAX_TOKENS, Stop.CONTEXT_FULL, Stop.FILTER, Stop.REFUSAL})
_BY_CALLS = frozenset({Stop.END, Stop.TOOL, Stop.STOP_SEQUENCE, Stop.PAUSE})


class ToolPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a request when its answer comes in."""

    names: ToolNames
    ids: IdRule
    seed: str
    mode: Literal["live", "whole"] = "live"
    serial: bool = False
    """The client wants one block after another: a call that is whole is ended when the next begins."""
    custom: bool = True
    """Does the client know freeform calls?"""
    rules: Rules = Rules()
    stop: tuple[str, ...] = ()
    unopened_thinking: bool = False


class ToolStage:
    """One answer's events, made right."""

    def __init__(self, plan: ToolPlan) -> None:
        self.receipts: list[CallReceipt] = []
        self._plan = plan
        self._numbers: dict[int, int] = {}
        self._next = 0
        self._calls: dict[int, OpenCall] = {}
        self._earlier: list[OpenCall] = []
        self._ids: set[str] = set()
        self._delivered = 0
        self._broken = 0
        self._text = TextFlow(plan.names, plan.stop, plan.unopened_thinking)
        self._text_block: int | None = None
        self._text_in: int | None = None
        self._text_start: BlockStart | None = None
        self._thinking_block: int | None = None
        self._over = False

    def process(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if self._over:
                break
            match event:
                case TextDelta(block) if block == self._text_in:
                    self._text_delta(event, out)
                case ArgumentsDelta(block):
                    call = self._calls.get(block)
                    if call is not None:
                        self._arguments(call, event, out)
                case BlockStart():
                    self._block_start(event, out)
                case BlockEnd():
                    self._block_end(event, events, out)
                case End():
                    self._end(event, out)
                case Failed():
                    self._over = True
                    out.append(event)
                case TextDelta() | CitationAdded() | Sealed():
                    self._renumbered(event, out)
                case _:
                    out.append(event)
        return out

    # Blocks in general.

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _block_start(self, event: BlockStart, out: list[Event]) -> None:
        part = event.part
        self._settle(out)
        if isinstance(part, ToolCall):
            self._call_start(event, part, out)
        elif isinstance(part, Text):
            self._text_in = event.block  # opened for the client by its first words
            self._text_start = event
        else:
            if isinstance(part, Thinking):
                self._text.reasoning_seen()
            number = self._number()
            self._numbers[event.block] = number
            out.append(event if number == event.block else BlockStart(number, part))

    def _block_end(self, event: BlockEnd, events: list[Event], out: list[Event]) -> None:
        if event.block in self._calls:
            self._call_end(self._calls[event.block], _stop_in(events), out)
        elif event.block == self._text_in:
            self._say(self._text.flush(), out)
            self._text_in = None
            self._close_text(event, out)
        elif event.block in self._numbers:
            number = self._numbers.pop(event.block)
            out.append(event if number == event.block else BlockEnd(number, event.complete))

    def _renumbered(self, event: Any, out: list[Event]) -> None:
        if event.block == self._text_in:
            number = self._open_text(out)
        else:
            number = self._numbers.get(event.block, -1)
        if event.block in self._calls:
            held = self._calls[event.block].block
            number = -1 if held is None else held
        if number == event.block:
            out.append(event)
        elif number >= 0:
            out.append(msgspec.structs.replace(event, block=number))

    # Text: recovered calls, thinking in tags, stop sequences.

    def _text_delta(self, event: TextDelta, out: list[Event]) -> None:
        pieces = self._text.feed(event.text)
        if len(pieces) == 1 and pieces[0] == event.text:
            number = self._open_text(out)
            out.append(event if number == event.block else TextDelta(number, event.text))
        else:
            self._say(pieces, out)

    def _say(self, pieces: list[str | Recovered | Thinking | End], out: list[Event]) -> None:
        for piece in pieces:
            match piece:
                case str():
                    number = self._open_text(out)
                    out.append(TextDelta(number, piece))
                case Thinking(text):
                    self._close_text(None, out)
                    if self._thinking_block is None:
                        self._thinking_block = self._number()
                        out.append(BlockStart(self._thinking_block, Thinking()))
                    out.append(TextDelta(self._thinking_block, text))
                case Recovered():
                    self._recover(piece, out)
                case End():
                    self._close_text(None, out)
                    self._end(piece, out)
                    return

    def _open_text(self, out: list[Event]) -> int:
        self._close_thinking(out)
        if self._text_block is None:
            self._text_block = number = self._number()
            start = self._text_start
            same = start is not None and start.block == number
            out.append(start if start is not None and same else BlockStart(number, Text()))
        return self._text_block

    def _close_text(self, event: BlockEnd | None, out: list[Event]) -> None:
        self._close_thinking(out)
        if self._text_block is not None:
            same = event is not None and event.block == self._text_block
            out.append(event if event is not None and same else BlockEnd(self._text_block))
            self._text_block = None

    def _close_thinking(self, out: list[Event]) -> None:
        if self._thinking_block is not None:
            out.append(BlockEnd(self._thinking_block))
            self._thinking_block = None

    def _recover(self, found: Recovered, out: list[Event]) -> None:
        """A call the model wrote as text."""
        self._close_text(None, out)
        part = ToolCall(id="", name=found.name)
        call = self._new_call(BlockStart(-1, part), part)
        call.pieces.append(found.arguments)
        if not self._is_duplicate(call):
            self._release(call, out)
            self._finish(call, True, out, recovered=found.markup)

    # Calls.

    def _call_start(self, event: BlockStart, part: ToolCall, out: list[Event]) -> None:
        called, _ = resolve(part.name, self._plan.names)
        call = self._new_call(event, part)
        self._calls[event.block] = call
        if part.kind == "custom" and called is None and self._plan.names.declared():
            # A freeform call of no declared tool was run by the provider itself (xAI's own search).
            self._drop(event.block, call, "server-side")

    def _new_call(self, event: BlockStart, upstream: ToolCall) -> OpenCall:
        called, name = resolve(upstream.name, self._plan.names)
        kind = called.tool.kind if called and called.tool.kind != "hosted" else upstream.kind
        if not self._plan.custom:
            kind = "function"
        namespace = called.tool.namespace if called else upstream.namespace
        part = ToolCall(
            id=self._legal_id(upstream.id),
            name=name,
            kind=kind,
            namespace=namespace,
            seal=upstream.seal,
            extras=upstream.extras,
        )
        part = upstream if part == upstream else part
        return OpenCall(event, part, self._assembly(called, part, upstream), upstream)

    def _assembly(
        self, called: Called | None, part: ToolCall, upstream: ToolCall
    ) -> Assembly | FreeText | Unwrapped | Wrapped:
        if upstream.kind == "custom":
            return FreeText() if part.kind == "custom" else Wrapped()
        if called is not None and called.wrapped and part.kind == "custom":
            return Unwrapped(Assembly("whole", part.name, None, self._plan.rules))
        return Assembly(self._plan.mode, part.name, called, self._plan.rules)

    def _legal_id(self, id: str) -> str:
        legal = ids.for_client(id, self._plan.ids) if id else ""
        if not legal or legal in self._ids:
            legal = f"call_{self._plan.seed}_{len(self._ids)}"
        self._ids.add(legal)
        return legal

    def _arguments(self, call: OpenCall, event: ArgumentsDelta, out: list[Event]) -> None:
        if call.outcome is not None:
            return  # it was whole before: what follows the end of an object is not part of it
        call.feed(event, out)
        if call.block is None and call.part.name and not self._could_repeat(call):
            # Not before the first argument: a call of which nothing came can still be left out.
            self._release(call, out)

    def _release(self, call: OpenCall, out: list[Event]) -> None:
        call.release(self._number(), out)
        self._earlier.append(call)

    def _could_repeat(self, call: OpenCall) -> bool:
        """Might this be an earlier call again? Then it is held until it differs, or proves to be."""
        received = call.received
        return any(
            earlier.part.name == call.part.name and earlier.received.startswith(received)
            for earlier in self._earlier
        )

    def _is_duplicate(self, call: OpenCall) -> bool:
        value = _canonical(call.received)
        for earlier in self._earlier:
            if earlier.part.name == call.part.name and _canonical(earlier.received) == value:
                self.receipts.append(call.receipt(dropped="duplicate"))
                return True
        return False

    def _call_end(self, call: OpenCall, stop: Stop | None, out: list[Event]) -> None:
        block = call.start.block
        if call.outcome is not None:
            del self._calls[block]
        elif not call.part.name:
            self._drop(block, call, "ghost")
        elif call.block is None and self._is_duplicate(call):
            del self._calls[block]
        elif call.upstream.kind == "custom" or call.whole:
            del self._calls[block]
            self._finish(call, True, out)
        elif stop is not None:
            del self._calls[block]
            self._finish(call, stop not in _CUT, out)
        else:
            call.over = True

    def _settle(self, out: list[Event]) -> None:
        """Something new begins. What looked cut was not, and a whole call need not stay open."""
        for block, call in list(self._calls.items()):
            if call.over:
                del self._calls[block]
                self._finish(call, True, out)
            elif self._plan.serial and call.block is not None and call.outcome is None and call.whole:
                self._finish(call, True, out)

    def _finish(self, call: OpenCall, ended: bool, out: list[Event], recovered: str | None = None) -> None:
        if call.block is None:
            if not ended and not call.received.strip():
                self.receipts.append(call.receipt(dropped="cut"))
                return
            self._release(call, out)
        outcome = call.finish(ended, out)
        if outcome.complete:
            self._delivered += 1
        else:
            self._broken += 1
        self.receipts.append(call.receipt(recovered=recovered))

    def _drop(self, block: int, call: OpenCall, why: str) -> None:
        del self._calls[block]
        self.receipts.append(call.receipt(dropped=why))

    # The end.

    def _end(self, event: End, out: list[Event]) -> None:
        self._over = True
        if self._text_in is not None:
            self._say(self._text.flush(), out)
            self._close_text(None, out)
        for block, call in list(self._calls.items()):
            call.over = True
            del self._calls[block]
            if call.outcome is None:
                self._finish(call, event.stop not in _CUT, out)
        if self._broken and event.stop not in _CUT:
            message = "the upstream's tool call is not complete: its arguments cannot be read"
            out.append(Failed(FailureKind.UPSTREAM, message, 502, "incomplete_tool_call"))
            return
        stop = event.stop
        if stop in _BY_CALLS:
            stop = Stop.TOOL if self._delivered else (Stop.END if stop is Stop.TOOL else stop)
        out.append(event if stop is event.stop else msgspec.structs.replace(event, stop=stop))


def _stop_in(events: list[Event]) -> Stop | None:
    last = events[-1]
    return last.stop if isinstance(last, End) else None


def _canonical(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
