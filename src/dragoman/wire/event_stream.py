"""AWS's binary event streams (`application/vnd.amazon.eventstream`): messages with headers and two CRCs.

    total length · headers length · CRC of both │ headers │ payload │ CRC of everything before it

All numbers are big-endian. `EventStreamReader` reads messages from bytes that are cut anywhere, and gives
their payloads as frames.
"""

from __future__ import annotations

import binascii
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ..model.errors import FrameTooLarge, UpstreamError
from .frames import DEFAULT_MAX_FRAME, Frame

_PRELUDE = struct.Struct(">III")
_CRC = struct.Struct(">I")
_TEXT = 7
# The number of bytes of a header's value, by its type. Types 6 (bytes) and 7 (text) say their own length.
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_TEXTS = (6, _TEXT)
FIRST_BYTES = b"\x00\x01"
"""The first byte of a length below 32 MiB. AWS allows 24 MiB, and no text begins like this."""


class _Chunk(msgspec.Struct):
    """The payload of `chunk`: an event of the model's own protocol, as base64."""

    inner: bytes = msgspec.field(name="bytes")


class _Typed(msgspec.Struct):
    type: str = ""


_read_chunk = msgspec.json.Decoder(_Chunk).decode
_read_type = msgspec.json.Decoder(_Typed).decode


class EventStreamMessage(msgspec.Struct, frozen=True):
    """One message. Only headers with text have a meaning here."""

    headers: dict[str, str]
    payload: bytes


class EventStreamReader:
    """`feed` takes bytes and yields the frames they complete. A message that is cut off is not a frame."""

    __slots__ = ("_buffer", "_max_frame", "_wanted")

    def __init__(self, max_frame: int = DEFAULT_MAX_FRAME) -> None:
        self._max_frame = max_frame
        self._buffer = bytearray()
        self._wanted = _PRELUDE.size
        """The number of bytes without which nothing more can be read."""

    def feed(self, data: bytes) -> Iterator[Frame]:
        self._buffer += data
        while len(self._buffer) >= self._wanted:
            total, headers, _ = _PRELUDE.unpack_from(self._buffer)
            if self._wanted == _PRELUDE.size:
                self._check_prelude(total, headers)
                self._wanted = total
                continue
            message = bytes(self._buffer[:total])
            del self._buffer[:total]
            self._wanted = _PRELUDE.size
            frame = _frame(_decode_message(message, headers))
            if frame is not None:
                yield frame

    def close(self) -> Iterator[Frame]:
        return iter(())

    def _check_prelude(self, total: int, headers: int) -> None:
        _check_crc(bytes(self._buffer[: _PRELUDE.size]), "head")
        if total > self._max_frame:
            raise FrameTooLarge(f"the upstream sent an event of more than {self._max_frame} bytes")
        if total < _PRELUDE.size + headers + _CRC.size:
            raise UpstreamError("the upstream sent an event whose headers are longer than the event")


def _check_crc(data: bytes, what: str) -> None:
    """The last four bytes are the CRC of those before them."""
    if zlib.crc32(data[: -_CRC.size]) != _CRC.unpack_from(data, len(data) - _CRC.size)[0]:
        raise UpstreamError(
            f"the upstream sent an event with a wrong checksum of its {what}; its bytes changed on the way"
        )


def _decode_message(message: bytes, headers: int) -> EventStreamMessage:
    _check_crc(message, "content")
    end = _PRELUDE.size + headers
    try:
        return EventStreamMessage(dict(_headers(message[_PRELUDE.size : end])), message[end : -_CRC.size])
    except (struct.error, IndexError, KeyError, UnicodeDecodeError):
        raise UpstreamError("the upstream sent an event whose headers cannot be read") from None


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(data):
        size = data[at]
        name, kind = data[at + 1 : at + 1 + size].decode(), data[at + 1 + size]
        at += size + 2
        if kind in _TEXTS:
            size = struct.unpack_from(">H", data, at)[0]
            at += 2
        else:
            size = _SIZES[kind]
        if at + size > len(data):
            raise IndexError
        if kind == _TEXT:
            yield name, data[at : at + size].decode()
        at += size


def _frame(message: EventStreamMessage) -> Frame | None:
    headers = message.headers
    match headers.get(":message-type", "event"):
        case "event":
            return _event(headers.get(":event-type", ""), message.payload)
        case "exception":
            return _error(headers.get(":exception-type", "exception"), *_exception_details(message.payload))
        case "error":
            return _error(headers.get(":error-code", "error"), headers.get(":error-message", ""))
        case _:
            return None


def _event(kind: str, payload: bytes) -> Frame | None:
    if kind != "chunk":
        # Every event has a JSON object as its payload. Anything else is noise, as in an SSE stream.
        return Frame(payload, kind) if payload[:1] == b"{" else None
    try:
        inner = _read_chunk(payload).inner
        # SSE names the event as well; here the name is only in the event itself.
        return Frame(inner, _read_type(inner).type)
    except (msgspec.DecodeError, UnicodeDecodeError, binascii.Error):
        raise UpstreamError("the upstream sent a chunk that cannot be read") from None


def _exception_details(payload: bytes) -> tuple[str, int | None]:
    """What an exception says, and the status of the model's own error if there is one."""
    try:
        members: Any = msgspec.json.decode(payload, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return payload[:1000].decode("utf-8", "replace"), None
    texts = (members.get(key) for key in ("message", "Message", "originalMessage"))
    message = next((text for text in texts if isinstance(text, str) and text), "")
    status = members.get("originalStatusCode")
    return message, status if type(status) is int else None


def _error(code: str, message: str, status: int | None = None) -> Frame:
    """An exception inside the stream, in the form in which other providers send an error."""
    error: dict[str, Any] = {"type": code, "message": message or code}
    if status is not None:
        error["status_code"] = status
    return Frame(msgspec.json.encode({"type": "error", "error": error}), "error")


def encode_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Write one message whose headers are texts."""
    head = b"".join(
        bytes([len(name.encode())])
        + name.encode()
        + struct.pack(">BH", _TEXT, len(value.encode()))
        + value.encode()
        for name, value in headers.items()
    )
    total = _PRELUDE.size + len(head) + len(payload) + _CRC.size
    prelude = struct.pack(">II", total, len(head))
    message = prelude + _CRC.pack(zlib.crc32(prelude)) + head + payload
    return message + _CRC.pack(zlib.crc32(message))


def encode_event(kind: str, payload: bytes) -> bytes:
    """Write one event with a JSON payload."""
    headers = {":event-type": kind, ":content-type": "application/json", ":message-type": "event"}
    return encode_message(headers, payload)
