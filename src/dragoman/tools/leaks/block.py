"""One block of markup while it arrives: from its opening mark until it is a call, or text.

The block is decided by what it says, never by how it was cut: every decision looks at a prefix of
the text that is the same for every chunking. What arrives is looked at once; the text is put
together only where an end may have been found.
"""

from __future__ import annotations

import re
from typing import Protocol

import msgspec

from .ends import END_PREFIXES, NOTHING
from .heads import Format, Opening, match_head
from .json_text import Balance
from .readers import Call
from .values import Catalog

# What a model can write in one answer fits; what does not fit is no call that anybody waits for.
MAX_BLOCK = 256 * 1024
_MAX_HEAD = 2048
_MAX_GAP = 1024
_MAX_CANDIDATES = 64
_MORE = re.compile(rf"\s{{0,{_MAX_GAP}}}[;,]?\s{{0,{_MAX_GAP}}}")
_BLANK = re.compile(rf"\s{{0,{_MAX_GAP}}}")


class Outcome(msgspec.Struct, frozen=True):
    """What a block turned out to be: its first `length` characters, as calls or (none) as text.

    `skip`: the text that follows belongs to markup of an undeclared tool up to one of these.
    `overflow`: it outgrew its bound.
    """

    length: int
    markup: str = ""
    calls: tuple[Call, ...] = ()
    skip: tuple[str, ...] = ()
    overflow: bool = False


class _Ends(Protocol):
    """Finds where a body may end: offsets from the body's start, (end of body, end of markup)."""

    def feed(self, text: str) -> None: ...
    def next(self) -> tuple[int, int] | None: ...
    def weakest(self) -> tuple[int, int] | None: ...


def _any_of(literals: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(literals, key=len, reverse=True))) or r"\Z.")


class _LiteralEnds:
    """A body that ends before one of some literals."""

    def __init__(self, literals: tuple[str, ...]) -> None:
        self._pattern = _any_of(literals)
        self._overlap = max(map(len, literals)) - 1
        self._window = ""
        self._base = 0
        self._first: tuple[int, int] | None = None

    def feed(self, text: str) -> None:
        self._window += text

    def next(self) -> tuple[int, int] | None:
        found = self._pattern.search(self._window)
        if found is None:
            self._drop(max(0, len(self._window) - self._overlap))
            return None
        end = (self._base + found.start(), self._base + found.end())
        self._first = self._first or end
        self._drop(found.end())
        return end

    def weakest(self) -> tuple[int, int] | None:
        """The first end that was refused: the best there is once no more text will come."""
        return self._first

    def _drop(self, count: int) -> None:
        self._window = self._window[count:]
        self._base += count


class _BalancedEnds:
    """A body that is one bracketed value, or what stands before a closing mark if it is broken.

    A closing mark inside a string is content, unless the quotes never come right.
    """

    def __init__(self, closers: tuple[tuple[str, ...], ...]) -> None:
        marks = tuple(mark for group in closers for mark in group if mark[0] in "<`")
        self._marks = _any_of(marks)
        self._overlap = max(map(len, marks), default=1) - 1
        self._balance = Balance()
        self._window = ""
        self._base = 0
        self._scanned = 0  # in the window
        self._first: tuple[int, int] | None = None

    def feed(self, text: str) -> None:
        self._window += text

    def next(self) -> tuple[int, int] | None:
        while True:
            mark = self._marks.search(self._window)
            stop = mark.start() if mark else len(self._window)
            end = self._balance.scan(self._window, self._scanned, stop)
            if end >= 0:
                self._balance = Balance()
                return self._found(end, end)
            self._scanned = max(self._scanned, stop)
            if mark is None:
                self._drop(max(0, len(self._window) - self._overlap))
                return None
            if not self._balance.in_string:
                return self._found(mark.start(), mark.start())
            at = self._base + mark.start()
            self._first = self._first or (at, at)
            self._drop(mark.end())

    def weakest(self) -> tuple[int, int] | None:
        return self._first

    def _found(self, body_end: int, end: int) -> tuple[int, int]:
        found = (self._base + body_end, self._base + end)
        self._scanned = max(self._scanned, end)
        self._drop(end)
        return found

    def _drop(self, count: int) -> None:
        self._window = self._window[count:]
        self._base += count
        self._scanned = max(0, self._scanned - count)


class _EmptyEnds:
    """A body that is not there: the call has no arguments at all."""

    def __init__(self) -> None:
        self._given = False

    def feed(self, text: str) -> None:
        pass

    def next(self) -> tuple[int, int] | None:
        given, self._given = self._given, True
        return None if given else (0, 0)

    def weakest(self) -> tuple[int, int] | None:
        return None


