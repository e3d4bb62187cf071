"""The tool calls of one answer: decides for each call when it goes to the client, or why it does not."""

from __future__ import annotations

import msgspec

from ..model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    Carried,
    Event,
    Failed,
    FailureKind,
    Stop,
    Unknown,
)
from ..model.messages import ToolCall
from .call import ActiveCall
from .call_factory import CallFactory
from .call_life import BROKEN, IN_DOUBT, OVER, REPEATABLE, UNSEEN, Life
from .client_block import carry
from .leaks import LeakedCall
from .loop_detection import canonical
from .name_matching import schema_of
from .plan import Numbers, ToolPlan
from .provider_run import is_run_by_provider
from .reask import Rejected
from .receipts import CallReceipt
from .rules.answer_rules import REPEATED_CALL
from .search import SearchCall

# Stop reasons that say that the answer is incomplete. A cut call is then no fault of the upstream.
_CUT = frozenset({Stop.MAX_TOKENS, Stop.CONTEXT_FULL, Stop.FILTER, Stop.REFUSAL})


class CallTracker:
    """Tracks the calls of one answer, from the upstream's first event to the receipt."""

    __slots__ = (
        "_attempts", "_calls", "_factory", "_hurries", "_invalid", "_last", "_numbers", "_open", "_plan",
        "receipts",
    )  # fmt: skip

    def __init__(self, plan: ToolPlan, numbers: Numbers) -> None:
        self.receipts: list[CallReceipt] = []
        self._plan = plan
        self._numbers = numbers
        self._factory = CallFactory(plan)
        self._calls: list[ActiveCall] = []
        """All calls of the answer, in the order in which they began."""
        self._open: dict[int, ActiveCall] = {}
        """The calls whose end is not known, by the upstream's block."""
        self._last: ActiveCall | None = None
        """The call that the client got last."""
        self._invalid: str | None = None
        self._attempts = plan.reask_attempts if plan.invalid == "reask" else 0
        self._hurries = plan.serial and not plan.same
        """Ends a complete call when the next block begins, so that the client gets that block live. Between
        equal protocols, the upstream's own end of the call may have members that the client needs."""

    @property
    def untouched(self) -> bool:
        """Are all calls as the upstream sent them?"""
        return not any(receipt.fixes or receipt.dropped for receipt in self.receipts)

    @property
    def delivered(self) -> bool:
        """Did the client get a call that it can run?"""
        return any(call.state is Life.ENDED for call in self._calls)

    def start(self, event: BlockStart, part: ToolCall, mark: str, out: list[Event]) -> None:
        """A call begins. The client gets it with its first argument, so a call without a name can be dropped.

        `mark` is an opening mark that was removed from the text before the call.
        """
        call = self._factory.make(event, part, mark=mark)
        call.may_copy = self._originals(call)
        self._calls.append(call)
        plan = self._plan
        if call.start.called is None and is_run_by_provider(part, plan.names, same=plan.same):
            self._drop(call, "server-side")
            call.leave_members(out)
        else:
            self._open[event.block] = call

    def arguments(self, event: ArgumentsDelta, out: list[Event]) -> None:
        call = self._open.get(event.block)
        if call is not None and call.state is Life.SHOWN:
            text = call.arguments.feed(event.text)
            if text == event.text and call.block.number == event.block:
                out.append(event)
            else:
                call.emit(text, len(event.text), out, event.extras)
        elif call is not None and call.state is Life.HELD:
            self._hold(call, event, out)
        else:
            carry(event.extras, out)  # text after the end of a call is not part of it

    def _hold(self, call: ActiveCall, event: ArgumentsDelta, out: list[Event]) -> None:
        """Keep a fragment of a call that the client does not have. It may be the one that shows the call."""
        if event.extras is not None:
            call.block.pass_on(Carried(event.extras, event.block), out)
        call.hold(event.text)
        # A call that may be a copy of an earlier one is held until it differs or ends.
        held = call.may_copy or self._attempts or call.start.runs_here
        if call.start.part.name and not held and self._show_earlier(call, out):
            self._show(call, out, len(event.text))
        else:
            call.meter.change(len(event.text))

    def carry(self, event: Carried | Unknown, block: int, out: list[Event]) -> bool:
        """Pass on what belongs to a call and is no argument. False if `block` is no open call."""
        call = self._open.get(block)
        if call is None:
            return False
        if call.state in OVER:
            out.append(msgspec.structs.replace(event, block=None))  # the client's block has ended
        else:
            call.block.pass_on(event, out)
        return True

    def end_block(self, event: BlockEnd, stop: Stop | None, out: list[Event]) -> None:
        """The upstream ended the call. `stop` is known if the whole answer ended in the same frame."""
        call = self._open.get(event.block)
        if call is None or call.state in OVER:
            self._open.pop(event.block, None)
            carry(event.extras, out)
            return
        call.end_extras = event.extras
        certain = call.start.upstream.kind == "custom" or call.whole
        if event.complete and not certain and stop is None:
            call.doubt()
            return
        del self._open[event.block]
        self._close(call, event.complete and stop not in _CUT, out)

    def begin_next(self, out: list[Event]) -> None:
        """A new block begins: a call that looked cut was not, and a complete call need not stay open."""
        for block, call in list(self._open.items()) if self._open else ():
            if call.state in IN_DOUBT:
                del self._open[block]
                self._close(call, True, out)
            elif self._hurries and call.state is Life.SHOWN and call.whole:
                call.ended = True
                self._finish(call, out)

    def recover(self, found: LeakedCall, out: list[Event]) -> None:
        """Add a call that the model wrote as text."""
        part = ToolCall(id="", name=found.name)
        call = self._factory.make(BlockStart(-1, part), part, recovered=found.markup)
        self._calls.append(call)
        call.hold(found.arguments)
        self._show_earlier(call, out)
        self._close(call, True, out)

    def end(self, stop: Stop, out: list[Event]) -> Failed | tuple[Rejected, ...] | None:
        """The answer is over.

        Returns the failure that must end the answer if a call is broken, or the calls to ask for again.
        """
        for call in self._open.values():
            self._close(call, stop not in _CUT, out)
        self._open.clear()
        if stop in _CUT:
            for call in self._ready(here=True):
                self._drop(call, "cut")
        ready = self._ready(here=False)
        if ready and (rejected := self._rejected(ready, stop)):
            return rejected
        for call in ready:
            self._emit(call, out)
        broken = [call for call in self._calls if call.state in BROKEN]
        # The stop reason explains one cut call, the last one. Any other broken call is a failure.
        explained = stop in _CUT and broken == [self._last] and broken[0].state is Life.CUT
        if broken and not explained:
            message = "the upstream's tool call is not complete: its arguments cannot be read"
            return Failed(FailureKind.UPSTREAM, message, 502, "incomplete_tool_call")
        if self._invalid is not None:
            return Failed(FailureKind.UPSTREAM, self._invalid, 502, "invalid_tool_call")
        return None

    def fail(self) -> None:
        """The answer failed: write receipts for the open calls, as far as they arrived."""
        for call in (*self._open.values(), *self._ready(here=False)):
            if call.state in UNSEEN:
                self._drop(call, "cut")
            elif call.state not in OVER:
                call.become(Life.CUT)
                self.receipts.append(call.receipt(None))

    def take_searches(self) -> tuple[SearchCall, ...]:
        """The searches of this turn, to run now."""
        asked = self._ready(here=True)
        for call in asked:
            call.ended = True  # the upstream ended its turn to get the results
            self._drop(call, "searched")
        return tuple(_search(call) for call in asked)

    def number(self, block: int) -> int | None:
        call = self._open.get(block)
        return call.block.number if call else None

    def _ready(self, *, here: bool) -> list[ActiveCall]:
        """The calls that wait for the end of the turn: those that run here, or those that `reask` holds."""
        return [call for call in self._calls if call.state is Life.READY and call.start.runs_here == here]

    def _originals(self, call: ActiveCall) -> list[ActiveCall]:
        """The earlier calls that `call` may repeat, by id or as text.

        Equal arguments alone mean nothing: Gemini and Chat models make identical calls in one turn.
        """
        if not self._plan.rules.on(REPEATED_CALL):
            return []
        earlier = (other for other in self._calls if other.state in REPEATABLE)
        return [other for other in earlier if other.may_be_sent_again_as(call)]

    def _is_duplicate(self, call: ActiveCall) -> bool:
        for original in self._originals(call):
            if canonical(original.received) == canonical(call.received):
                if call.start.recovered != original.start.recovered:
                    original.written_twice = True
                return True
        return False

    def _show_earlier(self, call: ActiveCall, out: list[Event]) -> bool:
        """Show the calls that began before `call`, so that the client gets all in the upstream's order.

        False if one of them may still turn out to be a copy: `call` waits for it.
        """
        for earlier in self._open.values():
            if earlier is call:
                break
            start = earlier.start
            if earlier.state in UNSEEN and start.part.name and not start.runs_here:
                if earlier.may_copy:
                    return False
                if not self._attempts:
                    self._show(earlier, out)
        return True

    def _close(self, call: ActiveCall, ended: bool, out: list[Event]) -> None:
        """The call is over: emit it, or drop it with a receipt that says why."""
        if call.state in OVER:
            return
        call.ended = ended or self._needs_no_arguments(call)
        dropped = self._why_dropped(call)
        if dropped is not None:
            self._drop(call, dropped)
            call.leave_members(out)
        elif call.start.runs_here or self._attempts:
            call.become(Life.READY)
        else:
            self._emit(call, out)

    def _why_dropped(self, call: ActiveCall) -> str | None:
        if not call.start.part.name:
            return "ghost"
        if call.state not in UNSEEN:
            return None
        if not call.ended and not call.received.strip():
            return "cut"
        return "duplicate" if self._is_duplicate(call) else None

    def _needs_no_arguments(self, call: ActiveCall) -> bool:
        """Whether the call has no arguments, its tool needs none, and another call followed.

        If the answer was cut, then a later call was cut, not this one.
        """
        called = call.start.called
        if call.received.strip() or call is self._calls[-1] or called is None:
            return False
        return schema_of(called, self._plan.names).fits({})

    def _rejected(self, ready: list[ActiveCall], stop: Stop) -> tuple[Rejected, ...]:
        """The calls of the turn with their problems. Empty if all are valid or no attempt is left."""
        if not self._attempts or stop in _CUT:
            return ()
        found = [Rejected(c.as_written, c.assess().problems, c.start.fault is None) for c in ready]
        if not any(item.problems for item in found):
            return ()
        self._attempts -= 1
        for call in ready:
            call.refuse()
        searches = self._ready(here=True)
        found += [Rejected(search.as_written, ()) for search in searches]
        for call in (*ready, *searches):
            self._drop(call, "reasked")
        return tuple(found)

    def _show(self, call: ActiveCall, out: list[Event], arrived: int = 0) -> None:
        call.show(self._numbers, out, arrived)
        self._last = call

    def _emit(self, call: ActiveCall, out: list[Event]) -> None:
        """Emit all that the client has not got of a call that is over."""
        if call.start.recovered is not None and not call.assess().complete:
            # A call from text is complete at once, so the client gets nothing of a broken one.
            call.refuse()
            self._drop(call, "unreadable", Life.UNREADABLE)
            return
        if call.state in UNSEEN:
            self._show(call, out)
        self._finish(call, out)

    def _finish(self, call: ActiveCall, out: list[Event]) -> None:
        outcome = call.finish(out)
        self.receipts.append(call.receipt(None))
        if outcome.complete and outcome.problems and self._plan.invalid == "error":
            wrong = "does not fit its schema" if call.start.fault is None else "cannot be run"
            self._invalid = f"the call of {call.start.part.name!r} {wrong}: {outcome.problems[0]}"

    def _drop(self, call: ActiveCall, reason: str, state: Life = Life.DROPPED) -> None:
        """The client does not get the call. The receipt says why."""
        call.become(state)
        self.receipts.append(call.receipt(reason))


def _search(call: ActiveCall) -> SearchCall:
    value = call.assess().value or {}
    query = value.get("query")
    id = call.start.part.id
    return SearchCall(id, call.as_written, query.strip() if isinstance(query, str) else "")
