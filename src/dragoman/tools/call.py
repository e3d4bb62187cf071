"""One tool call on its way to the client: the right name and id, and assembled arguments."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..model.events import ArgumentsDelta, BlockEnd, Carried, Event
from ..model.messages import Extras, ToolCall
from ..protocols.common.tool_names import CalledTool
from ..wire.jsonscan import JsonScanner
from .arguments import LiveArguments, Outcome, WholeArguments
from .call_life import LEGAL, Life
from .client_block import ClientBlock, carry
from .freeform import FreeformAsFunction, FreeformFromFunction, FreeformText
from .json_text import readable_part
from .plan import Numbers
from .receipts import CallReceipt
from .rules import Fix


class HoldMeter:
    """Measures how many characters of a call are held back, and for how long, for the receipt."""

    __slots__ = ("_clock", "_now", "_since", "most", "seconds")

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self.most = 0
        self.seconds = 0.0
        self._now = 0
        self._clock = clock
        self._since: float | None = None

    def change(self, characters: int) -> None:
        """Count characters that are now held back. A negative number: they were released."""
        self._now = max(0, self._now + characters)
        self.most = max(self.most, self._now)
        if self._clock is None:
            return
        if self._now and self._since is None:
            self._since = self._clock()
        elif not self._now and self._since is not None:
            self.seconds += self._clock() - self._since
            self._since = None

    def stop(self) -> None:
        """Nothing is held back any more."""
        self.change(-self._now)


Arguments = LiveArguments | WholeArguments | FreeformText | FreeformFromFunction | FreeformAsFunction
"""Assembles the arguments of one call. `feed` and `release` return text that may go out before the end."""


class CallStart(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a call from its start, and never changes."""

    part: ToolCall
    """The call as the client gets it."""
    upstream: ToolCall
    """The call as the upstream sent it."""
    called: CalledTool | None
    """The client's tool. None if the client did not declare it."""
    fault: str | None
    """The problem with the call itself, apart from its arguments: the client did not offer the tool."""
    recovered: str | None
    """The format of the markup, if the model wrote the call as text."""
    renamed: bool
    """The model's name for the tool was nearly right."""
    runs_here: bool
    """Does Dragoman run it? Then the client never sees it as a call."""
    fixes: tuple[Fix, ...]
    """Fixes around the call. The outcome has the fixes in its arguments."""


