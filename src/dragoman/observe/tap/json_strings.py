"""Find the strings in the JSON of a stream, with their position, their path and their indexes.

This works for every framing (server-sent events, lines, an array, one body) and every protocol. A string
continues the string at the same path in an earlier document, like `choices.delta.content`. Indexes next to it
(`index`, `output_index`, …) distinguish blocks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

_STRING = rb'"([^"\\\r\n]*(?:\\[^\r\n][^"\\\r\n]*)*)"'
_TOKENS = re.compile(
    # A string, or a member: its key, and its value if that is a string, a bracket or a number.
    _STRING + rb"(\s*:\s*(?:" + _STRING + rb"|([{\[])|(\d+))?)?"
    rb"|([{}\[\]])"
    rb"|(?:\A|\n)\r?\n"  # a blank line: the end of an event
)
_OPENING = (b"{", b"[")
_ESCAPES = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.")


class StringAt(NamedTuple):
    """A string of the stream."""

    start: int
    """Its offset in the stream, after the quote."""
    raw: bytes
    """Its bytes between the quotes."""
    path: bytes
    indexes: tuple[bytes, ...]
    """The indexes of the objects around it."""


class _Container:
    """An open object or list."""

    __slots__ = ("indexes", "parent", "path")

    def __init__(self, parent: _Container | None, key: bytes) -> None:
        self.parent = parent
        self.path: bytes = key if parent is None else parent.path + b"." + key
        self.indexes: tuple[bytes, ...] = ()

    def all_indexes(self) -> tuple[bytes, ...]:
        return self.indexes if self.parent is None else self.parent.all_indexes() + self.indexes


class Strings:
    """Reads a stream. `feed` returns the strings of finished documents, `close` returns the rest."""

    def __init__(self) -> None:
        self._taken = 0
        """The number of bytes that were parsed. A line is parsed when it is complete."""
        self._line: list[bytes] = []
        self._here: _Container | None = None
        self._found: list[tuple[int, bytes, bytes, _Container]] = []
        """The strings of the open document."""

    @property
    def given(self) -> int:
        """All strings before this offset have been returned."""
        return self._found[0][0] if self._found else self._taken

    def feed(self, data: bytes) -> Iterator[StringAt]:
        end = data.rfind(b"\n") + 1
        if not end:
            self._line.append(data)
            return
        lines = b"".join([*self._line, data[:end]])
        self._line = [data[end:]]
        yield from self._read(lines)

    def close(self) -> Iterator[StringAt]:
        rest, self._line = b"".join(self._line), []
        yield from self._read(rest)
        yield from self._document()

    def _read(self, data: bytes) -> Iterator[StringAt]:
        for token in _TOKENS.finditer(data):
            text, member, bracket = token.group(1, 2, 6)
            here = self._here
            if here is None:  # between documents
                if bracket == b"{":
                    self._here = _Container(None, b"")
            elif member is not None:
                self._member(token, here)
            elif text is not None:
                self._add(token.start(1), text, here.path, here)
            elif bracket in _OPENING:
                self._here = _Container(here, b"")
            else:
                self._here = None if bracket is None else here.parent
                if self._here is None:
                    yield from self._document()
        self._taken += len(data)

    def _member(self, token: re.Match[bytes], here: _Container) -> None:
        key, value, opened, number = token.group(1, 3, 4, 5)
        if value is not None:
            self._add(token.start(3), value, here.path + b"." + key, here)
        elif opened is not None:
            self._here = _Container(here, key)
        elif number is not None and key.endswith(b"index"):
            here.indexes = (*here.indexes, key + number)

    def _add(self, start: int, raw: bytes, path: bytes, here: _Container) -> None:
        if raw:
            self._found.append((self._taken + start, raw, path, here))

    def _document(self) -> Iterator[StringAt]:
        """The strings of the finished document. They wait for its end: an index may come after a string."""
        found, self._found = self._found, []
        self._here = None
        return (StringAt(start, raw, path, inside.all_indexes()) for start, raw, path, inside in found)


def text_of(raw: bytes) -> bytes:
    r"""The decoded text of a JSON string.

    >>> text_of(rb"\u0073k\/1")
    b'sk/1'
    """
    if b"\\" not in raw:
        return raw
    try:
        return json.loads(b'"' + raw + b'"').encode("utf-8", "surrogatepass")
    except (ValueError, UnicodeDecodeError):
        return raw  # not JSON: search the bytes themselves


def within(raw: bytes, start: int, end: int) -> tuple[int, int]:
    r"""The range in the raw string for the range `start` to `end` of its decoded text.

    >>> within(rb"\u0073k", 0, 1), within(rb"\u0073k", 1, 2)
    ((0, 6), (6, 7))
    """
    if len(text_of(raw)) == len(raw):
        return start, end
    # Each escape shifts the bytes after it. A range never ends inside an escape.
    first, last, moved = start, end, 0
    for escape in _ESCAPES.finditer(raw):
        size = escape.end() - escape.start()
        decoded = len(text_of(escape[0]))
        at = escape.start() - moved
        moved += size - decoded
        if at + decoded <= start:
            first = start + moved
        elif at <= start:
            first = escape.start()
        if at + decoded <= end:
            last = end + moved
        elif at < end:
            last = escape.end()
    return first, last
