"""Finds where the body of a block may end while it arrives. Reads each character once."""

from __future__ import annotations

import re
from typing import Protocol

from .json_calls import BracketScanner


class EndFinder(Protocol):
    """Finds the ends of a body, as offsets from its start: (end of the body, end of the markup)."""

    def feed(self, text: str) -> None: ...
    def next(self) -> tuple[int, int] | None: ...
    def weakest(self) -> tuple[int, int] | None: ...


def _any_of(literals: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, sorted(literals, key=len, reverse=True))) or r"\Z.")


class LiteralEndFinder:
    """For a body that ends before one of several literals."""

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
        """The first end that the reader refused: the best one if no more text arrives."""
        return self._first

    def _drop(self, count: int) -> None:
        self._window = self._window[count:]
        self._base += count


class BracketEndFinder:
    """For a body that is one bracketed value. A broken value ends before the first closing mark.

    A closing mark inside a string is content, unless the string never ends.
    """

    def __init__(self, closers: tuple[tuple[str, ...], ...]) -> None:
        marks = tuple(mark for group in closers for mark in group if mark[0] in "<`")
        self._marks = _any_of(marks)
        self._overlap = max(map(len, marks), default=1) - 1
        self._balance = BracketScanner()
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
                self._balance = BracketScanner()
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


class EmptyEndFinder:
    """For a format without a body: the call has no arguments."""

    def __init__(self) -> None:
        self._given = False

    def feed(self, text: str) -> None:
        pass

    def next(self) -> tuple[int, int] | None:
        given, self._given = self._given, True
        return None if given else (0, 0)

    def weakest(self) -> tuple[int, int] | None:
        return None
