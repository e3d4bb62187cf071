"""Server-sent events, read from bytes that may be cut anywhere.

What real streams do and this survives: LF, CR and CRLF line ends, a CR cut from its LF; a byte-order mark;
comments; `data:` without its space; data over several lines; a last event without its blank line; events
with no blank line between them. Only LF and CR end a line: U+2028 and its like inside data do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import msgspec

from ..errors import FrameTooLarge
from .frames import DEFAULT_MAX_FRAME, NUMBER, WORDS, Around, Frame

# As numbers: to look for a byte in bytes, Python first tries to take it for one.
_LF, _CR = b"\n\r"
_BOM = b"\xef\xbb\xbf"
_JSON = frozenset({b"data: {", b"data: ["})
_NAME = b"event: "
_WINDOW = 24 * 1024
"""So much is looked through at once for events that are alike: in more, Python looks for words another way,
which only pays for rare ones."""
_LONG = 4 * 1024
Numbered = tuple[bytes, bytes]
"""The words in an event that differs in more than those, and the event without its end."""
COMMENT = b": keepalive\n\n"
"""Says nothing to whoever reads events as their specification says."""


class SSEReader:
    """`feed` bytes, get the frames they complete; `close` gives what a missing blank line left behind.

    Frames are given one by one, so that an error comes after everything that was whole before it.
    """

    __slots__ = (
        "_after_cr",
        "_at_start",
        "_data",
        "_event",
        "_held",
        "_line",
        "_max_frame",
        "_size",
        "at",
        "text",
    )

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._line: list[bytes] = []  # pieces of a line that has not ended: joined once, when it does
        self._data: list[bytes] = []  # data lines of an event that has not ended
        self._event = ""
        self._held = 0  # bytes in `_line`
        self._size = 0  # bytes of the lines in `_data`
        self._after_cr = False
        self._at_start = True
        self.text = b""
        """The lines that `feed` is going through, and how far it has come."""
        self.at = 0

    def feed(self, data: bytes) -> Iterator[Frame]:
        if self._after_cr or _CR in data:
            data = self._unify_line_ends(data)
        lines, rest = data, b""
        if data and data[-1] != _LF:
            end = data.rfind(b"\n") + 1
            lines, rest = data[:end], data[end:]
        if self._line and lines:
            self._line.append(lines)
            lines = self._take_line()
        if self._at_start and lines:
            lines = self._strip_bom(lines)
        self.text, self.at = lines, 0
        return self._frames(rest)

    def _frames(self, rest: bytes) -> Iterator[Frame]:
        text = self.text
        last, most = len(text) - 1, self._max_frame
        while (at := self.at) <= last:
            end = text.find(b"\n", at)
            if end - at < most and not self._data:
                start = text[at : at + 7]
                if start == _NAME:
                    self._event = text[at + 7 : end].decode("utf-8", "replace")
                    self.at = end + 1
                    continue
                if start in _JSON and end < last and text[end + 1] == _LF:
                    # One line of data and the end of the event: what nearly all of them are.
                    self.at = end + 2
                    event, self._event = self._event, ""
                    yield Frame(text[at + 6 : end], event)
                    continue
            self.at = end + 1
            frame = self._read(text[at:end])
            if frame is not None:
                yield frame
        self.text = b""
        if rest:
            self._hold(rest)

    def _read(self, line: bytes) -> Frame | None:
        if self._size + len(line) > self._max_frame:
            raise self._too_large()
        return self._field(line) if line else self._dispatch()

    def take(self, alike: Around) -> list[bytes] | None:
        """Read on past the events that are alike. Gives what differs, event by event.

        As far as they follow one another without a gap; None where something else follows. May be asked
        before, between and after the frames of what was fed.
        """
        text = self.text
        if self.at == len(text) or self._data or self._event:
            return []
        looked_at = self.at + _WINDOW
        found = more = self._taken(text, alike)
        # All that is left was looked through at once? Then there are no more of them.
        while more and self.at < len(text) and (looked_at < len(text) or len(more) == 1):
            looked_at = self.at + _WINDOW
            more = self._taken(text, alike)
            found += more
        return found or None

    def _taken(self, text: bytes, alike: Around) -> list[bytes]:
        """Those of the next ones that are looked through at once."""
        at = self.at
        start = at + len(alike.opens)
        if text[at:start] != alike.opens:
            return []
        end = start + _WINDOW
        if len(text) - start > _LONG and (after := text.find(b"\n", start) + 2) - at > _LONG:
            end = after  # one that is long enough to go alone
        found, size = _alike(text[at:end], alike)
        if size > self._max_frame:
            return []
        self.at += size
        return found

    def take_numbered(self, alike: Around, last: int) -> list[Numbered] | None:
        """The same for events that differ in several places. `last` is the number of the one before them."""
        text, at = self.text, self.at
        if at == len(text) or self._data or self._event:
            return []
        found = _numbered(text[at : at + _WINDOW], alike, last)
        size = sum([len(event) + 2 for _, event in found])
        if not found or size > self._max_frame:
            return None
        self.at += size
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
        if self._size + self._held > self._max_frame:
            raise self._too_large()

    def _take_line(self) -> bytes:
        line = b"".join(self._line)
        self._line.clear()
        self._held = 0
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
        lines, self._data = self._data, []
        self._size = 0
        if lines:
            return self._framed(lines[0] if len(lines) == 1 else b"\n".join(lines))
        self._event = ""
        return None

    def _framed(self, data: bytes) -> Frame | None:
        event, self._event = self._event, ""
        # Everything the protocols say is JSON, or `[DONE]`: `data: : keepalive` is noise.
        data = data.lstrip(b" \t")
        return Frame(data, event) if data[:1] in (b"{", b"[") else None


def _alike(text: bytes, alike: Around) -> tuple[list[bytes], int]:
    """What differs in the events that `text` begins with, and how long they are together."""
    opens = alike.opens
    events = text.split(alike.closes)
    events.pop()  # what follows the last of them
    found = [event.removeprefix(opens) for event in events]
    together, size = b"".join(found), len(b"".join(events))
    if _LF in together or size - len(together) != len(opens) * len(found):
        start = len(opens)
        like = takewhile(lambda event: event[:start] == opens and _LF not in event[start:], events)
        found = [event[start:] for event in like]
        size = sum(map(len, found)) + start * len(found)
    return found, size + len(alike.closes) * len(found)


def _numbered(text: bytes, alike: Around, last: int) -> list[Numbered]:
    """The events that `text` begins with and that differ in nothing but that."""
    found: list[Numbered] = []
    *events, _ = text.split(b"\n\n")
    for number, event in enumerate(events, last + 1):
        inside = inside_of(event, alike, str(number).encode())
        if inside is None:
            break
        found.append((inside, event))
    return found


def inside_of(event: bytes, alike: Around, number: bytes) -> bytes | None:
    """The words of an event that differs in several places, without its end; None if it is not like that."""
    at = len(alike.opens)
    if event[:at] != alike.opens:
        return None
    words, rest = b"", event[at:]
    for kind, behind in alike.differ:
        value, found, rest = rest.partition(behind)
        if not found:
            return None
        if kind == WORDS:
            words = value
        elif kind == NUMBER:
            if value != number:
                return None
        elif value and not value.isalnum():  # nothing that could be more than it looks like
            return None
    return None if rest or _LF in words else words


def is_whole(data: bytes) -> bool:
    """Is this a complete payload: a JSON text, or Chat's `[DONE]`?"""
    if data.strip() == b"[DONE]":
        return True
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True
