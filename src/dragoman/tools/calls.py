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
from .call import ActiveCall, CopyCheck
from .call_factory import CallFactory
from .leaks import LeakedCall
from .loop_detection import canonical
from .name_matching import schema_of
from .plan import Numbers, ToolPlan
from .provider_run import is_run_by_provider
from .reask import Rejected
from .receipts import CallReceipt
from .rules.answer_rules import ANSWER_RULES, MARK_BEFORE_CALL, REPEATED_CALL
from .rules.rule import Fix, shorten
from .search import SearchCall

# Stop reasons that say that the answer is incomplete. A cut call is then no fault of the upstream.
_CUT = frozenset({Stop.MAX_TOKENS, Stop.CONTEXT_FULL, Stop.FILTER, Stop.REFUSAL})


class CallTracker:
    """Tracks the calls of one answer, from the upstream's first event to the receipt."""

    __slots__ = (
        "_attempts",
        "_broken",
        "_emitted",
        "_factory",
        "_held",
        "_hurries",
        "_invalid",
        "_numbers",
        "_open",
        "_plan",
        "delivered",
        "receipts",
        "searches",
    )

    def __init__(self, plan: ToolPlan, numbers: Numbers) -> None:
        self.receipts: list[CallReceipt] = []
        self.delivered = 0
        self.searches: list[ActiveCall] = []
        """The calls of this turn that Dragoman runs itself."""
        self._plan = plan
        self._numbers = numbers
        self._factory = CallFactory(plan)
        self._open: dict[int, ActiveCall] = {}
        self._emitted: list[ActiveCall] = []
        self._broken: list[ActiveCall] = []
        self._invalid: str | None = None
        self._held: list[tuple[ActiveCall, bool]] = []
        """With `reask`: the calls of this turn, held until all of them are known to be valid."""
        self._attempts = plan.reask_attempts if plan.invalid == "reask" else 0
        self._hurries = plan.serial and not plan.same
        """Ends a complete call when the next block begins, so that the client gets that block live. Between
        equal protocols, the upstream's own end of the call may have members that the client needs."""

    @property
    def untouched(self) -> bool:
        """Are all calls as the upstream sent them?"""
        return not any(receipt.fixes or receipt.dropped for receipt in self.receipts)

    def start(self, event: BlockStart, part: ToolCall, mark: str, out: list[Event]) -> None:
        """A call begins. The client gets it with its first argument, so a call without a name can be dropped.

        `mark` is an opening mark that was removed from the text before the call.
        """
        call = self._factory.make(event, part)
        if mark:
            reason = ANSWER_RULES[MARK_BEFORE_CALL]
            call.fixes = (Fix(MARK_BEFORE_CALL, "text", shorten(mark.strip()), "", reason),)
        call.may_copy = [CopyCheck(earlier) for earlier in self._originals(call)]
        plan = self._plan
        if call.called is None and is_run_by_provider(part, plan.names, same=plan.same):
            self.receipts.append(call.receipt(dropped="server-side"))
            out += call.left_members()
        else:
            self._open[event.block] = call

    def arguments(self, event: ArgumentsDelta, out: list[Event]) -> None:
        call = self._open.get(event.block)
        if call is None or call.outcome is not None:
            # The call already ended: text after the end of its object is not part of it.
            if event.extras is not None:
                out.append(Carried(event.extras))
            return
        if call.block is not None:
            call.feed(event, out)
            return
        if event.extras is not None:
            call.waiting.append(Carried(event.extras, event.block))
        call.hold(event.text)
        # A call that may be a copy of an earlier one is held until it differs or ends.
        held = call.may_copy or self._attempts or call.runs_here
        if call.part.name and not held and self._emit_earlier(call, out):
            self._release(call, out, event)
        else:
            call.held.change(len(event.text))

    def carry(self, event: Carried | Unknown, block: int, out: list[Event]) -> bool:
        """Pass on what belongs to a call and is no argument. False if `block` is no open call."""
        call = self._open.get(block)
        if call is None:
            return False
        if call.outcome is not None:
            out.append(msgspec.structs.replace(event, block=None))  # the client's block has ended
        elif call.block is None:
            call.waiting.append(event)
        else:
            out.append(msgspec.structs.replace(event, block=call.block))
        return True

    def end_block(self, event: BlockEnd, stop: Stop | None, out: list[Event]) -> None:
        """The upstream ended the call. `stop` is known if the whole answer ended in the same frame."""
        call = self._open.get(event.block)
        if call is None:
            if event.extras is not None:
                out.append(Carried(event.extras))
            return
        call.end_extras = event.extras
        if call.outcome is not None and event.extras is not None:
            out.append(Carried(event.extras))
        if event.complete and call.outcome is None and not call.certainly_ended and stop is None:
            call.ended_early = True  # the arguments look cut: the stop reason will tell
            return
        del self._open[event.block]
        self._close(call, event.complete and stop not in _CUT, out)

    def begin_next(self, out: list[Event]) -> None:
        """A new block begins: a call that looked cut was not, and a complete call need not stay open."""
        for block, call in list(self._open.items()) if self._open else ():
            if call.ended_early:
                del self._open[block]
                self._close(call, True, out)
            elif self._hurries and call.block is not None and call.outcome is None and call.whole:
                self._finish(call, True, out)

    def recover(self, found: LeakedCall, out: list[Event]) -> None:
        """Add a call that the model wrote as text."""
        part = ToolCall(id="", name=found.name)
        call = self._factory.make(BlockStart(-1, part), part)
        call.hold(found.arguments)
        call.recovered = found.markup
        self._emit_earlier(call, out)
        self._close(call, True, out)

    def end(self, stop: Stop, out: list[Event]) -> Failed | tuple[Rejected, ...] | None:
        """The answer is over.

        Returns the failure that must end the answer if a call is broken, or the calls to ask for again.
        """
        for call in self._open.values():
            self._close(call, stop not in _CUT, out)
        self._open.clear()
        if self.searches and stop in _CUT:
            self.receipts += [call.receipt(dropped="cut") for call in self.searches]
            self.searches = []
        held, self._held = sorted(self._held, key=lambda item: item[0].position), []
        if held and (rejected := self._rejected(held, stop)):
            return rejected
        for call, ended in held:
            self._emit_call(call, ended, out)
        cut = stop in _CUT and self._broken == self._emitted[-1:]
        if self._broken and not (cut and self._broken[0].shown):
            # The stop reason explains one cut call, the last one. Any other broken call is a failure.
            message = "the upstream's tool call is not complete: its arguments cannot be read"
            return Failed(FailureKind.UPSTREAM, message, 502, "incomplete_tool_call")
        if self._invalid is not None:
            return Failed(FailureKind.UPSTREAM, self._invalid, 502, "invalid_tool_call")
        return None

    def fail(self) -> None:
        """The answer failed: write receipts for the open calls, as far as they arrived."""
        unfinished = [*self._open.values(), *(call for call, _ in self._held)]
        self.receipts += [
            call.receipt(dropped="cut" if call.block is None else None)
            for call in unfinished
            if call.outcome is None
        ]

    def number(self, block: int) -> int | None:
        call = self._open.get(block)
        return call.block if call else None

    def _originals(self, call: ActiveCall) -> list[ActiveCall]:
        """The earlier calls that `call` may repeat, by id or as text.

        Equal arguments alone mean nothing: Gemini and Chat models make identical calls in one turn.
        """
        if not self._plan.rules.on(REPEATED_CALL):
            return []
        earlier = [*self._emitted, *(held for held, _ in self._held)] if self._held else self._emitted
        if call.runs_here:
            earlier = self.searches
        return [other for other in earlier if other.may_be_sent_again_as(call)]

    def _is_duplicate(self, call: ActiveCall) -> bool:
        for original in self._originals(call):
            if canonical(original.received) == canonical(call.received):
                original.written_twice = original.written_twice or call.recovered != original.recovered
                return True
        return False

    def _emit_earlier(self, call: ActiveCall, out: list[Event]) -> bool:
        """Emit the calls that began before `call`, so that the client gets all in the upstream's order.

        False if one of them may still turn out to be a copy: `call` waits for it.
        """
        for earlier in self._open.values():
            if earlier is call:
                break
            if earlier.runs_here:
                continue
            if earlier.block is None and earlier.outcome is None and earlier.part.name:
                if earlier.may_copy:
                    return False
                if not self._attempts:
                    self._release(earlier, out)
        return True

    def _close(self, call: ActiveCall, ended: bool, out: list[Event]) -> None:
        """The call is over: emit it, or drop it with a receipt that says why."""
        if call.outcome is not None:
            return
        ended = ended or self._needs_no_arguments(call)
        dropped = None
        if not call.part.name:
            dropped = "ghost"
        elif call.block is None and not ended and not call.received.strip():
            dropped = "cut"
        elif call.block is None and self._is_duplicate(call):
            dropped = "duplicate"
        if dropped is not None:
            self.receipts.append(call.receipt(dropped))
            out += call.left_members()
        elif call.runs_here:
            self.searches.append(call)
        elif self._attempts:
            self._held.append((call, ended))
        else:
            self._emit_call(call, ended, out)

    def _needs_no_arguments(self, call: ActiveCall) -> bool:
        """Whether the call has no arguments, its tool needs none, and another call followed.

        If the answer was cut, then a later call was cut, not this one.
        """
        if call.received.strip() or call.position == self._factory.count - 1 or call.called is None:
            return False
        return schema_of(call.called, self._plan.names).fits({})

    def _emit_call(self, call: ActiveCall, ended: bool, out: list[Event]) -> None:
        if call.recovered is not None and not call.assess(ended).complete:
            # A call from text is complete at once, so the client gets nothing of a broken one.
            call.refuse(ended)
            self.receipts.append(call.receipt(dropped="unreadable"))
            self._broken.append(call)
            return
        if call.block is None:
            self._release(call, out)
        self._finish(call, ended, out)

    def _rejected(self, held: list[tuple[ActiveCall, bool]], stop: Stop) -> tuple[Rejected, ...]:
        """The calls of the turn with their problems. Empty if all are valid or no attempt is left."""
        if not self._attempts or stop in _CUT:
            return ()
        found = [Rejected(c.as_written, c.assess(ended).problems, c.fault is None) for c, ended in held]
        if not any(item.problems for item in found):
            return ()
        self._attempts -= 1
        for call, ended in held:
            call.refuse(ended)
        again = [*(call for call, _ in held), *self.searches]
        found += [Rejected(search.as_written, ()) for search in self.searches]
        self.searches = []
        self.receipts += [call.receipt(dropped="reasked") for call in again]
        return tuple(found)

    def take_searches(self) -> tuple[SearchCall, ...]:
        """The searches of this turn, to run now."""
        asked, self.searches = sorted(self.searches, key=lambda call: call.position), []
        self.receipts += [call.receipt(dropped="searched") for call in asked]
        return tuple(_search(call) for call in asked)

    def _release(self, call: ActiveCall, out: list[Event], last: ArgumentsDelta | None = None) -> None:
        call.release(next(self._numbers), out, last)
        self._emitted.append(call)

    def _finish(self, call: ActiveCall, ended: bool, out: list[Event]) -> None:
        outcome = call.finish(ended, out)
        self.receipts.append(call.receipt())
        if not outcome.complete:
            self._broken.append(call)
            return
        self.delivered += 1
        if outcome.problems and self._plan.invalid == "error":
            wrong = "does not fit its schema" if call.fault is None else "cannot be run"
            self._invalid = f"the call of {call.part.name!r} {wrong}: {outcome.problems[0]}"


def _search(call: ActiveCall) -> SearchCall:
    value = call.assess(True).value or {}
    query = value.get("query")
    return SearchCall(call.part.id, call.as_written, query.strip() if isinstance(query, str) else "")
