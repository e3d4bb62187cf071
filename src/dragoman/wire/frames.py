"""A frame: one piece of JSON that an upstream sent, however it was wrapped."""

from __future__ import annotations

import msgspec

# No provider sends frames near this; a whole non-streamed body with an inline image may come close.
DEFAULT_MAX_FRAME = 64 * 1024 * 1024

# As numbers: to look for a byte in bytes, Python first tries to take it for one.
_LF, _CR = b"\n\r"


class Frame(msgspec.Struct, frozen=True, gc=False):
    """`data` is the payload alone; `event` is SSE's event name, empty where there was none."""

    data: bytes
    event: str = ""


class Around(msgspec.Struct, frozen=True, gc=False):
    """What events alike have in common on the wire: all that stands before and after what differs."""

    opens: bytes
    closes: bytes
    ends: bytes = b""
    """What stands behind the padding, where there is some behind `closes`: that differs too."""

    @classmethod
    def of(cls, event: str, head: bytes, tail: bytes, padding: bytes = b"") -> Around:
        """Events of this name, their data between `head` and `tail`. `padding` is how some begins in that."""
        opens = (b"event: %s\n" % event.encode() if event else b"") + b"data: " + head
        found = tail.find(padding) if padding else -1
        if found < 0:
            return cls(opens, tail + b"\n\n")
        at = found + len(padding)
        return cls(opens, tail[:at], tail[tail.index(b'"', at) :] + b"\n\n")


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
