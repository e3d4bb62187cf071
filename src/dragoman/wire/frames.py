"""A frame: one piece of JSON that an upstream sent, however it was wrapped."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

# No provider sends frames near this; a whole non-streamed body with an inline image may come close.
DEFAULT_MAX_FRAME = 64 * 1024 * 1024

# As numbers: to look for a byte in bytes, Python first tries to take it for one.
_LF, _CR = b"\n\r"
_VALUE = re.compile(rb"[A-Za-z0-9]*")
WORDS, NUMBER, PADDING = range(3)


class Frame(msgspec.Struct, frozen=True, gc=False):
    """`data` is the payload alone; `event` is SSE's event name, empty where there was none."""

    data: bytes
    event: str = ""


class Around(msgspec.Struct, frozen=True, gc=False):
    """What events alike have in common on the wire: all that stands before and after what differs."""

    opens: bytes
    closes: bytes
    differ: tuple[tuple[int, bytes], ...] = ()
    """Where they differ in several places: `WORDS`, `NUMBER` or `PADDING`, and what stands between that and
    the next, or the end of the data."""
    counter: bytes = b""
    """How the member begins that has the number."""

    @classmethod
    def of(cls, before: bytes, head: bytes, tail: bytes, beside: Sequence[bytes]) -> Around:
        """Events with `before` before their data, which stands between `head` and `tail`.

        `beside` are members that differ too and say nothing, as they begin: a text, or a number.
        """
        opens = before + head
        if not beside:
            return cls(opens, tail + b"\n\n")
        words = len(opens)
        places = [(words, words, WORDS)]
        for name in beside:
            kind = PADDING if name.endswith(b'"') else NUMBER
            places += [(*span, kind) for span in (_value(opens, name, 0), _value(tail, name, words)) if span]
        if len(places) == 1:
            return cls.of(before, head, tail, ())
        places.sort()
        whole = opens + tail
        stops = [start for start, _, _ in places[1:]] + [len(whole)]
        differ = [(kind, whole[end:stop]) for (_, end, kind), stop in zip(places, stops, strict=True)]
        counter = next((name for name in beside if name.endswith(b":")), b"")
        return cls(whole[: places[0][0]], b"", tuple(differ), counter)

    def number(self, data: bytes) -> int:
        """The number of an event with such data; 0 where they have none."""
        value = _VALUE.match(data, data.find(self.counter) + len(self.counter)) if self.counter else None
        return int(value[0]) if value and value[0].isdigit() else 0


def before_data(event: str) -> bytes:
    """What stands before the data of an event of this name."""
    return b"event: %s\ndata: " % event.encode() if event else b"data: "


def _value(data: bytes, name: bytes, offset: int) -> tuple[int, int] | None:
    """From where to where the value of a member goes that begins like `name`."""
    at = data.find(name) + len(name)
    value = _VALUE.match(data, at) if at >= len(name) else None
    return (offset + at, offset + value.end()) if value else None


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def one_line(data: bytes) -> bytes:
    """JSON that may be sent in one `data: ` line. Raw line ends can only be white space between tokens."""
    if _LF in data or _CR in data:
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    return escape_separators(data)


def escape_separators(data: bytes) -> bytes:
    r"""JSON with U+2028, U+2029 and U+0085 escaped: google-genai cuts lines at them (protocols.md 1D.7).

    They can only stand inside JSON strings, so the value stays the same.

    >>> escape_separators('"a\u2028b"'.encode())
    b'"a\\u2028b"'
    """
    if data.isascii():
        return data
    # Not by `in`: Python first tries to take bytes that are looked for so for a number.
    if data.find(b"\xe2\x80") >= 0:
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    if data.find(b"\xc2\x85") >= 0:
        data = data.replace(b"\xc2\x85", b"\\u0085")
    return data


def framed(head: bytes, pieces: list[bytes], tail: bytes) -> bytes:
    """Each of `pieces` between `head` and `tail`, one after another."""
    return escape_separators(head + (tail + head).join(pieces) + tail)
