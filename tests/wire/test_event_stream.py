"""AWS's event streams: botocore reads what is written, and what is read is the same, cut anywhere."""

import base64
import json
import struct
import zlib
from collections.abc import Iterable

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st
from support.mutations import chunked

from dragoman.model.errors import FrameTooLarge, UpstreamError
from dragoman.wire.event_stream import EventStreamReader, encode_event, encode_message
from dragoman.wire.frames import Frame
from dragoman.wire.reader import FrameReader

INNER = b'{"type":"ping","text":"\xc3\xa9"}'
CHUNK = encode_event("chunk", json.dumps({"bytes": base64.b64encode(INNER).decode(), "p": "ab"}).encode())
START = encode_event("messageStart", b'{"role":"assistant","p":"abc"}')
THROTTLED = encode_message(
    {
        ":exception-type": "throttlingException",
        ":content-type": "application/json",
        ":message-type": "exception",
    },
    b'{"message":"Too many requests, please wait"}',
)
ERROR = encode_message(
    {":message-type": "error", ":error-code": "InternalFailure", ":error-message": "gone"}, b""
)
STREAM = START + CHUNK + THROTTLED
FRAMES = [
    Frame(b'{"role":"assistant","p":"abc"}', "messageStart"),
    Frame(INNER, "ping"),
    Frame(
        b'{"type":"error","error":{"type":"throttlingException","message":"Too many requests, please wait"}}',
        "error",
    ),
]


def read(chunks: Iterable[bytes], max_frame: int = 1 << 20) -> list[Frame]:
    reader = FrameReader(max_frame)
    frames = [frame for chunk in chunks for frame in reader.feed(chunk)]
    return [*frames, *reader.close()]


def header(name: bytes, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name + bytes([kind]) + value


def message(headers: bytes, payload: bytes) -> bytes:
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    whole = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return whole + struct.pack(">I", zlib.crc32(whole))


def test_whole_byte_by_byte_and_cut_anywhere() -> None:
    assert read([STREAM]) == FRAMES
    assert read(STREAM[at : at + 1] for at in range(len(STREAM))) == FRAMES
    for at in range(1, len(STREAM)):
        assert read([STREAM[:at], STREAM[at:]]) == FRAMES


@given(chunked(STREAM))
def test_any_chunking_gives_the_same_frames(chunks: list[bytes]) -> None:
    assert read(chunks) == FRAMES


def test_botocore_reads_what_is_written() -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(STREAM + ERROR)
    start, chunk, throttled, error = list(buffer)
    assert (start.headers[":event-type"], start.payload) == (
        "messageStart",
        b'{"role":"assistant","p":"abc"}',
    )
    assert base64.b64decode(json.loads(chunk.payload)["bytes"]) == INNER
    assert throttled.to_response_dict()["status_code"] == 400
    assert throttled.headers[":exception-type"] == "throttlingException"
    assert error.headers[":error-message"] == "gone"


@given(
    st.dictionaries(st.text(min_size=1, max_size=40), st.text(max_size=80), max_size=5),
    st.binary(max_size=300),
)
def test_botocore_reads_any_headers_and_payload(headers: dict[str, str], payload: bytes) -> None:
    buffer = EventStreamBuffer()
    buffer.add_data(encode_message(headers, payload))
    assert [(found.headers, found.payload) for found in buffer] == [(headers, payload)]


@pytest.mark.parametrize("at", range(len(CHUNK)))
def test_a_changed_byte_is_noticed(at: int) -> None:
    changed = CHUNK[:at] + bytes([CHUNK[at] ^ 0x40]) + CHUNK[at + 1 :]
    reader = EventStreamReader()
    frames = []
    with pytest.raises(UpstreamError, match="checksum"):
        frames += reader.feed(changed)
    assert frames == []


@pytest.mark.parametrize("length", [1, 11, 12, len(CHUNK) - 1])
def test_a_cut_message_is_no_frame(length: int) -> None:
    assert read([START + CHUNK[:length]]) == FRAMES[:1]


def test_values_of_every_type_are_skipped() -> None:
    sizes = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
    others = b"".join(header(b"h%d" % kind, kind, bytes(size)) for kind, size in sizes.items())
    others += header(b"raw", 6, struct.pack(">H", 3) + b"\xff\x00\xfe")
    named = header(b":event-type", 7, struct.pack(">H", 8) + b"metadata")
    assert read([message(others + named, b"{}")]) == [Frame(b"{}", "metadata")]
    buffer = EventStreamBuffer()
    buffer.add_data(message(others + named, b"{}"))
    assert len(next(buffer).headers) == 10


@pytest.mark.parametrize(
    ("headers", "payload", "why"),
    [
        (header(b"x", 77, b""), b"{}", "headers cannot be read"),
        (header(b"x", 7, struct.pack(">H", 99) + b"short"), b"{}", "headers cannot be read"),
        (header(b"x", 7, b"\x00"), b"{}", "headers cannot be read"),
        (header(b"\xff", 0, b""), b"{}", "headers cannot be read"),
        (header(b":event-type", 7, struct.pack(">H", 5) + b"chunk"), b'{"bytes":"*"}', "a chunk that cannot"),
        (header(b":event-type", 7, struct.pack(">H", 5) + b"chunk"), b"{}", "a chunk that cannot"),
        (
            header(b":event-type", 7, struct.pack(">H", 5) + b"chunk"),
            b'{"bytes":"W10="}',
            "a chunk that cannot",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error(headers: bytes, payload: bytes, why: str) -> None:
    with pytest.raises(UpstreamError, match=why):
        read([message(headers, payload)])


def test_headers_that_are_longer_than_the_message() -> None:
    prelude = struct.pack(">II", 20, 400)
    with pytest.raises(UpstreamError, match="longer than the event"):
        read([prelude + struct.pack(">I", zlib.crc32(prelude)) + bytes(8)])


def test_a_message_over_the_limit_is_refused_at_its_head() -> None:
    with pytest.raises(FrameTooLarge):
        read([encode_event("metadata", b'{"a":"%s"}' % (b"x" * 2000))[:12]], max_frame=1000)


def test_what_an_exception_says_is_found_in_any_form() -> None:
    def said(payload: bytes) -> str:
        headers = {":message-type": "exception", ":exception-type": "modelStreamErrorException"}
        [frame] = read([encode_message(headers, payload)])
        return json.loads(frame.data)["error"]["message"]

    assert said(b'{"originalMessage":"the model broke"}') == "the model broke"
    assert said(b"plain words") == "plain words"
    assert said(b"{}") == "modelStreamErrorException"
    assert said(b"[]") == "[]"


def test_other_messages_are_left_out() -> None:
    assert (
        read([encode_message({":message-type": "later"}, b"{}"), encode_event("metadata", b"not JSON")]) == []
    )
    assert json.loads(read([ERROR])[0].data)["error"] == {"type": "InternalFailure", "message": "gone"}
