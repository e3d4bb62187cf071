"""Text in which markup is only shown: code fences, inline code, calls of tools nobody declared."""

from __future__ import annotations

import re
from typing import Protocol

_SPAN = re.compile(r"`+|\n")
_MARKUP = re.compile(r"[<\[]")
_MAY_CLOSE = {
    "`": re.compile(r"[ \t>]*`*[ \t]*\Z"),
    "~": re.compile(r"[ \t>]*~*[ \t]*\Z"),
}


class Passage(Protocol):
    """Text that is passed on unread until it ends."""

    def read(self, text: str, *, last: bool) -> tuple[int, Passage | None]:
        """How much of `text` is surely in the passage, and what goes on after it (None: no code).

        A position short of the end with the passage itself means: wait there for more.
        """
        ...


class InlineCode:
    """After a run of backticks, until a run of the same length.

    A single stray backtick (it`s) must not hide the rest of an answer, so one or two end with their
    line, unless that line shows something like markup. Three or more that are not closed on their
    line have opened a fence.
    """

    def __init__(self, run: int) -> None:
        self._run = run
        self._markup = False

    def read(self, text: str, *, last: bool) -> tuple[int, Passage | None]:
        end = len(text)
        for mark in _SPAN.finditer(text):
            if mark.end() == len(text) and mark.group() != "\n" and not last:
                end = mark.start()
                break
            if len(mark.group()) == self._run and mark.group() != "\n":
                return mark.end(), None
            if mark.group() == "\n" and not self._shows_markup(text, mark.start()):
                return mark.end(), Fence("`", self._run) if self._run > 2 else None
        self._markup = self._shows_markup(text, end)
        return end, self

    def _shows_markup(self, text: str, end: int) -> bool:
        return self._run < 3 and (self._markup or bool(_MARKUP.search(text, 0, end)))


class Fence:
    """A fenced block, from the line after its opening to its closing line."""

    def __init__(self, char: str, run: int, *, line_start: bool = True) -> None:
        self._close = re.compile(rf"[ \t>]*{char}{{{run},}}[ \t]*(?=[\n<]|\Z)")
        self._may_close = _MAY_CLOSE[char]
        self._line_start = line_start

    def read(self, text: str, *, last: bool) -> tuple[int, Passage | None]:
        pos = 0
        while True:
            if self._line_start:
                if not last and self._may_close.match(text, pos):
                    return pos, self  # also while the run of backticks may still grow
                if close := self._close.match(text, pos):
                    return close.end(), None
            newline = text.find("\n", pos)
            self._line_start = newline >= 0
            if newline < 0:
                return len(text), self
            pos = newline + 1


class Shown:
    """Markup that is none of ours, until one of its closing marks."""

    def __init__(self, marks: tuple[str, ...]) -> None:
        self._marks = re.compile("|".join(map(re.escape, marks)))
        self._prefixes = frozenset(mark[:size] for mark in marks for size in range(1, len(mark)))

    def read(self, text: str, *, last: bool) -> tuple[int, Passage | None]:
        if found := self._marks.search(text):
            return found.end(), None
        tail = text.rfind("<")
        if tail >= 0 and text[tail:] in self._prefixes and not last:
            return tail, self
        return len(text), self
