"""One tool call on its way to the client: its name and id put right, its arguments assembled."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..model.events import ArgumentsDelta, BlockEnd, BlockStart, Event
from ..model.messages import REPLAYED, ToolCall
from ..protocols.common import freeform
from ..protocols.common.tool_names import CalledTool
from ..wire.jsonscan import JsonScanner
from .arguments import LiveArguments, Outcome, WholeArguments, assemble
from .json_text import readable_part
from .receipts import CallReceipt
from .rules import Fix, Rules
from .schema import compile_schema


class FreeText:
    """A freeform tool's input: text on both sides, as it comes or in one piece at the end."""

    whole = False

    def __init__(self, mode: str) -> None:
        self.live = mode != "whole"
        self._pieces: list[str] = []

    def feed(self, piece: str) -> str:
        self._pieces.append(piece)
        return piece if self.live else ""

    def finish(self, *, ended: bool) -> Outcome:
        text = "".join(self._pieces)
        if self.live:
            return _outcome(text, "", complete=ended)
        return _outcome(text, text, complete=True) if ended else _outcome("", "", complete=False)


class Unwrapped:
    """A freeform tool that travelled as a function: the member `input` is its text."""

    live = whole = False

    def __init__(self, name: str, rules: Rules) -> None:
        self._inner = assemble("whole", name, compile_schema(freeform.PARAMETERS), rules)

    def feed(self, piece: str) -> str:
        return self._inner.feed(piece)

    def finish(self, *, ended: bool) -> Outcome:
        outcome = self._inner.finish(ended=ended)
        value = (outcome.value or {}).get("input")
        if not outcome.complete or not isinstance(value, str):
            return msgspec.structs.replace(outcome, text="", rest="", complete=False)
        return msgspec.structs.replace(outcome, text=value, rest=value)


class Wrapped:
    """A freeform call for a client that knows only functions."""

    live = whole = False

    def __init__(self) -> None:
        self._text = ""

    def feed(self, piece: str) -> str:
        self._text += piece
        return ""

    def finish(self, *, ended: bool) -> Outcome:
        text = msgspec.json.encode({"input": self._text}).decode()
        return _outcome(text, text, complete=ended)


class Done:
    """A call whose arguments are known already."""

    live = whole = False

    def __init__(self, outcome: Outcome) -> None:
        self._outcome = msgspec.structs.replace(outcome, rest=outcome.text)

    def feed(self, piece: str) -> str:
        return ""

    def finish(self, *, ended: bool) -> Outcome:
        return self._outcome


def _outcome(text: str, rest: str, complete: bool) -> Outcome:
    return Outcome(text=text, rest=rest, value=None, complete=complete, problems=(), fixes=())


class Held:
    """How much of a call is held back, and for how long."""

    __slots__ = ("_clock", "_now", "_since", "most", "seconds")

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self.most = 0
        self.seconds = 0.0
        self._now = 0
        self._clock = clock
        self._since: float | None = None

    def change(self, characters: int) -> None:
        """So many more characters are held back than before; fewer, if negative."""
        self._now += characters
        if self._now <= 0:
            self.over()
            return
        self.most = max(self.most, self._now)
        if self._clock is not None and self._since is None:
            self._since = self._clock()

    def over(self) -> None:
        """Nothing is held any more."""
        self._now = 0
        if self._clock is not None and self._since is not None:
            self.seconds += self._clock() - self._since
        self._since = None


class Twin:
    """An earlier call that a new one may be a copy of. Compares as the new one grows, each part once."""

    def __init__(self, earlier: OpenCall) -> None:
        self._earlier = earlier
        self._position = 0

    def goes_on(self, outline: str) -> bool:
        """Does the earlier call go on like this too?"""
        start = self._position
        self._position += len(outline)
        return self._earlier.outline[start : self._position] == outline


Arguments = LiveArguments | WholeArguments | FreeText | Unwrapped | Wrapped | Done
"""What the arguments of a call go through: `feed` and `finish` give what may go out."""


