"""A frame: one piece of JSON that an upstream sent, however it was wrapped."""

from __future__ import annotations

import codecs

import msgspec

# No provider sends frames near this; a whole non-streamed body with an inline image may come close.
DEFAULT_MAX_FRAME = 64 * 1024 * 1024

# As numbers: to look for a byte in bytes, Python first tries to take it for one.
_LF, _CR = b"\n\r"
_PIECE = 16 * 1024
_json = msgspec.json.Encoder().encode


class Frame(msgspec.Struct, frozen=True, gc=False):
    """`data` is the payload alone; `event` is SSE's event name, empty where there was none."""

    data: bytes
    event: str = ""


def is_utf8(data: bytes | bytearray) -> bool:
    """Looked at piece by piece: one long string takes three times as long, most of it for fresh memory."""
    at = 0
    try:
        while len(data) - at > _PIECE:
            at += codecs.utf_8_decode(data[at : at + _PIECE], "strict", False)[1]
        data[at:].decode()
    except UnicodeDecodeError:
        return False
    return True


def one_line(data: bytes) -> bytes:
    """JSON that may be sent in one `data: ` line. Raw line ends can only be white space between tokens."""
    if _LF in data or _CR in data:
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data if data.isascii() else escape_separators(data)


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


def json_string(text: str) -> bytes:
    """Text as a JSON string that may stand in a `data: ` line."""
    data = _json(text)
    return data if data.isascii() else escape_separators(data)
