"""Text in which markup is only an example: code fences, inline code, calls of undeclared tools."""

from __future__ import annotations

import re
from typing import Protocol

from ...wire.jsonscan import match_end

_SPAN = re.compile(r"`+|\n")
_MARKUP = re.compile(r"[<\[]")
_INDENT = re.compile(r"[ \t>]*")
_BLANK = re.compile(r"[ \t]*")
_RUNS = {"`": re.compile("`*"), "~": re.compile("~*")}


class OpaqueSpan(Protocol):
    """Text that passes without a search for calls until it ends."""

    def read(self, text: str, *, last: bool) -> tuple[int, OpaqueSpan | None]:
        """Return how much of `text` belongs to the span, and the span that follows (None: ordinary text).

        If the span itself follows before the end of `text`, it waits for more text there.
        """
        ...


class CodeMarks:
    """The backticks or tildes that open code, while more of them may arrive."""

    def __init__(self, char: str) -> None:
        self._char = char
        self._length = 0

    def read(self, text: str, *, last: bool) -> tuple[int, OpaqueSpan | None]:
        end = _run_end(text, 0, self._char)
        self._length += end
        return end, self if end == len(text) else self._opened()

    def _opened(self) -> OpaqueSpan:
        if self._char == "~":
            return Fence("~", self._length, line_start=False)
        return InlineCode(self._length)


class InlineCode:
    """Inline code: after a run of backticks, until a run of the same length.

    A stray backtick (it`s) must not hide the rest of an answer. So code after one or two backticks ends
    with the line, unless the line contains markup. Three or more backticks that are not closed on their
    line open a fence.
    """

    def __init__(self, run: int) -> None:
        self._run = run
        self._markup = False
        self._ticks = 0
        """The length of the run of backticks at the end of the text so far."""

    def read(self, text: str, *, last: bool) -> tuple[int, OpaqueSpan | None]:
        pos = 0
        if self._ticks:
            pos = _run_end(text, 0, "`")
            self._ticks += pos
            if pos == len(text):
                return pos, self
            if self._ticks == self._run:
                return pos, None
            self._ticks = 0
        for mark in _SPAN.finditer(text, pos):
            length = mark.end() - mark.start()
            if mark.group() == "\n":
                if not self._shows_markup(text, mark.start()):
                    return mark.end(), Fence("`", self._run) if self._run > 2 else None
            elif mark.end() == len(text):
                self._ticks = length
            elif length == self._run:
                return mark.end(), None
        self._markup = self._shows_markup(text, len(text))
        return len(text), self

    def _shows_markup(self, text: str, end: int) -> bool:
        return self._run < 3 and (self._markup or bool(_MARKUP.search(text, 0, end)))


class Fence:
    """A fenced block, from the line after its opening to its closing line.

    State is kept across fragments, so that no line is held or read twice.
    """

    def __init__(self, char: str, run: int, *, line_start: bool = True) -> None:
        self._char = char
        self._run = run
        self._may_close = line_start
        """Whether the line so far may be the closing line."""
        self._length = 0
        """The length of the run of marks in that line."""
        self._run_ended = False

    def read(self, text: str, *, last: bool) -> tuple[int, OpaqueSpan | None]:
        pos = 0
        while True:
            if self._may_close:
                pos = self._after_run(text, pos)
                if pos == len(text):
                    return pos, self
                if text[pos] in "\n<" and self._length >= self._run:
                    return pos, None
            newline = text.find("\n", pos)
            self._may_close, self._length, self._run_ended = newline >= 0, 0, False
            if newline < 0:
                return len(text), self
            pos = newline + 1

    def _after_run(self, text: str, pos: int) -> int:
        """The position after the parts of a closing line: an indent, the marks, and blanks."""
        if not self._length:
            pos = match_end(_INDENT, text, pos)
        if not self._run_ended:
            start, pos = pos, _run_end(text, pos, self._char)
            self._length += pos - start
        if self._length:
            start, pos = pos, match_end(_BLANK, text, pos)
            self._run_ended = self._run_ended or pos > start
        return pos


class UndeclaredMarkup:
    """Markup with a call of an undeclared tool, until one of its closing marks."""

    def __init__(self, marks: tuple[str, ...]) -> None:
        self._marks = re.compile("|".join(map(re.escape, marks)))
        self._prefixes = frozenset(mark[:size] for mark in marks for size in range(1, len(mark)))

    def read(self, text: str, *, last: bool) -> tuple[int, OpaqueSpan | None]:
        if found := self._marks.search(text):
            return found.end(), None
        tail = text.rfind("<")
        if tail >= 0 and text[tail:] in self._prefixes and not last:
            return tail, self
        return len(text), self


def _run_end(text: str, pos: int, char: str) -> int:
    return match_end(_RUNS[char], text, pos)
