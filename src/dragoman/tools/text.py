"""The text and reasoning blocks of one answer, without leaked calls, think tags and end tokens.

The client gets a block with its first text (reasoning also with its seal). So a block that stays empty,
because all of it was a call or nothing arrived, never appears.
"""

from __future__ import annotations

from ..model.events import BlockEnd, BlockStart, Carried, End, Event, TextDelta
from ..model.messages import Text, Thinking
from .calls import CallTracker
from .client_block import ClientBlock, InBlock
from .leaks import FrameTokens, LeakedCall, LeakFilter, is_untriggered
from .plan import Numbers, ToolPlan
from .reasoning import ReasoningLeaks, RepeatedReasoning
from .rules.answer_rules import CALL_IN_REASONING
from .text_filters import LoneMark, Piece, TextFilters, catalog


class TextStage:
    """Processes the text and reasoning blocks of one answer."""

    __slots__ = (
        "_calls", "_ended", "_filters", "_had_text", "_leaks", "_mark", "_numbers", "_plan",
        "_reasoning_leaks", "_repeat", "_stopped", "_tagged", "_text", "_thinking", "cut",
    )  # fmt: skip

    def __init__(self, plan: ToolPlan, numbers: Numbers, calls: CallTracker) -> None:
        self._numbers = numbers
        self._calls = calls
        self._plan = plan
        self._filters = TextFilters(plan)
        self._leaks = self._filters.leaks
        self._reasoning_leaks: ReasoningLeaks | None = None
        self._text: ClientBlock | None = None
        """The upstream's open text block. A leaked call splits it into two blocks for the client."""
        self._had_text = self._stopped = False
        """Of that block: did any text arrive, and was a stop sequence in it?"""
        self._thinking: dict[int, ClientBlock] = {}
        """The upstream's open reasoning blocks, by their number."""
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
            if self._text is not None:
                self._end_text(None, out)
            self._text, self._had_text, self._stopped = ClientBlock(event), False, False
            return
        self._filters.reasoning_seen()
        self._repeat = self._repeat or RepeatedReasoning()
        plan = self._plan
        if self._reasoning_leaks is None and plan.names.declared() and plan.rules.on(CALL_IN_REASONING):
            self._reasoning_leaks = ReasoningLeaks(LeakFilter(catalog(plan.names)))
        self._thinking[event.block] = ClientBlock(event)
        if isinstance(event.part, Thinking) and event.part.seal is not None:
            self.number(event.block, out)

    def delta(self, event: TextDelta, out: list[Event]) -> None:
        """Process text. Sets `cut` if a stop sequence is in it."""
        block, text = self._text, event.text
        if block is None or event.block != block.start.block:
            self._reasoning(event, out)
            return
        self._had_text = True
        number = block.number
        if number is None or not (self._filters.idle and is_untriggered(text)):
            pieces = self._filters.feed(text)
            if pieces != [text]:
                if event.extras is not None:
                    block.pass_on(Carried(event.extras, event.block), out)
                self._emit(pieces, block, out)
                return
            number = self._open_text(block, out)
        else:
            # Fast path for most text. The filter still needs the line's end, to tell a call from a mention.
            self._leaks.line_end = text
        out.append(event if number == event.block else TextDelta(number, text, extras=event.extras))

    def _reasoning(self, event: TextDelta, out: list[Event]) -> None:
        text = self._reasoning_leaks.feed(event.text) if self._reasoning_leaks else event.text
        if self._repeat is not None:
            self._repeat.seen.append(event.text)
        number = self.number(event.block, out) if text else None
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

    def in_text(self, event: InBlock, out: list[Event]) -> bool:
        """Pass on what belongs to the open text or to reasoning. False if its block is another one."""
        block = self._text
        if block is None or event.block != block.start.block:
            block = None if event.block is None else self._thinking.get(event.block)
        if block is not None:
            block.pass_on(event, out)
        return block is not None

    def end_block(self, event: BlockEnd, out: list[Event]) -> bool:
        """End a block. False if it is neither text nor reasoning."""
        block = self._text
        if block is not None and event.block == block.start.block:
            self._emit(self._filters.flush(), block, out)
            if not self._mark:
                self._end_text(event, out)
            return True
        if event.block in self._thinking:
            self._end_thinking(event, out)
            return True
        return False

    def number(self, block: int, out: list[Event]) -> int | None:
        """The client's number of a reasoning block. Opens the block if necessary."""
        thinking = self._thinking.get(block)
        return None if thinking is None else thinking.open(self._numbers, out)

    def begin_next(self, out: list[Event], *, call: bool) -> str:
        """A new block begins, so calls inside the reasoning were only talked about.

        Returns the opening mark at the end of the text, if a call begins: the mark is dropped.
        """
        mark, self._mark = self._mark, ""
        if mark and self._text is not None:
            if not call:
                self._emit([mark], self._text, out)
            self._end_text(None, out)
        ended, self._ended = self._ended, None
        if ended is not None and self._reasoning_leaks is not None:
            number = self.number(ended.block, out)
            if number is not None:
                out.append(TextDelta(number, self._reasoning_leaks.as_text()))
            self._close_thinking(ended, out)
        return mark if call else ""

    def end(self, out: list[Event]) -> None:
        """The answer is over."""
        block = self._text
        if block is not None and not self._stopped:
            self._emit(self._filters.flush(), block, out)
            mark, self._mark = self._mark, ""
            self._emit([mark] if mark else [], block, out)
        self._end_text(None, out)
        ended, self._ended = self._ended, None
        for thinking in sorted(self._thinking.values(), key=lambda thinking: thinking.number or 0):
            thinking.close(None, out)
        self._thinking.clear()
        if ended is not None and self._reasoning_leaks is not None:
            for call in self._reasoning_leaks.as_calls():
                self._calls.recover(call, out)

    def _end_text(self, event: BlockEnd | None, out: list[Event]) -> None:
        block, self._text = self._text, None
        if block is not None:
            if self._plan.same and self._is_kept(block):
                self._open_text(block, out)
            block.drop_waiting(out)
        self._close_tagged(out)
        if block is not None:
            block.close(event, out)

    def _is_kept(self, block: ClientBlock) -> bool:
        """Does a block that never had text hold anything else that the client must get?"""
        if self._had_text or not isinstance(block.start.part, Text):
            return False
        return bool(block.waits or block.start.extras or block.start.part.extras)

    def _end_thinking(self, event: BlockEnd, out: list[Event]) -> None:
        rest = self._reasoning_leaks.flush() if self._reasoning_leaks is not None else ""
        number = self.number(event.block, out) if rest else None
        if number is not None:
            out.append(TextDelta(number, rest))
        if self._reasoning_leaks is not None and self._reasoning_leaks.waiting:
            self._ended = event
        else:
            self._close_thinking(event, out)

    def _close_thinking(self, event: BlockEnd, out: list[Event]) -> None:
        if self._plan.same and self._ended is None:
            self.number(event.block, out)
        block = self._thinking.pop(event.block, None)
        if block is not None:
            block.close(event, out)

    def _emit(self, pieces: list[Piece], block: ClientBlock, out: list[Event]) -> None:
        """Emit what the filters found in the text of `block`."""
        for piece in pieces:
            match piece:
                case str():
                    out.append(TextDelta(self._open_text(block, out), piece))
                case Thinking(text):
                    block.interrupt(out)
                    self._emit_tagged(text, out)
                case LeakedCall():
                    self._close_tagged(out)
                    block.interrupt(out)
                    self._calls.recover(piece, out)
                case LoneMark(mark):
                    self._mark = mark
                case FrameTokens():
                    pass  # reported by a notice
                case End():
                    self.cut, self._stopped = piece, True
                    return

    def _emit_tagged(self, text: str, out: list[Event]) -> None:
        """Emit reasoning that arrived in tags, unless the server sent the same in its own field."""
        text = self._repeat.new_part(text) if self._repeat is not None else text
        if not text:
            return
        if self._tagged is None:
            self._tagged = next(self._numbers)
            out.append(BlockStart(self._tagged, Thinking()))
        out.append(TextDelta(self._tagged, text))

    def _open_text(self, block: ClientBlock, out: list[Event]) -> int:
        self._close_tagged(out)
        return block.open(self._numbers, out)

    def _close_tagged(self, out: list[Event]) -> None:
        number, self._tagged = self._tagged, None
        if number is not None:
            out.append(BlockEnd(number))
