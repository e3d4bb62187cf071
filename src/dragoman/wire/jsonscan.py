"""Find the end of a JSON value while it arrives in fragments.

The scanner carries its state and reads each fragment once, in runs that regular expressions find. So the cost
is linear in the input, for any fragmentation.
"""

from __future__ import annotations

import re
from typing import Literal

ScanState = Literal["empty", "open", "complete", "broken"]

# Possessive quantifiers: a run never backtracks, so a string of a megabyte costs one pass.
WHITESPACE = re.compile(r"[ \t\n\r]*+")

# The part of a string body that strict JSON allows. It stops before the closing quote, before a raw control
# character, and before a backslash that does not start a legal and complete escape.
_LEGAL = r'[^"\\\x00-\x1f]*+'
LEGAL_RUN = re.compile(rf'{_LEGAL}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_LEGAL})*+')

# Any string body, legal or not. A backslash consumes the next character.
_ANY_RUN = re.compile(r'(?:[^"\\]++|\\.)*+', re.DOTALL)
_STRUCTURE_RUN = re.compile(r'[^"{}\[\]]*+')
_SCALAR_RUN = re.compile(r"[^ \t\n\r,:\"{}\[\]]*+")
_SCALAR_START = frozenset("-0123456789tfn")
_CLOSER = {"{": "}", "[": "]"}


def match_end(pattern: re.Pattern[str], text: str, pos: int) -> int:
    """The position after the match of `pattern` at `pos`; `pos` itself if there is none."""
    found = pattern.match(text, pos)
    return found.end() if found else pos


class StringScanner:
    """Finds the closing quote of a string. The opening quote is already consumed."""

    __slots__ = ("_escaped",)

    def __init__(self) -> None:
        self._escaped = False

    def scan(self, text: str, pos: int) -> int:
        """The position of the closing quote; -1 if `text` ends inside the string."""
        if self._escaped and pos < len(text):
            self._escaped = False
            pos += 1
        end = match_end(_ANY_RUN, text, pos)
        if end == len(text):
            return -1
        if text[end] == '"':
            return end
        self._escaped = True  # the run stops at a backslash only when it is the last character
        return -1


class JsonScanner:
    """Reads the first top-level value of a text that arrives in pieces.

    It follows strings and brackets, not the whole grammar. `complete`: the first value has closed. `broken`:
    the value can never close (a bracket closes that was not open, or no value begins here). A bare number or
    word is complete when another character ends it.
    """

    __slots__ = ("_in_scalar", "_stack", "_string", "end", "state")

    def __init__(self) -> None:
        self.state: ScanState = "empty"
        self.end = 0
        self._stack: list[str] = []
        self._string: StringScanner | None = None
        self._in_scalar = False

    def feed(self, text: str) -> None:
        """Scan the next fragment."""
        self.scan(text, 0)

    def scan(self, text: str, pos: int) -> int:
        """Like `feed`, from `pos` on. Returns the position after the last character that was needed."""
        start = pos
        while pos < len(text) and self.state in ("empty", "open"):
            if self._string is not None:
                pos = self._scan_string(self._string, text, pos)
            elif self._in_scalar:
                pos = self._scan_scalar(text, pos)
            elif self._stack:
                pos = self._scan_structure(text, pos)
            else:
                pos = self._scan_start(text, pos)
        self.end += pos - start
        return pos

    def closers(self) -> str | None:
        """The text that closes all open brackets; None inside a string."""
        if self._string is not None:
            return None
        return "".join(_CLOSER[opener] for opener in reversed(self._stack))

    def _scan_start(self, text: str, pos: int) -> int:
        pos = match_end(WHITESPACE, text, pos)
        if pos == len(text):
            return pos
        self.state = "open"
        char = text[pos]
        if char == '"':
            self._string = StringScanner()
        elif char in _CLOSER:
            self._stack.append(char)
        elif char in _SCALAR_START:
            self._in_scalar = True
        else:
            self.state = "broken"
            return pos
        return pos + 1

    def _scan_string(self, string: StringScanner, text: str, pos: int) -> int:
        quote = string.scan(text, pos)
        if quote < 0:
            return len(text)
        self._string = None
        if not self._stack:
            self.state = "complete"
        return quote + 1

    def _scan_scalar(self, text: str, pos: int) -> int:
        pos = match_end(_SCALAR_RUN, text, pos)
        if pos < len(text):
            self.state = "complete"
        return pos

    def _scan_structure(self, text: str, pos: int) -> int:
        pos = match_end(_STRUCTURE_RUN, text, pos)
        if pos == len(text):
            return pos
        char = text[pos]
        if char == '"':
            self._string = StringScanner()
        elif char in _CLOSER:
            self._stack.append(char)
        elif _CLOSER[self._stack.pop()] != char:
            self.state = "broken"
        elif not self._stack:
            self.state = "complete"
        return pos + 1
