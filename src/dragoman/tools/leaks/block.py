"""One block of markup while it arrives: from its opening mark until it is known to be a call or text.

The result depends only on the characters, never on how they were cut: every decision looks at a prefix that
is the same for every chunking. Each character is read once. The text is joined only at a possible end.
"""

from __future__ import annotations

import re

import msgspec

from ...wire.jsonscan import match_end
from .body_ends import BracketEndFinder, EmptyEndFinder, EndFinder, LiteralEndFinder
from .catalog import Catalog
from .end_tokens import END_PREFIXES, NOTHING, before_end_tokens
from .heads import LeakFormat, Opening, match_head
from .mention import is_mention
from .readers import ReadCall

# Larger than any call that a model writes in one answer. The bound limits how much text is held.
MAX_BLOCK = 256 * 1024
_MAX_HEAD = 2048
_MAX_GAP = 1024
_MAX_CANDIDATES = 64
_MORE = re.compile(rf"\s{{0,{_MAX_GAP}}}[;,]?\s{{0,{_MAX_GAP}}}")
_BLANK = re.compile(rf"\s{{0,{_MAX_GAP}}}")


class BlockOutcome(msgspec.Struct, frozen=True):
    """The result for a block: its first `length` characters are `calls`, or text if there are none.

    `frame`: they are tokens around a message of text. `skip`: the text that follows, up to one of these
    literals, belongs to the markup of an undeclared tool. `overflow`: the block is longer than allowed.
    """

    length: int
    markup: str = ""
    calls: tuple[ReadCall, ...] = ()
    frame: bool = False
    skip: tuple[str, ...] = ()
    overflow: bool = False


