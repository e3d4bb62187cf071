"""Where the body of a block may end: found while it arrives, each character looked at once."""

from __future__ import annotations

import re
from typing import Protocol

from .json_text import Balance


class Ends(Protocol):
    """Finds where a body may end: offsets from the body's start, (end of body, end of markup)."""

    def feed(self, text: str) -> None: ...
    def next(self) -> tuple[int, int] | None: ...
    def weakest(self) -> tuple[int, int] | None: ...


def _any_of(literals: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(literals, key=len, reverse=True))) or r"\Z.")


class LiteralEnds:
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


class BalancedEnds:
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


class EmptyEnds:
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