class Block:
    """Text from an opening mark on. `push` it until there is an outcome.

    `inline`: the mark stands in the middle of a line of prose. Then words after the block, on the
    same line, make it a mention.
    """

    __slots__ = (
        "_body", "_calls", "_candidates", "_end", "_ends", "_formats", "_inline", "_mark",
        "_name", "_open", "_parts", "_tools", "size",
    )  # fmt: skip

    def __init__(self, formats: tuple[Format, ...], mark: str, tools: Catalog, *, inline: bool) -> None:
        self._formats = formats
        self._mark = mark
        self._tools = tools
        self._inline = inline
        self._parts: list[str] = []
        self.size = 0
        self._open: Format | None = None
        self._name = ""
        self._body = 0
        self._ends: _Ends = _EmptyEnds()
        self._candidates = 0
        self._calls: tuple[Call, ...] = ()
        self._end = 0  # past the last body that was read as calls

    @property
    def text(self) -> str:
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def push(self, chunk: str, *, last: bool = False) -> Outcome | None:
        """More text, or none and `last`; the outcome as soon as it cannot change any more."""
        self._parts.append(chunk)
        self.size += len(chunk)
        if self._open is None:
            outcome = self._match(last)
            if self._open is None:
                return outcome
        else:
            self._ends.feed(chunk)
        return self._decide(last)

    def _match(self, last: bool) -> Outcome | None:
        """The first format, in the table's order, whose head stands here."""
        text = self.text[:_MAX_HEAD]
        for candidate in self._formats:
            for head in candidate.heads:
                opening = match_head(head, text)
                if opening is None and not last and self.size < _MAX_HEAD:
                    return None
                if isinstance(opening, Opening):
                    return self._opened(candidate, opening)
        return Outcome(len(self._mark))

    def _opened(self, candidate: Format, opening: Opening) -> Outcome | None:
        declared = self._tools.resolve(opening.name) if opening.name else ""
        if declared is None:
            closers = [mark for group in candidate.closers for mark in group if mark[0] == "<"]
            return Outcome(len(self._mark), skip=candidate.ends or tuple(closers))
        self._open, self._body, self._name = candidate, opening.body, declared
        if candidate.ends:
            self._ends = _LiteralEnds(candidate.ends)
        elif self.text[opening.body] in "{[":
            self._ends = _BalancedEnds(candidate.closers)
        self._ends.feed(self.text[opening.body :])
        return None

    def _decide(self, last: bool) -> Outcome | None:
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
                return Outcome(self.size, overflow=True)
            self._candidates += 1
            if not self._read(found, last=False) and not self._open.ends:
                return Outcome(self._body + found[1])

    def _unended(self, last: bool) -> Outcome | None:
        if self.size > MAX_BLOCK:
            return Outcome(self.size, overflow=True)
        if not last:
            return None
        weakest = self._ends.weakest()
        if weakest is None or not self._read(weakest, last=True):
            return Outcome(self.size)  # cut off: never a call
        return self._close(last)

    def _read(self, found: tuple[int, int], *, last: bool) -> bool:
        assert self._open is not None
        body = self.text[self._body : self._body + found[0]]
        calls = self._open.read(body, self._name, self._tools, last)
        if calls:
            self._calls, self._end = tuple(calls), self._body + found[1]
        return bool(calls)

    def _close(self, last: bool) -> Outcome | None:
        """The body is read: takes in what belongs to it, and looks whether it is a mention."""
        assert self._open is not None
        text = self.text
        if not (self._open.ends or self._name):
            # Several values in a row are one body: `{…}; {…}` (Llama), one per line (Hermes).
            gap = _pos(_MORE, text, self._end)
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
        return self._if_no_mention(text, end, last) if self._inline else self._outcome(end)

    def _closers_end(self, text: str, last: bool) -> int | None:
        """Past the closing marks that follow; None while more of them may come."""
        assert self._open is not None
        end, groups = self._end, self._open.closers
        while groups:
            at = _pos(_BLANK, text, end)
            for index, group in enumerate(groups):
                if found := next((mark for mark in group if text.startswith(mark, at)), None):
                    end, groups = at + len(found), groups[index + 1 :]
                    break
            else:
                if at - end >= _MAX_GAP or not _begins(text[at : at + 80], groups):
                    return end
                return len(text) if last else None  # cut off inside a closing mark
        return end

    def _if_whole(self, text: str, end: int, last: bool) -> Outcome | None:
        """A call only if it is all that the answer says."""
        at = _pos(NOTHING, text, end)
        if at - end > _MAX_GAP:
            return self._outcome(end)
        if not last and (at == len(text) or text[at:] in END_PREFIXES):
            return None
        return self._outcome(end) if at == len(text) else Outcome(end)

    def _if_no_mention(self, text: str, end: int, last: bool) -> Outcome | None:
        """In the middle of a line, words after it on that line make it a mention."""
        at = _pos(_BLANK, text, end)
        if "\n" in text[end:at] or at - end >= _MAX_GAP:
            return self._outcome(end)
        if at == len(text):
            return self._outcome(end) if last else None
        return self._outcome(end) if text[at] in "<[" else Outcome(end)

    def _outcome(self, end: int) -> Outcome:
        assert self._open is not None
        return Outcome(end, self._open.name, self._calls)


def _pos(pattern: re.Pattern[str], text: str, pos: int) -> int:
    found = pattern.match(text, pos)
    return found.end() if found else pos


def _begins(rest: str, groups: tuple[tuple[str, ...], ...]) -> bool:
    return any(mark.startswith(rest) for group in groups for mark in group)