class MarkupBlock:
    """The text from an opening mark on. Call `push` until there is an outcome.

    `before`: the line before the mark, if the mark is a tag of plain letters inside a sentence, or stands
    directly after a quotation mark. Then the text after the block, on the same line, may show that the
    sentence only mentions the call. `inside`: the mark is inside a message of text whose beginning was found.
    """

    __slots__ = (
        "_before", "_body", "_calls", "_candidates", "_closers", "_end", "_ends", "_formats", "_inside",
        "_mark", "_name", "_open", "_parts", "_tools", "size",
    )  # fmt: skip

    def __init__(
        self,
        formats: tuple[LeakFormat, ...],
        mark: str,
        tools: Catalog,
        *,
        before: str = "",
        inside: bool = False,
    ) -> None:
        self._formats = formats
        self._inside = inside
        self._mark = mark
        self._tools = tools
        self._before = before
        self._parts: list[str] = []
        self.size = 0
        self._open: LeakFormat | None = None
        self._name = ""
        self._body = 0
        self._ends: EndFinder = EmptyEndFinder()
        self._closers: tuple[tuple[str, ...], ...] = ()
        self._candidates = 0
        self._calls: tuple[ReadCall, ...] = ()
        self._end = 0  # after the last body that was read as calls

    @property
    def text(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def push(self, chunk: str, *, last: bool = False) -> BlockOutcome | None:
        """Take more text. Return the outcome as soon as it is certain. `last`: no more text will arrive."""
        self._parts.append(chunk)
        self.size += len(chunk)
        if self._open is None:
            outcome = self._match(last)
            if self._open is None:
                return outcome
        else:
            self._ends.feed(chunk)
        return self._decide(last)

    def _match(self, last: bool) -> BlockOutcome | None:
        """Find the first format, in the order of the table, whose head matches."""
        text = self.text[:_MAX_HEAD]
        for candidate in self._formats:
            for head in candidate.heads:
                if head.outside and self._inside:
                    continue
                opening = match_head(head, text, self._tools)
                if opening is None and not last and self.size < _MAX_HEAD:
                    return None
                if isinstance(opening, Opening):
                    return self._open_as(candidate, opening)
        return BlockOutcome(len(self._mark))

    def _open_as(self, candidate: LeakFormat, opening: Opening) -> BlockOutcome | None:
        if candidate.read is None:
            return BlockOutcome(opening.body, frame=True)
        declared = self._tools.resolve(opening.name) if opening.name else ""
        if declared is None:
            closers = [mark for group in candidate.closers for mark in group if mark[0] == "<"]
            return BlockOutcome(len(self._mark), skip=candidate.ends or tuple(closers))
        self._open, self._body = candidate, opening.body
        # Bare JSON has the tool names in its body. The head matched only the first of them.
        self._name = "" if candidate.whole else declared
        ends = _named(candidate.ends, opening.name)
        self._closers = tuple(_named(group, opening.name) for group in candidate.closers)
        if ends:
            self._ends = LiteralEndFinder(ends)
        elif not candidate.empty and self.text[opening.body] in "{[":
            self._ends = BracketEndFinder(self._closers)
        self._ends.feed(self.text[opening.body :])
        return None

    def _decide(self, last: bool) -> BlockOutcome | None:
        assert self._open is not None
        while True:
            if self._calls:
                outcome = self._close(last)
                if outcome or self._calls:
                    return outcome
            found = self._ends.next()
            if found is None:
                return self._unended(last)
            if self._body + found[1] > MAX_BLOCK or self._candidates > _MAX_CANDIDATES:
                return BlockOutcome(self.size, overflow=True)
            self._candidates += 1
            if not self._read(found, last=False) and not self._open.ends:
                return BlockOutcome(self._body + found[1])

    def _unended(self, last: bool) -> BlockOutcome | None:
        if self.size > MAX_BLOCK:
            return BlockOutcome(self.size, overflow=True)
        if not last:
            return None
        weakest = self._ends.weakest() or self._open_end()
        if weakest is None or not self._read(weakest, last=True):
            return BlockOutcome(self.size)  # the block was cut, so it is never a call
        return self._close(last)

    def _open_end(self) -> tuple[int, int] | None:
        """The end of the answer, for a format whose body shows that it is complete."""
        assert self._open is not None
        if not self._open.bounded:
            return None
        end = before_end_tokens(self.text) - self._body
        return (end, end) if end > 0 else None

    def _read(self, found: tuple[int, int], *, last: bool) -> bool:
        assert self._open is not None
        assert self._open.read is not None
        body = self.text[self._body : self._body + found[0]]
        calls = self._open.read(body, self._name, self._tools, last)
        if calls:
            self._calls, self._end = tuple(calls), self._body + found[1]
        return bool(calls)

    def _close(self, last: bool) -> BlockOutcome | None:
        """The body is read: add its closing marks, and check whether the block is only mentioned."""
        assert self._open is not None
        text = self.text
        if not (self._open.ends or self._name):
            # Several values in a row are one body: `{…}; {…}` (Llama), one per line (Hermes).
            gap = match_end(_MORE, text, self._end)
            if gap == len(text) and gap - self._end < _MAX_GAP and not last:
                return None
            if text[gap : gap + 1] == "{":
                self._calls = ()
                return None
        end = self._closers_end(text, last)
        if end is None:
            return None
        if self._open.whole:
            return self._if_whole(text, end, last)
        return self._if_no_mention(text, end, last) if self._before else self._outcome(end)

    def _closers_end(self, text: str, last: bool) -> int | None:
        """The position after the closing marks. None while more of them may arrive."""
        end, groups = self._end, self._closers
        while groups:
            at = match_end(_BLANK, text, end)
            for index, group in enumerate(groups):
                if found := next((mark for mark in group if text.startswith(mark, at)), None):
                    end, groups = at + len(found), groups[index + 1 :]
                    break
            else:
                if at - end >= _MAX_GAP or not _may_begin(text[at : at + 80], groups):
                    return end
                return len(text) if last else None  # cut inside a closing mark
        return end

    def _if_whole(self, text: str, end: int, last: bool) -> BlockOutcome | None:
        """The block is a call only if no text follows it in the answer."""
        at = match_end(NOTHING, text, end)
        if at - end > _MAX_GAP:
            return self._outcome(end)
        if not last and (at == len(text) or text[at:] in END_PREFIXES):
            return None
        return self._outcome(end) if at == len(text) else BlockOutcome(end)

    def _if_no_mention(self, text: str, end: int, last: bool) -> BlockOutcome | None:
        """The block is a call unless the sentence around it goes on."""
        at = match_end(_BLANK, text, end)
        if "\n" in text[end:at] or at - end >= _MAX_GAP:
            return self._outcome(end)
        if at == len(text):
            return self._outcome(end) if last else None
        return BlockOutcome(end) if is_mention(self._before, text[end:at], text[at]) else self._outcome(end)

    def _outcome(self, end: int) -> BlockOutcome:
        assert self._open is not None
        return BlockOutcome(end, self._open.name, self._calls)


def _may_begin(rest: str, groups: tuple[tuple[str, ...], ...]) -> bool:
    return any(mark.startswith(rest) for group in groups for mark in group)


def _named(literals: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(literal.replace("{name}", name) for literal in literals)
