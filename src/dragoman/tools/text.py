"""The text and reasoning blocks of one answer, without leaked calls, think tags and end tokens.

The client gets a block with its first text (reasoning also with its seal). So a block that stays empty,
because all of it was a call or nothing arrived, never appears.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.events import BlockEnd, BlockStart, Carried, CitationAdded, End, Event, TextDelta, Unknown
from ..model.messages import Text, Thinking
from .calls import CallTracker
from .leaks import FrameTokens, LeakedCall, LeakFilter, is_untriggered
from .plan import Numbers, ToolPlan
from .reasoning import ReasoningLeaks, RepeatedReasoning
from .rules.answer_rules import CALL_IN_REASONING
from .text_filters import LoneMark, Piece, TextFilters, catalog

InText = CitationAdded | Carried | Unknown
"""What belongs to a block of text and is not text."""


class TextStage:
    """Processes the text and reasoning blocks of one answer."""

    __slots__ = (
        "_begun",
        "_calls",
        "_ended",
        "_filters",
        "_had_text",
        "_keep_empty",
        "_leaks",
        "_mark",
        "_numbers",
        "_plan",
        "_reasoning_leaks",
        "_repeat",
        "_tagged",
        "_text",
        "_text_out",
        "_thinking",
        "_unopened",
        "_waiting",
        "_waiting_thoughts",
        "cut",
    )

    def __init__(self, plan: ToolPlan, numbers: Numbers, calls: CallTracker) -> None:
        self._numbers = numbers
        self._keep_empty = plan.same
        self._calls = calls
        self._plan = plan
        self._filters = TextFilters(plan)
        self._leaks = self._filters.leaks
        self._reasoning_leaks: ReasoningLeaks | None = None
        self._text: BlockStart | None = None
        """The upstream's open text block."""
        self._begun = False
        """Did the client get a block for the upstream's open text block? A leaked call splits it into two."""
        self._had_text = False
        self._text_out: int | None = None
        self._waiting: list[InText] = []
        """What arrived before the text that it belongs to."""
        self._waiting_thoughts: dict[int, list[InText]] = {}
        """The same for reasoning blocks, by the upstream's number."""
        self._unopened: dict[int, BlockStart] = {}
        """The upstream's open reasoning blocks without text so far."""
        self._thinking: dict[int, int] = {}
        """The client's numbers of the other open reasoning blocks, by the upstream's number."""
        self._mark = ""
        """An opening mark at the end of the text. The text block stays open until the next block begins."""
        self._tagged: int | None = None
        """The client's number of the block for reasoning that arrived in tags, inside the text."""
        self._repeat: RepeatedReasoning | None = None
        """Set if reasoning arrived in its own field."""
        self.cut: End | None = None
        """The end of the answer, once a stop sequence was found in the text."""
        self._ended: BlockEnd | None = None
        """The end of a reasoning block. It waits for the next block: a call in the reasoning may be real."""

    @property
    def dropped(self) -> tuple[str, str]:
        """Tokens that were removed: `LeakFilter.dropped` and `LeakFilter.framed`."""
        text, reasoning = self._leaks, self._reasoning_leaks
        if reasoning is None:
            return text.dropped, text.framed
        return reasoning.leaks.dropped + text.dropped, reasoning.leaks.framed + text.framed

    def start(self, event: BlockStart, out: list[Event]) -> None:
        if isinstance(event.part, Text):
            self._text, self._begun, self._had_text = event, False, False
            return
        self._filters.reasoning_seen()
        self._repeat = self._repeat or RepeatedReasoning()
        plan = self._plan
        if self._reasoning_leaks is None and plan.names.declared() and plan.rules.on(CALL_IN_REASONING):
            self._reasoning_leaks = ReasoningLeaks(LeakFilter(catalog(plan.names)))
        self._unopened[event.block] = event
        if isinstance(event.part, Thinking) and event.part.seal is not None:
            self._open_thinking(event.block, out)

    def delta(self, event: TextDelta, out: list[Event]) -> None:
        """Process text. Sets `cut` if a stop sequence is in it."""
        if self._text is None or event.block != self._text.block:
            self._reasoning(event, out)
            return
        number, text = self._text_out, event.text
        self._had_text = True
        if number is None or self._tagged is not None or not (self._filters.idle and is_untriggered(text)):
            pieces = self._filters.feed(text)
            if pieces != [text]:
                if event.extras is not None:
                    self.in_text(Carried(event.extras, event.block), out)
                self._emit(pieces, out)
                return
            number = self._open_text(out)
        else:
            # Fast path for most text. The filter still needs the line's end, to tell a call from a mention.
            self._leaks.line_end = text
        out.append(event if number == event.block else TextDelta(number, text, extras=event.extras))

    def _reasoning(self, event: TextDelta, out: list[Event]) -> None:
        text = self._reasoning_leaks.feed(event.text) if self._reasoning_leaks else event.text
        if self._repeat is not None:
            self._repeat.seen.append(event.text)
        number = self._open_thinking(event.block, out) if text else None
        if number is None:
            if event.extras is not None:
                self.in_text(Carried(event.extras, event.block), out)
            return
        if event.separates and text != event.text and text.endswith(event.text):
            # The filter held text back until now. The boundary stays an event of its own.
            out.append(TextDelta(number, text.removesuffix(event.text)))
            text = event.text
        same = number == event.block and text == event.text
        separates = event.separates and text == event.text
        out.append(event if same else TextDelta(number, text, separates, event.extras))

    def in_text(self, event: InText, out: list[Event]) -> bool:
        """Pass on what belongs to the open text or to reasoning. It waits until the client has the block.

        False if its block is another one.
        """
        block = event.block
        if self._text is not None and block == self._text.block:
            if self._text_out is None:
                self._waiting.append(event)
            else:
                out.append(_moved(event, self._text_out))
        elif block in self._thinking:
            out.append(_moved(event, self._thinking[block]))
        elif block in self._unopened:
            self._waiting_thoughts.setdefault(block, []).append(event)
        else:
            return False
        return True

    def end_block(self, event: BlockEnd, out: list[Event]) -> bool:
        """End a block. False if it is neither text nor reasoning."""
        if self._text is not None and event.block == self._text.block:
            self._emit(self._filters.flush(), out)
            if not self._mark:
                self._end_text(event, out)
            return True
        if event.block in self._thinking or event.block in self._unopened:
            self._end_thinking(event, out)
            return True
        return False

    def number(self, block: int, out: list[Event]) -> int | None:
        """The client's number of a reasoning block. Opens the block if necessary."""
        return self._open_thinking(block, out)

    def begin_next(self, out: list[Event], *, call: bool) -> str:
        """A new block begins, so calls inside the reasoning were only talked about.

        Returns the opening mark at the end of the text, if a call begins: the mark is dropped.
        """
        mark, self._mark = self._mark, ""
        if mark:
            if not call:
                self._emit([mark], out)
            self._end_text(None, out)
        ended, self._ended = self._ended, None
        if ended is not None and self._reasoning_leaks is not None:
            number = self._open_thinking(ended.block, out)
            if number is not None:
                out.append(TextDelta(number, self._reasoning_leaks.as_text()))
            self._close_thinking(ended, out)
        return mark if call else ""

    def end(self, out: list[Event]) -> None:
        """The answer is over."""
        if self._text is not None:
            self._emit(self._filters.flush(), out)
            mark, self._mark = self._mark, ""
            self._emit([mark] if mark else [], out)
        self._end_text(None, out)
        ended, self._ended = self._ended, None
        if self._thinking:
            out += [BlockEnd(number) for number in self._thinking.values()]
            self._thinking.clear()
        self._unopened.clear()
        if ended is not None and self._reasoning_leaks is not None:
            for call in self._reasoning_leaks.as_calls():
                self._calls.recover(call, out)

    def _end_text(self, event: BlockEnd | None, out: list[Event]) -> None:
        if self._keep_empty and not self._begun and self._is_kept(self._text):
            self._open_text(out)
        self._text = None
        _drop(self._waiting, out)
        self._waiting.clear()
        self._close_text(event, out)

    def _is_kept(self, start: BlockStart | None) -> bool:
        """Does a block that never had text hold anything else that the client must get?"""
        if start is None or self._had_text or not isinstance(start.part, Text):
            return False
        return bool(self._waiting or start.extras or start.part.extras)

    def _end_thinking(self, event: BlockEnd, out: list[Event]) -> None:
        rest = self._reasoning_leaks.flush() if self._reasoning_leaks is not None else ""
        number = self._open_thinking(event.block, out) if rest else None
        if number is not None:
            out.append(TextDelta(number, rest))
        if self._reasoning_leaks is not None and self._reasoning_leaks.waiting:
            self._ended = event
        else:
            self._close_thinking(event, out)

    def _close_thinking(self, event: BlockEnd, out: list[Event]) -> None:
        if self._keep_empty and self._ended is None:
            self._open_thinking(event.block, out)
        self._unopened.pop(event.block, None)
        _drop(self._waiting_thoughts.pop(event.block, ()), out)
        number = self._thinking.pop(event.block, None)
        if number is not None:
            out.append(BlockEnd(number, event.complete, event.extras))
        elif event.extras is not None:
            out.append(Carried(event.extras))

    def _emit(self, pieces: list[Piece], out: list[Event]) -> None:
        for piece in pieces:
            match piece:
                case str():
                    out.append(TextDelta(self._open_text(out), piece))
                case Thinking(text):
                    self._emit_tagged(text, out)
                case LeakedCall():
                    self._close_text(None, out)
                    self._calls.recover(piece, out)
                case LoneMark(mark):
                    self._mark = mark
                case FrameTokens():
                    pass  # reported by a notice
                case End():
                    self._text = None
                    self.cut = piece
                    return

    def _emit_tagged(self, text: str, out: list[Event]) -> None:
        """Emit reasoning that arrived in tags, unless the server sent the same in its own field."""
        if self._text_out is not None:
            self._close_text(None, out)
        text = self._repeat.new_part(text) if self._repeat is not None else text
        if not text:
            return
        if self._tagged is None:
            self._tagged = next(self._numbers)
            out.append(BlockStart(self._tagged, Thinking()))
        out.append(TextDelta(self._tagged, text))

    def _open_thinking(self, block: int, out: list[Event]) -> int | None:
        """The client's number of a reasoning block. Opens the block if necessary."""
        start = self._unopened.pop(block, None)
        if start is not None:
            number = self._thinking[block] = next(self._numbers)
            out.append(start if number == block else BlockStart(number, start.part, start.extras))
            if self._waiting_thoughts:
                out += [_moved(event, number) for event in self._waiting_thoughts.pop(block, ())]
        return self._thinking.get(block)

    def _open_text(self, out: list[Event]) -> int:
        if self._tagged is not None:
            self._close_tagged(out)
        if self._text_out is None:
            self._text_out = number = next(self._numbers)
            start = None if self._begun else self._text
            self._begun = True
            part, extras = (Text(), None) if start is None else (start.part, start.extras)
            out.append(BlockStart(number, part, extras))
            if self._waiting:
                out += [_moved(event, number) for event in self._waiting]
                self._waiting.clear()
        return self._text_out

    def _close_text(self, event: BlockEnd | None, out: list[Event]) -> None:
        if self._tagged is not None:
            self._close_tagged(out)
        number, self._text_out = self._text_out, None
        if number is not None:
            out.append(BlockEnd(number) if event is None else BlockEnd(number, event.complete, event.extras))
        elif event is not None and event.extras is not None:
            out.append(Carried(event.extras))

    def _close_tagged(self, out: list[Event]) -> None:
        number, self._tagged = self._tagged, None
        if number is not None:
            out.append(BlockEnd(number))


def _moved(event: InText, number: int) -> InText:
    return event if event.block == number else msgspec.structs.replace(event, block=number)


def _drop(events: Sequence[InText], out: list[Event]) -> None:
    """The client never got the block. Members that waited for it go without a block."""
    out += [Carried(event.extras) for event in events if type(event) is Carried]