class OpenCall:
    """A call between its start and its end."""

    __slots__ = (
        "_arguments",
        "_began",
        "_clock",
        "_outline",
        "_outlined",
        "_scanned",
        "_scanner",
        "block",
        "called",
        "fault",
        "fixes",
        "held",
        "outcome",
        "over",
        "part",
        "pieces",
        "position",
        "recovered",
        "renamed",
        "shown",
        "start",
        "twins",
        "upstream",
        "written_twice",
    )

    def __init__(
        self,
        start: BlockStart,
        part: ToolCall,
        upstream: ToolCall,
        called: CalledTool | None,
        arguments: Arguments,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.held = Held(clock)
        self._clock = clock
        self._began = clock() if clock is not None else None
        self.start = start
        self.part = part
        self.upstream = upstream
        self.called = called
        """The client's tool, where it is one it declared."""
        self.fault: str | None = None
        """What is wrong with the call itself, whatever its arguments: the client did not offer the tool."""
        self.block: int | None = None
        """Its number for the client; None while it is held back."""
        self.fixes: tuple[Fix, ...] = ()
        """What was mended around it; what was in its arguments is in the outcome."""
        self.pieces: list[str] = []
        self.outcome: Outcome | None = None
        self.over = False
        """The upstream ended it, but its arguments look cut."""
        self.recovered: str | None = None
        """The markup it was found in, where the model wrote it as text."""
        self.renamed = False
        """The model's name for the tool was nearly right."""
        self.position = 0
        """The how manyth call of the answer it is, in the order in which they began."""
        self.shown = False
        """Did the client get something of its arguments?"""
        self.twins: list[Twin] = []
        """Earlier calls that this one may be, sent once more: they have said the same so far."""
        self.written_twice = False
        """The model wrote it as text, and the upstream sent it as a call as well."""
        self._outline = ""
        self._outlined = 0
        self._arguments = arguments
        self._scanner: JsonScanner | None = None
        self._scanned = 0

    def may_be(self, later: OpenCall) -> bool:
        """May `later` be this call, sent once more? Its arguments decide it."""
        if self.part.name != later.part.name:
            return False
        if (self.recovered is None) != (later.recovered is None):
            return not self.written_twice  # once as text, once as a call
        again = later.upstream.extras is not None and REPLAYED in later.upstream.extras
        return again or bool(later.upstream.id and later.upstream.id == self.upstream.id)

    @property
    def outline(self) -> str:
        """The arguments without blanks, for comparing; put together when another call is compared."""
        if self._outlined < len(self.pieces):
            self._outline += "".join("".join(self.pieces[self._outlined :]).split())
            self._outlined = len(self.pieces)
        return self._outline

    @property
    def received(self) -> str:
        return "".join(self.pieces)

    @property
    def whole(self) -> bool:
        """Have the arguments come to the end of an object that says something?"""
        if self._arguments.whole:
            return True
        self._scanner = self._scanner or JsonScanner()
        if self._scanned < len(self.pieces):
            self._scanner.feed("".join(self.pieces[self._scanned :]))
            self._scanned = len(self.pieces)
        return self._scanner.state == "complete" and self._scanner.end > len("{}")

    @property
    def settled(self) -> bool:
        """Nothing that may still come can say that it was cut."""
        return self.upstream.kind == "custom" or self.whole

    def take(self, piece: str) -> None:
        """Some of the arguments came while the call is held back."""
        self.pieces.append(piece)
        if self.twins:
            outline = "".join(piece.split())
            self.twins = [twin for twin in self.twins if twin.goes_on(outline)]

    def feed(self, event: ArgumentsDelta, out: list[Event]) -> None:
        """Some of the arguments came; what may go out of them does."""
        piece = event.text
        self.pieces.append(piece)
        text = self._arguments.feed(piece) if self._arguments.live else ""
        if text == piece and self.block == event.block:
            out.append(event)
        else:
            self._give(text, len(piece), out)

    def release(self, block: int, out: list[Event], last: ArgumentsDelta | None = None) -> None:
        """Give the client the call, with whatever was held back of it; `last` is what came just now."""
        self.block = block
        unchanged = block == self.start.block and self.part is self.upstream
        out.append(self.start if unchanged else BlockStart(block, self.part))
        text = self._arguments.feed(self.received) if self._arguments.live else ""
        if last is not None and text == last.text and block == last.block:
            out.append(last)
        else:
            self._give(text, 0 if last is None else len(last.text), out)

    def _give(self, text: str, came: int, out: list[Event]) -> None:
        """`text` goes out; `came` characters came with it."""
        assert self.block is not None
        if text:
            out.append(ArgumentsDelta(self.block, text))
        self.held.change(came - len(text))

    @property
    def said(self) -> ToolCall:
        """The call as the model made it, by the client's name for the tool."""
        return msgspec.structs.replace(
            self.part, id=self.upstream.id or self.part.id, arguments=self.received
        )

    def assess(self, ended: bool) -> Outcome:
        """What would become of the call, before any of it is given out."""
        self._arguments.feed(self.received)
        outcome = self._judged(self._arguments.finish(ended=ended))
        self._arguments = Done(outcome)
        return outcome

    def refuse(self, ended: bool) -> None:
        """None of it goes out; the receipt says what is wrong with it."""
        self.outcome = msgspec.structs.replace(self.assess(ended), text="", rest="")

    def _judged(self, outcome: Outcome) -> Outcome:
        if self.fault is None or self.fault in outcome.problems:
            return outcome
        return msgspec.structs.replace(outcome, problems=(self.fault, *outcome.problems))

    def finish(self, ended: bool, out: list[Event]) -> Outcome:
        assert self.block is not None
        if not self._arguments.live:
            self._arguments.feed(self.received)
        self.outcome = self._judged(self._arguments.finish(ended=ended))
        rest = self.outcome.rest if self.outcome.complete else self._cut_rest(self.outcome.text)
        self.shown = bool(rest or self.outcome.text)
        if rest:
            out.append(ArgumentsDelta(self.block, rest))
        self.held.over()
        out.append(BlockEnd(self.block, self.outcome.complete))
        return self.outcome

    def _cut_rest(self, sent: str) -> str:
        """A cut call is shown as far as it came, or it would look like one without arguments.

        Text that can never become JSON stays here: SDKs parse what they get while it comes, and raise.
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
            started=self._began,
            ended=self._clock() if self._clock is not None else None,
            fragments=len(self.pieces),
            renamed=self.renamed,
            offered=self.fault is None,
        )
