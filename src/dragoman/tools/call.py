"""One tool call on its way to the client: the right name and id, and assembled arguments."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..model.events import ArgumentsDelta, BlockEnd, BlockStart, Carried, Event, Unknown
from ..model.messages import Extras, ToolCall
from ..protocols.common.tool_names import CalledTool
from ..wire.jsonscan import JsonScanner
from .arguments import LiveArguments, Outcome, WholeArguments
from .freeform import AssembledArguments, FreeformAsFunction, FreeformFromFunction, FreeformText
from .json_text import readable_part
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
        self._now += characters
        if self._now <= 0:
            self.stop()
            return
        self.most = max(self.most, self._now)
        if self._clock is not None and self._since is None:
            self._since = self._clock()

    def stop(self) -> None:
        """Nothing is held back any more."""
        self._now = 0
        if self._clock is not None and self._since is not None:
            self.seconds += self._clock() - self._since
        self._since = None


class CopyCheck:
    """Compares a new call with an earlier one while the new one grows. Reads each character once."""

    def __init__(self, earlier: ActiveCall) -> None:
        self._earlier = earlier
        self._position = 0

    def still_equal(self, compact: str) -> bool:
        """Does the earlier call continue with `compact`, too?"""
        start = self._position
        self._position += len(compact)
        return self._earlier.compact[start : self._position] == compact


Arguments = (
    LiveArguments
    | WholeArguments
    | FreeformText
    | FreeformFromFunction
    | FreeformAsFunction
    | AssembledArguments
)
"""Assembles the arguments of one call. `feed` and `release` return text that may go out before the end."""


class ActiveCall:
    """A call between its start and its end."""

    __slots__ = (
        "_arguments",
        "_clock",
        "_compact",
        "_compacted",
        "_scanned",
        "_scanner",
        "_started",
        "block",
        "called",
        "end_extras",
        "ended_early",
        "fault",
        "fixes",
        "fragments",
        "held",
        "may_copy",
        "outcome",
        "part",
        "position",
        "recovered",
        "renamed",
        "runs_here",
        "shown",
        "start",
        "upstream",
        "waiting",
        "written_twice",
    )

    start: BlockStart
    part: ToolCall
    """The call as the client gets it."""
    upstream: ToolCall
    """The call as the upstream sent it."""
    called: CalledTool | None
    """The client's tool. None if the client did not declare it."""
    fault: str | None
    """The problem with the call itself, apart from its arguments: the client did not offer the tool."""
    block: int | None
    """The call's block number for the client. None while the call is held back."""
    fixes: tuple[Fix, ...]
    """Fixes around the call. The outcome has the fixes in its arguments."""
    outcome: Outcome | None
    """The result for the arguments. None while the call is open."""
    ended_early: bool
    """The upstream ended the call, but its arguments look cut."""
    recovered: str | None
    """The format of the markup, if the model wrote the call as text."""
    renamed: bool
    """The model's name for the tool was nearly right."""
    runs_here: bool
    """Does Dragoman run it? Then the client never sees it as a call."""
    position: int
    """The number of the call in the answer, in the order in which the calls began."""
    shown: bool
    """Whether the client got any of the arguments."""
    may_copy: list[CopyCheck]
    """Earlier calls that have equal arguments so far: this call may be one of them, sent again."""
    waiting: list[Carried | Unknown]
    """What arrived while the call was held back and is no argument."""
    end_extras: Extras | None
    """The members of the frame that ended the call."""
    written_twice: bool
    """The model wrote the call as text, and the upstream sent it as a call too."""

    def __init__(
        self,
        start: BlockStart,
        part: ToolCall,
        upstream: ToolCall,
        called: CalledTool | None,
        arguments: Arguments,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.start, self.part, self.upstream, self.called = start, part, upstream, called
        self.fragments = arguments.fragments
        self.held = HoldMeter(clock)
        self.fault = self.block = self.outcome = self.recovered = None
        self.fixes = ()
        self.may_copy = []
        self.waiting = []
        self.end_extras = None
        self.position = 0
        self.ended_early = self.renamed = self.runs_here = self.shown = self.written_twice = False
        self._arguments = arguments
        self._clock = clock
        self._started = clock() if clock is not None else None
        self._compact = ""
        self._compacted = 0
        self._scanner: JsonScanner | None = None
        self._scanned = 0

    def may_be_sent_again_as(self, later: ActiveCall) -> bool:
        """Whether `later` may be this call, sent again. Equal arguments then decide it."""
        if self.part.name != later.part.name:
            return False
        if (self.recovered is None) != (later.recovered is None):
            return not self.written_twice  # once as text, once as a call
        return later.upstream.replayed or bool(later.upstream.id and later.upstream.id == self.upstream.id)

    @property
    def compact(self) -> str:
        """The arguments without blanks, for comparing. Built only when another call is compared."""
        pieces = self.fragments.pieces
        if self._compacted < len(pieces):
            self._compact += "".join("".join(pieces[self._compacted :]).split())
            self._compacted = len(pieces)
        return self._compact

    @property
    def received(self) -> str:
        return self.fragments.received

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are a complete object with members."""
        if self._arguments.whole:
            return True
        pieces = self.fragments.pieces
        self._scanner = self._scanner or JsonScanner()
        if self._scanned < len(pieces):
            self._scanner.feed("".join(pieces[self._scanned :]))
            self._scanned = len(pieces)
        return self._scanner.state == "complete" and self._scanner.end > len("{}")

    @property
    def certainly_ended(self) -> bool:
        """Whether the call cannot turn out to be cut."""
        return self.upstream.kind == "custom" or self.whole

    def hold(self, fragment: str) -> None:
        """Keep a fragment while the call is held back."""
        self.fragments.hold(fragment)
        if self.may_copy:
            compact = "".join(fragment.split())
            self.may_copy = [check for check in self.may_copy if check.still_equal(compact)]

    def feed(self, event: ArgumentsDelta, out: list[Event]) -> None:
        """Take a fragment, and emit what the assembly releases."""
        fragment = event.text
        text = self._arguments.feed(fragment)
        if text == fragment and self.block == event.block:
            out.append(event)
        else:
            self._emit(text, len(fragment), out, event.extras)

    def release(self, block: int, out: list[Event], last: ArgumentsDelta | None = None) -> None:
        """Emit the start of the call and everything that was held. `last` is the newest fragment."""
        self.block = block
        out.append(BlockStart(block, self.part, self.start.extras))
        out += [msgspec.structs.replace(event, block=block) for event in self.waiting]
        self.waiting = []
        self._emit(self._arguments.release(), 0 if last is None else len(last.text), out)

    def left_members(self) -> list[Event]:
        """The members of frames of a call that the client does not get."""
        left = [event.extras for event in self.waiting if type(event) is Carried]
        kept = (self.start.extras, *left, self.end_extras)
        return [Carried(extras) for extras in kept if extras is not None]

    def _emit(self, text: str, arrived: int, out: list[Event], extras: Extras | None = None) -> None:
        """Emit `text`, after `arrived` new characters."""
        assert self.block is not None
        if text:
            out.append(ArgumentsDelta(self.block, text, extras))
        elif extras is not None:
            out.append(Carried(extras, self.block))
        self.held.change(arrived - len(text))

    @property
    def as_written(self) -> ToolCall:
        """The call as the model made it, with the client's name for the tool."""
        return msgspec.structs.replace(
            self.part, id=self.upstream.id or self.part.id, arguments=self.received
        )

    def assess(self, ended: bool) -> Outcome:
        """Assemble the arguments before any of them is emitted."""
        outcome = self._with_fault(self._arguments.finish(ended=ended))
        self._arguments = AssembledArguments(outcome, self.fragments)
        return outcome

    def refuse(self, ended: bool) -> None:
        """Emit nothing. The receipt says what is wrong with the call."""
        self.outcome = msgspec.structs.replace(self.assess(ended), text="", rest="")

    def _with_fault(self, outcome: Outcome) -> Outcome:
        if self.fault is None or self.fault in outcome.problems:
            return outcome
        return msgspec.structs.replace(outcome, problems=(self.fault, *outcome.problems))

    def finish(self, ended: bool, out: list[Event]) -> Outcome:
        """Emit the rest of the arguments and the end of the call."""
        assert self.block is not None
        self.outcome = self._with_fault(self._arguments.finish(ended=ended))
        rest = self.outcome.rest if self.outcome.complete else self._cut_rest(self.outcome.text)
        self.shown = bool(rest or self.outcome.text)
        if rest:
            out.append(ArgumentsDelta(self.block, rest))
        self.held.stop()
        out.append(BlockEnd(self.block, self.outcome.complete, self.end_extras))
        return self.outcome

    def _cut_rest(self, sent: str) -> str:
        """The rest of a cut call, as far as it arrived. Without it, the call would look like `{}`.

        Text that can never become JSON is not sent: the SDKs of Anthropic and OpenAI parse while they
        read, and raise.
        """
        readable = readable_part(self.received)
        return readable[len(sent) :] if readable.startswith(sent) else ""

    def receipt(self, dropped: str | None = None) -> CallReceipt:
        outcome = self.outcome
        return CallReceipt(
            id=self.part.id,
            name=self.part.name,
            upstream_id=self.upstream.id,
            upstream_name=self.upstream.name,
            received=self.received,
            sent=outcome.text if outcome else "",
            complete=outcome.complete if outcome else False,
            held_characters=self.held.most,
            held_seconds=self.held.seconds,
            fixes=self.fixes + outcome.fixes if outcome else self.fixes,
            problems=outcome.problems if outcome else (),
            dropped=dropped,
            recovered=self.recovered,
            started=self._started,
            ended=self._clock() if self._clock is not None else None,
            fragments=len(self.fragments.pieces),
            renamed=self.renamed,
            offered=self.fault is None,
        )
