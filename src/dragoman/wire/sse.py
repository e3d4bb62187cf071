"""Read server-sent events from bytes that may be cut anywhere.

The specification is https://html.spec.whatwg.org/multipage/server-sent-events.html. Real streams contain, and
this reader accepts: LF, CR and CRLF line ends (Gemini sends CRLF), also cut between CR and LF; a byte-order
mark; comments (`: OPENROUTER PROCESSING`); `data:` without its space; data over several lines; a last event
without its blank line; events without a blank line between them. Only LF and CR end a line: U+2028 inside
data does not. `str.splitlines` would cut there.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..model.errors import FrameTooLarge
from .frames import DEFAULT_MAX_FRAME, Frame

# Integers, as in `frames.py`: `10 in data` is faster than `b"\n" in data`.
_LF, _CR = b"\n\r"
_BOM = b"\xef\xbb\xbf"
_JSON = frozenset({b"data: {", b"data: ["})
_NAME = b"event: "
COMMENT = b": keepalive\n\n"
"""A comment: SSE readers ignore it. OpenAI's SDK fails on other keepalive frames: it parses the missing data
of `event: ping` as JSON. Google's SDK fails even on a comment, so Gemini clients get none."""


class SSEReader:
    """`feed` takes bytes and yields the frames they complete; `close` yields a last event without blank line.

    Frames are yielded one by one, so that an error comes after all complete frames before it.
    """

    __slots__ = (
        "_after_cr",
        "_at_start",
        "_carries",
        "_data",
        "_data_size",
        "_event",
        "_line",
        "_line_size",
        "_max_frame",
    )

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._line: list[bytes] = []  # pieces of a line that has not ended; joined once at its end
        self._data: list[bytes] = []  # data lines of an event that has not ended
        self._event = ""
        self._line_size = 0  # bytes in `_line`
        self._data_size = 0  # bytes of the lines in `_data`
        self._after_cr = False
        self._at_start = True
        self._carries = True  # does earlier input affect how the next bytes split into lines?

    def feed(self, data: bytes) -> Iterator[Frame]:
        lines, rest = data, b""
        if self._carries or _CR in data or data[-1:] != b"\n":
            lines, rest = self._whole_lines(data)
        at, last, most = 0, len(lines) - 1, self._max_frame
        while at <= last:
            end = lines.find(b"\n", at)
            if end - at < most and not self._data:
                start = lines[at : at + 7]
                if start == _NAME:
                    self._event = lines[at + 7 : end].decode("utf-8", "replace")
                    at = end + 1
                    continue
                if start in _JSON and end < last and lines[end + 1] == _LF:
                    # Nearly all events are like this: one line of data, then the end of the event.
                    event, self._event = self._event, ""
                    yield Frame(lines[at + 6 : end], event)
                    at = end + 2
                    continue
            frame = self._read(lines[at:end])
            if frame is not None:
                yield frame
            at = end + 1
        if rest:
            self._hold(rest)

    def _whole_lines(self, data: bytes) -> tuple[bytes, bytes]:
        """The lines that `data` completes, and the beginning of the next line."""
        if self._after_cr or _CR in data:
            data = self._unify_line_ends(data)
        end = data.rfind(b"\n") + 1
        lines, rest = data[:end], data[end:]
        if self._line and lines:
            self._line.append(lines)
            lines = self._take_line()
        if self._at_start and lines:
            lines = self._strip_bom(lines)
        self._carries = bool(rest or self._line) or self._at_start or self._after_cr
        return lines, rest

    def _read(self, line: bytes) -> Frame | None:
        if self._data_size + len(line) > self._max_frame:
            raise self._too_large()
        return self._field(line) if line else self._dispatch()

    def close(self) -> Iterator[Frame]:
        """Yield the last event if it is complete. A cut event is not a frame."""
        if self._line:
            line = self._take_line()
            frame = self._field(self._strip_bom(line) if self._at_start else line)
            if frame is not None:
                yield frame
        # The specification drops an event without its blank line, and so do the SDKs. But some servers end
        # their last event like that, and it holds the finish reason.
        if self._data and is_complete(b"\n".join(self._data)):
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
        self._line_size += len(piece)
        if self._data_size + self._line_size > self._max_frame:
            raise self._too_large()

    def _take_line(self) -> bytes:
        line = b"".join(self._line)
        self._line.clear()
        self._line_size = 0
        return line

    def _too_large(self) -> FrameTooLarge:
        return FrameTooLarge(f"the upstream sent an event of more than {self._max_frame} bytes")

    def _field(self, line: bytes) -> Frame | None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            return self._add(value)
        if name == b"event":
            before = self._unclosed()
            self._event = value.decode("utf-8", "replace")
            return before
        # Comments have an empty name. The translation does not need `id`, `retry` and unknown fields.
        return None

    def _add(self, value: bytes) -> Frame | None:
        before = self._unclosed()
        self._data.append(value)
        self._data_size += len(b"data: \n") + len(value)
        return before

    def _unclosed(self) -> Frame | None:
        """The event before this line, if the server left out the blank line between two events.

        The SSE specification makes one event of both lines. But the first line is a complete JSON text, and
        two JSON texts in one event would not parse.
        """
        if len(self._data) == 1 and is_complete(self._data[0]):
            return self._dispatch()
        return None

    def _dispatch(self) -> Frame | None:
        lines, self._data = self._data, []
        self._data_size = 0
        if lines:
            return self._framed(lines[0] if len(lines) == 1 else b"\n".join(lines))
        self._event = ""
        return None

    def _framed(self, data: bytes) -> Frame | None:
        event, self._event = self._event, ""
        # All protocols send JSON or `[DONE]`. Anything else is noise: `data: : keepalive` (opencode#50871).
        data = data.lstrip(b" \t")
        return Frame(data, event) if data[:1] in (b"{", b"[") else None


def is_complete(data: bytes) -> bool:
    """Is this a complete payload: a JSON text, or Chat's `[DONE]`?"""
    if data.strip() == b"[DONE]":
        return True
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
