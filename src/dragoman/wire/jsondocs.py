"""Read JSON bodies: one document, one document per line (NDJSON), or an array, element by element.

A body that is not streamed is one document. It becomes a frame when the body ends. An element of an array
becomes a frame as soon as it is complete: Gemini streams like that without `alt=sse`, and wraps errors so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..model.errors import FrameTooLarge
from .frames import DEFAULT_MAX_FRAME, Frame
from .sse import is_complete

_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\\]')


class _Bounded:
    """Holds the pieces of a document, up to a limit."""

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._pieces: list[bytes] = []
        self._size = 0

    def _hold(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > self._max_frame:
            raise FrameTooLarge(f"the upstream sent a document of more than {self._max_frame} bytes")

    def _take(self) -> bytes:
        document = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        return document


class DocumentReader(_Bounded):
    """One document, or one per line (Ollama). The first line decides: a pretty-printed one is incomplete."""

    _by_line: bool | None = None

    def feed(self, data: bytes) -> Iterator[Frame]:
        if self._by_line is False or b"\n" not in data:
            self._hold(data)
            return iter(())
        return self._lines(data)

    def close(self) -> Iterator[Frame]:
        return iter(self._document())

    def _lines(self, data: bytes) -> Iterator[Frame]:
        *ended, rest = data.split(b"\n")
        for index, line in enumerate(ended):
            self._hold(line)
            if self._by_line is None:
                self._by_line = is_complete(b"".join(self._pieces))
            if not self._by_line:
                self._hold(b"\n" + b"\n".join([*ended[index + 1 :], rest]))
                return
            yield from self._document()
        if rest:
            self._hold(rest)

    def _document(self) -> tuple[Frame, ...]:
        # Some servers append the end of an event stream to a plain body: `{…}\ndata: [DONE]` (9router#3492).
        document = self._take().strip().removeprefix(b"data:").strip()
        return (Frame(document),) if document else ()


class ArrayReader(_Bounded):
    """The elements of one JSON array, as soon as they are complete. Each byte is scanned once."""

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        super().__init__(max_frame)
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, data: bytes) -> Iterator[Frame]:
        start = position = 0
        if self._escaped:
            self._escaped, position = False, 1
        while match := (_INSIDE if self._in_string else _OUTSIDE).search(data, position):
            position = match.end()
            mark = match[0]
            if mark == b"\\":
                if position == len(data):
                    self._escaped = True
                position += 1
            elif mark == b'"':
                self._in_string = not self._in_string
            elif mark in b"{[":
                self._depth += 1
                if self._depth == 2:
                    start = match.start()
            else:
                self._depth -= 1
                if self._depth == 1:
                    self._hold(data[start:position])
                    yield Frame(self._take())
                    start = position
        if self._depth > 1:
            self._hold(data[start:])

    def close(self) -> Iterator[Frame]:
        """Discard an element that was cut off: it is not a frame."""
        self._take()
        return iter(())
