"""Text and reasoning on their way to the client, freed of what does not belong in them.

A block is opened for the client by its first words (reasoning also by its seal), so that a block of which
nothing is left, because all of it was a call or nothing ever came, never appears.
"""

from __future__ import annotations

from ..model.events import BlockEnd, BlockStart, CitationAdded, End, Event, TextDelta
from ..model.messages import Text, Thinking
from .calls import Calls
from .leaks import Frame, LeakedCall, LeakFilter, is_untriggered
from .plan import Numbers, ToolPlan
from .reasoning import Repeat, Thoughts
from .rules.answer_rules import CALL_IN_REASONING
from .text_filters import LoneMark, Piece, TextFlow, catalog


class Prose:
    """The text and reasoning blocks of one answer."""

    __slots__ = (
        "_calls",
        "_citations",
        "_ended",
        "_flow",
        "_keep_empty",
        "_last",
        "_leaks",
        "_mark",
        "_numbers",
        "_plan",
        "_repeat",
        "_tagged",
        "_text",
        "_text_out",
        "_thinking",
        "_thoughts",
        "_unopened",
        "cut",
    )

    def __init__(self, plan: ToolPlan, numbers: Numbers, calls: Calls) -> None:
        self._numbers = numbers
        self._keep_empty = plan.same
        self._calls = calls
        self._plan = plan
        self._flow = TextFlow(plan)
        self._leaks = self._flow.leaks
        self._thoughts: Thoughts | None = None
        self._text: BlockStart | None = None
        """The upstream's open text block."""
        self._text_out: int | None = None
        self._citations: list[CitationAdded] = []
        """Sources that were named before the words they belong to."""
        self._unopened: dict[int, BlockStart] = {}
        """The upstream's open reasoning blocks of which nothing has come."""
        self._thinking: dict[int, int] = {}
        """The others, by the client's number."""
        self._last: TextDelta | None = None
        """The words that came last: held to the end, they may go out as they came."""
        self._mark = ""
        """The opening mark that the text ended with; until the next block begins, the text stays open."""
        self._tagged: int | None = None
        """Reasoning that came inside the text, in tags."""
        self._repeat: Repeat | None = None
        """Set where reasoning came in a field of its own."""
        self.cut: End | None = None
        """The answer's end, once a stop sequence was among its words."""
        self._ended: BlockEnd | None = None
        """The end of a reasoning block that waits for what follows."""

    @property
    def dropped(self) -> tuple[str, str]:
        """The words that were no words: `LeakFilter.dropped` and `LeakFilter.framed`."""
        said, thoughts = self._leaks, self._thoughts
        if thoughts is None:
            return said.dropped, said.framed
        return thoughts.leaks.dropped + said.dropped, thoughts.leaks.framed + said.framed

    def start(self, event: BlockStart, out: list[Event]) -> None:
        if isinstance(event.part, Text):
            self._text = event
            return
        self._flow.reasoning_seen()
        self._repeat = self._repeat or Repeat()
        plan = self._plan
        if self._thoughts is None and plan.names.declared() and plan.rules.on(CALL_IN_REASONING):
            self._thoughts = Thoughts(LeakFilter(catalog(plan.names)))
        self._unopened[event.block] = event
        if isinstance(event.part, Thinking) and event.part.seal is not None:
            self._open_thinking(event.block, out)

    def delta(self, event: TextDelta, out: list[Event]) -> None:
        """Some words. `cut` is set where a stop sequence was among them."""
        if self._text is None or event.block != self._text.block:
            self._reasoning(event, out)
            return
        number, text = self._text_out, event.text
        if number is None or self._tagged is not None or not (self._flow.idle and is_untriggered(text)):
            pieces = self._flow.feed(text)
            self._last = event
            if pieces != [text]:
                self._say(pieces, out)
                return
            number = self._open_text(out)
        else:
            self._leaks.spoke = text
        out.append(event if number == event.block else TextDelta(number, text))

    def _reasoning(self, event: TextDelta, out: list[Event]) -> None:
        text = self._thoughts.feed(event.text) if self._thoughts else event.text
        if self._repeat is not None:
            self._repeat.said.append(event.text)
        number = self._open_thinking(event.block, out) if text else None
        if number is not None:
            same = number == event.block and text == event.text
            out.append(event if same else TextDelta(number, text))

    def cite(self, event: CitationAdded, out: list[Event]) -> None:
        """A source for the open text."""
        if self._text is None or event.block != self._text.block:
            return
        if self._text_out is None:
            self._citations.append(event)
        elif self._text_out == event.block:
            out.append(event)
        else:
            out.append(CitationAdded(self._text_out, event.citation))

    def end_block(self, event: BlockEnd, out: list[Event]) -> bool:
        """Was it one of these blocks?"""
        if self._text is not None and event.block == self._text.block:
            self._say(self._flow.flush(), out)
            if not self._mark:
                self._end_text(event, out)
            return True
        if event.block in self._thinking or event.block in self._unopened:
            self._end_thinking(event, out)
            return True
        return False

    def number(self, block: int, out: list[Event]) -> int | None:
        """The client's number of a block, opening it if need be."""
        return self._open_thinking(block, out)

    def settle(self, out: list[Event], *, call: bool) -> str:
        """Something new begins, so calls that stood in the reasoning were only talked about.

        Gives the opening mark that the text before it ended with, where a call begins: it is not said.
        """
        mark, self._mark = self._mark, ""
        if mark:
            if not call:
                self._say([mark], out)
            self._end_text(None, out)
        ended, self._ended = self._ended, None
        if ended is not None and self._thoughts is not None:
            number = self._open_thinking(ended.block, out)
            if number is not None:
                out.append(TextDelta(number, self._thoughts.as_words()))
            self._close_thinking(ended, out)
        return mark if call else ""

    def end(self, out: list[Event]) -> None:
        """The answer is over."""
        if self._text is not None:
            self._say(self._flow.flush(), out)
            mark, self._mark = self._mark, ""
            self._say([mark] if mark else [], out)
        self._end_text(None, out)
        ended, self._ended = self._ended, None
        if self._thinking:
            out += [BlockEnd(number) for number in self._thinking.values()]
            self._thinking.clear()
        self._unopened.clear()
        if ended is not None and self._thoughts is not None:
            for call in self._thoughts.as_calls():
                self._calls.recover(call, out)

    def _end_text(self, event: BlockEnd | None, out: list[Event]) -> None:
        self._text = self._last = None
        self._citations.clear()
        self._close_text(event, out)

    def _end_thinking(self, event: BlockEnd, out: list[Event]) -> None:
        rest = self._thoughts.flush() if self._thoughts is not None else ""
        number = self._open_thinking(event.block, out) if rest else None
        if number is not None:
            out.append(TextDelta(number, rest))
        if self._thoughts is not None and self._thoughts.waiting:
            self._ended = event
        else:
            self._close_thinking(event, out)

    def _close_thinking(self, event: BlockEnd, out: list[Event]) -> None:
        if self._keep_empty and self._ended is None:
            self._open_thinking(event.block, out)
        self._unopened.pop(event.block, None)
        number = self._thinking.pop(event.block, None)
        if number is not None:
            out.append(event if number == event.block else BlockEnd(number))

    def _say(self, pieces: list[Piece], out: list[Event]) -> None:
        for piece in pieces:
            match piece:
                case str():
                    number, last = self._open_text(out), self._last
                    known = last is not None and last.block == number and last.text == piece
                    out.append(last if last is not None and known else TextDelta(number, piece))
                case Thinking(text):
                    self._think(text, out)
                case LeakedCall():
                    self._close_text(None, out)
                    self._calls.recover(piece, out)
                case LoneMark(mark):
                    self._mark = mark
                case Frame():
                    pass  # a notice tells of it
                case End():
                    self._text = None
                    self.cut = piece
                    return

    def _think(self, text: str, out: list[Event]) -> None:
        """Reasoning in tags. Some servers give it in a field of its own as well: it is said once."""
        if self._text_out is not None:
            self._close_text(None, out)
        text = self._repeat.fresh(text) if self._repeat is not None else text
        if not text:
            return
        if self._tagged is None:
            self._tagged = next(self._numbers)
            out.append(BlockStart(self._tagged, Thinking()))
        out.append(TextDelta(self._tagged, text))

    def _open_thinking(self, block: int, out: list[Event]) -> int | None:
        """The client's number of a reasoning block, opened if need be."""
        start = self._unopened.pop(block, None)
        if start is not None:
            number = self._thinking[block] = next(self._numbers)
            out.append(start if number == block else BlockStart(number, start.part))
        return self._thinking.get(block)

    def _open_text(self, out: list[Event]) -> int:
        if self._tagged is not None:
            self._close_tagged(out)
        if self._text_out is None:
            self._text_out = number = next(self._numbers)
            start = self._text
            out.append(start if start is not None and start.block == number else BlockStart(number, Text()))
            self._cite_now(number, out)
        return self._text_out

    def _cite_now(self, number: int, out: list[Event]) -> None:
        """The words are there that the sources belong to."""
        if self._citations:
            out += [c if c.block == number else CitationAdded(number, c.citation) for c in self._citations]
            self._citations.clear()

    def _close_text(self, event: BlockEnd | None, out: list[Event]) -> None:
        if self._tagged is not None:
            self._close_tagged(out)
        number, self._text_out = self._text_out, None
        if number is not None:
            out.append(event if event is not None and event.block == number else BlockEnd(number))

    def _close_tagged(self, out: list[Event]) -> None:
        number, self._tagged = self._tagged, None
        if number is not None:
            out.append(BlockEnd(number))
