"""A frame: one piece of JSON from an upstream, without its SSE, NDJSON or array framing."""

from __future__ import annotations

import codecs

import msgspec

# No provider sends stream frames near this size. A whole body with an inline image may come close.
DEFAULT_MAX_FRAME = 64 * 1024 * 1024

# Integers: `10 in data` is faster than `b"\n" in data`, where CPython first tries to read an integer.
_LF, _CR = b"\n\r"
_PIECE = 16 * 1024
_json = msgspec.json.Encoder().encode


class Frame(msgspec.Struct, frozen=True, gc=False):
    """`data` is the payload. `event` is the SSE event name; empty if the upstream sent none."""

    data: bytes
    event: str = ""


def is_utf8(data: bytes | bytearray) -> bool:
    """Is this valid UTF-8? Decoding piece by piece is three times as fast as one large allocation."""
    at = 0
    try:
        while len(data) - at > _PIECE:
            at += codecs.utf_8_decode(data[at : at + _PIECE], "strict", False)[1]
        data[at:].decode()
    except UnicodeDecodeError:
        return False
    return True


def one_line(data: bytes) -> bytes:
    """Make JSON fit into one `data: ` line. Raw line ends in JSON are whitespace between tokens."""
    if _LF in data or _CR in data:
        data = data.replace(b"\n", b" ").replace(b"\r", b" ")
    return data if data.isascii() else escape_separators(data)


def escape_separators(data: bytes) -> bytes:
    r"""Escape U+2028, U+2029 and U+0085 in JSON: google-genai splits lines there.

    These characters occur only inside JSON strings, so the value stays the same.

    >>> escape_separators('"a\u2028b"'.encode())
    b'"a\\u2028b"'
    """
    if data.isascii():
        return data
    # `find`, not `in`, for the same reason as `_LF`.
    if data.find(b"\xe2\x80") >= 0:
        data = data.replace(b"\xe2\x80\xa8", b"\\u2028").replace(b"\xe2\x80\xa9", b"\\u2029")
    if data.find(b"\xc2\x85") >= 0:
        data = data.replace(b"\xc2\x85", b"\\u0085")
    return data


def json_string(text: str) -> bytes:
    """Encode text as a JSON string for a `data: ` line."""
    data = _json(text)
    return data if data.isascii() else escape_separators(data)
