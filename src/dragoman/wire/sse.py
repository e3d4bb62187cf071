"""Server-sent events, read from bytes that may be cut anywhere.

What real streams do and this survives: LF, CR and CRLF line ends, a CR cut from its LF; a byte-order mark;
comments; `data:` without its space; data over several lines; a last event without its blank line; events
with no blank line between them. Only LF and CR end a line: U+2028 and its like inside data do not.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..errors import FrameTooLarge
from .frames import DEFAULT_MAX_FRAME, Frame

_BOM = b"\xef\xbb\xbf"
COMMENT = b": keepalive\n\n"
"""Says nothing to whoever reads events as their specification says."""


class SSEReader:
    """`feed` bytes, get the frames they complete; `close` gives what a missing blank line left behind.

    Frames are given one by one, so that an error comes after everything that was whole before it.
    """

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._line: list[bytes] = []  # pieces of a line that has not ended: joined once, when it does
        self._data: list[bytes] = []  # data lines of an event that has not ended
        self._event = ""
        self._held = 0  # bytes in `_line`
        self._size = 0  # bytes of the lines in `_data`
        self._after_cr = False
        self._at_start = True
        self._lines: list[bytes] = []  # what `feed` is going through, and how far it has come
        self._next = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        if b"\r" in data or self._after_cr:
            data = self._unify_line_ends(data)
        if b"\n" not in data:
            self._hold(data)
            return
        lines = data.split(b"\n")
        if self._line:
            self._line.append(lines[0])
            lines[0] = self._take_line()
        rest = lines.pop()
        self._lines, self._next = lines, 0
        while self._next < len(lines):
            line = lines[self._next]
            self._next += 1
            self._check_size(len(line))
            if self._at_start:
                line = self._strip_bom(line)
            if line.startswith(b"data: "):
                frame = self._add(line[6:])
            elif not line:
                frame = self._dispatch()
            else:
                frame = self._field(line)
            if frame is not None:
                yield frame
        if rest:
            self._hold(rest)

    @property
    def more(self) -> bool:
        """Is there more to read of what was fed last?"""
        return self._next < len(self._lines)

    def take(self, event: bytes, head: bytes, tail: bytes) -> list[bytes]:
        """Read on past the events that are alike: of this name, their data between `head` and `tail`.

        Gives what stands between, event by event, as far as they follow one another without a gap.
        """
        found: list[bytes] = []
        if self._data or self._event:
            return found
        lines, step = self._lines, 3 if event else 2
        start, stop, least = len(head), -len(tail), len(head) + len(tail)
        for at in range(self._next, len(lines) - step + 1, step):
            line = lines[at + step - 2]
            if lines[at + step - 1] or not line.startswith(head) or not line.endswith(tail):
                break
            if (event and lines[at] != event) or not least <= len(line) <= self._max_frame:
                break
            found.append(line[start:stop])
        self._next += step * len(found)
        return found

    def close(self) -> Iterator[Frame]:
        """The last event, if it is whole: half an event is not given out as one."""
        if self._line:
            line = self._take_line()
            frame = self._field(self._strip_bom(line) if self._at_start else line)
            if frame is not None:
                yield frame
        if self._data and is_whole(b"\n".join(self._data)):
            frame = self._dispatch()
            if frame is not None:
                yield frame

    def _unify_line_ends(self, data: bytes) -> bytes:
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
        if data:
            self._after_cr = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _strip_bom(self, line: bytes) -> bytes:
        self._at_start = False
        return line.removeprefix(_BOM)

    def _hold(self, piece: bytes) -> None:
        self._line.append(piece)
        self._held += len(piece)
        self._check_size(self._held)

    def _take_line(self) -> bytes:
        line = b"".join(self._line)
        self._line.clear()
        self._held = 0
        return line

    def _check_size(self, line: int) -> None:
        if self._size + line > self._max_frame:
            raise FrameTooLarge(f"the upstream sent an event of more than {self._max_frame} bytes")

    def _field(self, line: bytes) -> Frame | None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            return self._add(value)
        if name == b"event":
            before = self._unclosed()
            self._event = value.decode("utf-8", "replace")
            return before
        # Comments have an empty name; `id`, `retry` and unknown fields mean nothing to a translation.
        return None

    def _add(self, value: bytes) -> Frame | None:
        before = self._unclosed()
        self._data.append(value)
        self._size += len(b"data: \n") + len(value)
        return before

    def _unclosed(self) -> Frame | None:
        """The event before this line, where a server forgot the blank line between them.

        By the rules this would be one event of two lines, but the first is a whole JSON text: reading
        them one by one is the useful answer.
        """
        if len(self._data) == 1 and is_whole(self._data[0]):
            return self._dispatch()
        return None

    def _dispatch(self) -> Frame | None:
        frame = None
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            # Everything the protocols say is JSON, or `[DONE]`: `data: : keepalive` is noise.
            data = data.lstrip(b" \t")
            if data[:1] in (b"{", b"["):
                frame = Frame(data, self._event)
            self._data.clear()
        self._event = ""
        self._size = 0
        return frame


def is_whole(data: bytes) -> bool:
    """Is this a complete payload: a JSON text, or Chat's `[DONE]`?"""
    if data.strip() == b"[DONE]":
        return True
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