class ActiveCall:
    """A call between its start and its end."""

    __slots__ = (
        "_clock", "_compact", "_compacted", "_scanned", "_scanner", "_started", "arguments", "block",
        "end_extras", "ended", "may_copy", "meter", "outcome", "start", "state", "written_twice",
    )  # fmt: skip

    def __init__(
        self,
        start: CallStart,
        block: ClientBlock,
        arguments: Arguments,
        clock: Callable[[], float] | None,
    ) -> None:
        self.start = start
        self.block = block
        self.arguments = arguments
        self.state = Life.HELD
        self.outcome: Outcome | None = None
        """The result for the arguments. None until they were assembled for the client or the receipt."""
        self.ended = False
        """Whether the upstream finished the call. Known once the call is over."""
        self.end_extras: Extras | None = None
        """The members of the frame that ended the call."""
        self.may_copy: list[ActiveCall] = []
        """Earlier calls that have equal arguments so far: this call may be one of them, sent again."""
        self.written_twice = False
        """The model wrote the call as text, and the upstream sent it as a call too."""
        self.meter = HoldMeter(clock)
        self._clock = clock
        self._started = clock() if clock is not None else None
        self._compact = ""
        self._compacted = 0
        self._scanner: JsonScanner | None = None
        self._scanned = 0

    def become(self, state: Life) -> None:
        """The next state of the call. Raises if `LEGAL` does not allow it."""
        if state not in LEGAL[self.state]:
            raise ValueError(f"a call cannot become {state.value!r}: it is {self.state.value!r}")
        self.state = state

    def may_be_sent_again_as(self, later: ActiveCall) -> bool:
        """Whether `later` may be this call, sent again. Equal arguments then decide it."""
        first, second = self.start, later.start
        if first.part.name != second.part.name:
            return False
        if (first.recovered is None) != (second.recovered is None):
            return not self.written_twice  # once as text, once as a call
        again = second.upstream
        return again.replayed or bool(again.id and again.id == first.upstream.id)

    @property
    def compact(self) -> str:
        """The arguments without blanks. Built only if the call is compared with another one."""
        pieces = self.arguments.fragments.pieces
        if self._compacted < len(pieces):
            self._compact += "".join("".join(pieces[self._compacted :]).split())
            self._compacted = len(pieces)
        return self._compact

    @property
    def received(self) -> str:
        return self.arguments.fragments.received

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are a complete object with members."""
        if self.arguments.whole:
            return True
        pieces = self.arguments.fragments.pieces
        self._scanner = self._scanner or JsonScanner()
        if self._scanned < len(pieces):
            self._scanner.feed("".join(pieces[self._scanned :]))
            self._scanned = len(pieces)
        return self._scanner.state == "complete" and self._scanner.end > len("{}")

    def doubt(self) -> None:
        """The upstream ended the call, but its arguments look cut."""
        self.become(Life.HELD_IN_DOUBT if self.state is Life.HELD else Life.SHOWN_IN_DOUBT)

    def hold(self, fragment: str) -> None:
        """Keep a fragment while the call is held back."""
        self.arguments.fragments.hold(fragment)
        if self.may_copy:
            start = len(self._compact)
            new = self.compact[start:]
            self.may_copy = [call for call in self.may_copy if not new or call.compact.startswith(new, start)]

    def show(self, numbers: Numbers, out: list[Event], arrived: int) -> None:
        """Emit the start of the call and everything that was held, after `arrived` new characters."""
        self.become(Life.SHOWN_IN_DOUBT if self.state is Life.HELD_IN_DOUBT else Life.SHOWN)
        self.block.open(numbers, out)
        self.emit(self.arguments.release(), arrived, out)

    def emit(self, text: str, arrived: int, out: list[Event], extras: Extras | None = None) -> None:
        """Emit `text`, after `arrived` new characters."""
        assert self.block.number is not None
        if text:
            out.append(ArgumentsDelta(self.block.number, text, extras))
        elif extras is not None:
            out.append(Carried(extras, self.block.number))
        self.meter.change(arrived - len(text))

    def leave_members(self, out: list[Event]) -> None:
        """Pass on the members of frames of a call that the client does not get."""
        carry(self.block.start.extras, out)
        self.block.drop_waiting(out)
        carry(self.end_extras, out)

    @property
    def as_written(self) -> ToolCall:
        """The call as the model made it, with the client's name for the tool."""
        part = self.start.part
        return msgspec.structs.replace(part, id=self.start.upstream.id or part.id, arguments=self.received)

    def assess(self) -> Outcome:
        """Assemble the arguments before any of them is emitted."""
        if self.outcome is None:
            outcome = self._assembled()
            self.outcome = msgspec.structs.replace(outcome, rest=outcome.text)
        return self.outcome

    def refuse(self) -> None:
        """Emit nothing. The receipt says what is wrong with the call."""
        self.outcome = msgspec.structs.replace(self.assess(), text="", rest="")

    def _assembled(self) -> Outcome:
        outcome, fault = self.arguments.finish(ended=self.ended), self.start.fault
        if fault is None or fault in outcome.problems:
            return outcome
        return msgspec.structs.replace(outcome, problems=(fault, *outcome.problems))

    def finish(self, out: list[Event]) -> Outcome:
        """Emit the rest of the arguments and the end of the call."""
        assert self.block.number is not None
        outcome = self.outcome = self.outcome or self._assembled()
        rest = outcome.rest if outcome.complete else self._cut_rest(outcome.text)
        if rest:
            out.append(ArgumentsDelta(self.block.number, rest))
        self.meter.stop()
        self.block.close(BlockEnd(self.block.number, outcome.complete, self.end_extras), out)
        broken = Life.CUT if rest or outcome.text else Life.BARE
        self.become(Life.ENDED if outcome.complete else broken)
        return outcome

    def _cut_rest(self, sent: str) -> str:
        """The rest of a cut call, as far as it arrived. Without it, the call would look like `{}`.

        Text that can never become JSON is not sent: the SDKs of Anthropic and OpenAI parse while they
        read, and raise.
        """
        readable = readable_part(self.received)
        return readable[len(sent) :] if readable.startswith(sent) else ""

    def receipt(self, dropped: str | None) -> CallReceipt:
        start, outcome = self.start, self.outcome
        return CallReceipt(
            id=start.part.id,
            name=start.part.name,
            upstream_id=start.upstream.id,
            upstream_name=start.upstream.name,
            received=self.received,
            sent=outcome.text if outcome else "",
            complete=outcome.complete if outcome else False,
            held_characters=self.meter.most,
            held_seconds=self.meter.seconds,
            fixes=start.fixes + outcome.fixes if outcome else start.fixes,
            problems=outcome.problems if outcome else (),
            dropped=dropped,
            recovered=start.recovered,
            started=self._started,
            ended=self._clock() if self._clock is not None else None,
            fragments=len(self.arguments.fragments.pieces),
            renamed=start.renamed,
            offered=start.fault is None,
        )
