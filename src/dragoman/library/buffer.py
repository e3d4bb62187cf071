"""`ToolCallBuffer`: reads the tool calls of one answer, for agent authors.

    buffer = ToolCallBuffer(tools)
    for event in client.messages.create(..., stream=True):
        for call in buffer.feed(event):
            ...
    for call in buffer.close():
        ...

It reads an SDK's objects or raw bytes, with the same code as the gateway: frames, decoder, order, tool stage.
Its calls are a view of the stage's events and receipts.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Collection, Iterable, Iterator
from typing import Any, Literal, assert_never

import msgspec

from ..model.errors import DragomanError
from ..model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    Carried,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Ping,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Unknown,
    Usage,
    UsageSeen,
)
from ..model.messages import Part, Text, ToolCall
from ..model.order import Order
from ..protocols.base import Decoder
from ..protocols.common import call_ids, failures
from ..protocols.common.fields import is_object
from ..protocols.common.tool_names import NameRule, ToolNames
from ..protocols.registry import DEFAULT_PROTOCOL
from ..protocols.registry import protocol as wire_protocol
from ..tools.json_text import parse_plain
from ..tools.provider_run import PROVIDER_IDS
from ..tools.receipts import CallReceipt
from ..tools.rules import rules
from ..tools.stage import ToolPlan, ToolStage
from ..wire.frames import DEFAULT_MAX_FRAME, Frame
from ..wire.reader import FrameReader
from .calls import Call, CompleteCall, FailedCall, Finished, PartialCall
from .declared_tools import AnyTool, declared
from .inputs import frame_of, sniff

# The caller sent these tools to the provider under their own names, so no name is changed here.
_ANY_NAME = NameRule(r"(?s).+", 1 << 16, custom=True, namespaces=True)
_DUPLICATE = "this call repeats an earlier call of this turn and did not run again"
_CUT = "the answer was cut off before the call was complete"
# If no frame shows the protocol, the answer has at most an error. This decoder reads most forms of errors.
_FALLBACK = DEFAULT_PROTOCOL.name


class ToolCallBuffer:
    """The calls of one answer. `tools` are the tools of the request, in any form."""

    def __init__(
        self,
        tools: Iterable[AnyTool] = (),
        *,
        protocol: str | None = None,
        mode: Literal["live", "whole"] = "live",
        rules_off: Collection[str] = (),
        max_frame: int = DEFAULT_MAX_FRAME,
    ) -> None:
        self.stop: Stop | None = None
        """The stop reason; None while the answer runs, and if it failed."""
        self.failure: Failed | None = None
        """Why the answer failed."""
        self.usage = Usage()
        self.protocol = protocol
        self.over = False
        self._names = ToolNames(declared(tools), _ANY_NAME)
        plan = ToolPlan(
            names=self._names, ids=call_ids.ANY, seed="local", mode=mode, custom=False, rules=rules(rules_off)
        )
        self._stage = ToolStage(plan)
        self._order = Order("upstream")
        self._reader = FrameReader(max_frame)
        self._decoder: Decoder | None = None
        self._early_frames: list[Frame] = []
        self._given: dict[str, ToolCall] = {}
        self._ids: set[str] = set()
        self._ranks: dict[str, int] = {}
        self._finished: list[tuple[int, Finished]] = []
        self._open: dict[int, tuple[ToolCall, list[str]]] = {}
        self._receipts = 0
        self._text_pieces: list[str] = []
        self._texts: set[int] = set()

    @property
    def calls(self) -> list[Finished]:
        """All finished calls, in the order in which the model started them."""
        return [call for _, call in sorted(self._finished, key=lambda ranked: ranked[0])]

    @property
    def text(self) -> str:
        """The text of the answer, without reasoning and calls."""
        return "".join(self._text_pieces)

    def feed(self, given: object) -> list[Call]:
        """Read an SDK's event, chunk or whole response (object or dict), or raw bytes. Returns new calls."""
        out: list[Call] = []
        if self.over:
            return out
        try:
            if isinstance(given, (bytes, bytearray)):
                for frame in self._reader.feed(bytes(given)):
                    self._frame(frame, out)
            else:
                self._object(given, out)
        except DragomanError as error:
            self._events([failures.from_exception(error)], out)
        return out

    def close(self) -> list[Call]:
        """End the answer. Returns the last calls, with those that the end cuts off."""
        out: list[Call] = []
        if self.over:
            return out
        try:
            for frame in self._reader.close():
                self._frame(frame, out)
            self._end(out)
        except DragomanError as error:
            self._events([failures.from_exception(error)], out)
        return out

    def fail(self, message: str) -> list[Call]:
        """End an answer whose stream broke off: SDKs report that with an exception. Returns the cut calls.

        An answer that ended before stays as it is.
        """
        out: list[Call] = []
        self._events([Failed(FailureKind.UPSTREAM, message, failures.STATUS[FailureKind.UPSTREAM])], out)
        return out

    def read(self, stream: Iterable[object]) -> Iterator[Call]:
        """Read a whole stream: `feed` for each item, then `close`."""
        for item in stream:
            yield from self.feed(item)
        yield from self.close()

    async def aread(self, stream: AsyncIterable[object]) -> AsyncIterator[Call]:
        """`read` for an async stream."""
        async for item in stream:
            for call in self.feed(item):
                yield call
        for call in self.close():
            yield call

    # Frames.

    def _object(self, given: object, out: list[Call]) -> None:
        frame = frame_of(given)
        if frame is None:
            return
        whole = self._decoder is None and sniff(frame)[1]
        self._frame(frame, out)
        if whole:
            self._end(out)

    def _frame(self, frame: Frame, out: list[Call]) -> None:
        if self._decoder is None:
            self.protocol = self.protocol or sniff(frame)[0]
            self._early_frames.append(frame)
            if self.protocol is not None:
                self._begin(self.protocol, out)
        elif not self.over:
            self._events(self._decoder.frame(frame), out)

    def _begin(self, protocol: str, out: list[Call]) -> Decoder:
        decoder = self._decoder = wire_protocol(protocol).decoder("", False)
        for frame in self._early_frames:
            self._events(decoder.frame(frame), out)
        self._early_frames.clear()
        return decoder

    def _end(self, out: list[Call]) -> None:
        decoder = self._decoder or self._begin(self.protocol or _FALLBACK, out)
        if not self.over:
            self._events(decoder.close(), out)

    # Events.

    def _events(self, events: list[Event], out: list[Call]) -> None:
        if not events or self.over:
            return
        last = events[-1]
        if isinstance(last, Failed):
            # A failure cuts open calls off, like max_tokens. The stage then completes none of them.
            self.failure = last
            events = [*events[:-1], End(Stop.MAX_TOKENS)]
        else:
            self._order.check(events)
        for event in self._stage.process([self._tagged(event) for event in events]):
            self._take(event, out)
        self._dropped(out)

    def _tagged(self, event: Event) -> Event:
        """Replace the call's id by a unique tag: some providers repeat ids or send none, and the stage would
        replace those. The provider's id goes back into the result."""
        if not isinstance(event, BlockStart) or not isinstance(event.part, ToolCall):
            return event
        tag = f"call_{len(self._given)}"
        self._given[tag] = event.part
        self._ranks[tag] = len(self._ranks)
        part = event.part
        if part.id in self._ids:
            part = msgspec.structs.replace(part, replayed=True)
        elif part.id.startswith(PROVIDER_IDS):
            part = msgspec.structs.replace(part, run_by_provider=part.run_by_provider or part.kind)
        elif part.id:
            self._ids.add(part.id)
        return BlockStart(event.block, msgspec.structs.replace(part, id=tag))

    def _take(self, event: Event, out: list[Call]) -> None:
        match event:
            case ArgumentsDelta() | TextDelta():
                self._delta(event, out)
            case BlockStart(block, part):
                self._start(block, part, out)
            case BlockEnd(block, complete) if block in self._open:
                part, _ = self._open.pop(block)
                self._finish(self._receipt(part.id), complete and self.failure is None, out)
            case UsageSeen(usage):
                self.usage = self.usage.updated(usage)
            case Failed():
                self.failure, self.over = event, True
            case End(stop):
                self.stop, self.over = (None if self.failure else stop), True
            case BlockEnd() | CitationAdded() | Sealed() | Start() | Ping() | Carried() | Unknown():
                pass  # the buffer is about text and calls
            case _:
                assert_never(event)

    def _delta(self, event: ArgumentsDelta | TextDelta, out: list[Call]) -> None:
        if event.block in self._texts:
            self._text_pieces.append(event.text)
        elif event.block in self._open:  # not the input of a tool that the provider runs
            self._grow(event.block, event.text, out)

    def _start(self, block: int, part: Part, out: list[Call]) -> None:
        if isinstance(part, Text):
            self._texts.add(block)
        elif isinstance(part, ToolCall):
            self._open[block] = (part, [])
            self._ranks.setdefault(part.id, len(self._ranks))
            self._grow(block, "", out)

    def _grow(self, block: int, text: str, out: list[Call]) -> None:
        part, pieces = self._open[block]
        if text:
            pieces.append(text)
        given = self._given.get(part.id)
        id = (given.id if given else "") or part.id
        out.append(PartialCall(id=id, name=part.name, delta=text, pieces=pieces, size=len(pieces)))

    # Finished calls.

    def _receipt(self, tag: str) -> CallReceipt:
        return next(receipt for receipt in reversed(self._stage.receipts) if receipt.id == tag)

    def _finish(self, receipt: CallReceipt, complete: bool, out: list[Call]) -> None:
        arguments: Any = parse_plain(receipt.sent) if complete else None
        if is_object(arguments):
            call = CompleteCall(arguments=arguments, problems=receipt.problems, **self._identity(receipt))
        else:
            call = FailedCall(problems=receipt.problems or (_CUT,), **self._identity(receipt))
        self._add(receipt, call, out)

    def _dropped(self, out: list[Call]) -> None:
        """Report calls that the stage dropped: the provider's history still needs an answer to each."""
        receipts = self._stage.receipts[self._receipts :]
        self._receipts += len(receipts)
        for receipt in receipts:
            given = self._given.get(receipt.id)
            if given is None or receipt.dropped not in ("cut", "duplicate"):
                continue
            # A duplicate has the id of a call that already has its answer. Two answers for one id are an
            # error at every provider.
            if given.id and any(call.given_id == given.id for _, call in self._finished):
                continue
            reason = "duplicate" if receipt.dropped == "duplicate" else "cut"
            problem = _DUPLICATE if receipt.dropped == "duplicate" else _CUT
            call = FailedCall(reason=reason, problems=(problem,), **self._identity(receipt))
            self._add(receipt, call, out)

    def _add(self, receipt: CallReceipt, call: Finished, out: list[Call]) -> None:
        self._finished.append((self._ranks[receipt.id], call))
        out.append(call)

    def _identity(self, receipt: CallReceipt) -> dict[str, Any]:
        given = self._given.get(receipt.id)
        return {
            "id": (given.id if given else "") or receipt.id,
            "name": receipt.name,
            "text": receipt.sent,
            "raw": receipt.received,
            "mended": receipt.fixes,
            "kind": given.kind if given else "function",
            "given_id": given.id if given else "",
            "given_name": receipt.upstream_name,
            "recovered": receipt.recovered is not None,
        }
