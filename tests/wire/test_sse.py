"""The SSE reader: every framing quirk of real streams, whole, byte by byte, and cut anywhere."""

import sys
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fuzzing
from support.mutations import chunked

from dragoman.model.errors import FrameTooLarge
from dragoman.wire.frames import Frame
from dragoman.wire.sse import SSEReader

A, B = b'{"a":1}', b'{"b":"\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80"}'


def read(chunks: Iterable[bytes], max_frame: int = 10_000) -> list[Frame]:
    reader = SSEReader(max_frame)
    frames = [frame for chunk in chunks for frame in reader.feed(chunk)]
    return [*frames, *reader.close()]


def drip(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


QUIRKS: dict[str, tuple[bytes, list[Frame]]] = {
    "lf": (b"data: %s\n\ndata: %s\n\n" % (A, B), [Frame(A), Frame(B)]),
    "crlf": (b"data: %s\r\n\r\ndata: %s\r\n\r\n" % (A, B), [Frame(A), Frame(B)]),
    "cr": (b"data: %s\r\rdata: %s\r\r" % (A, B), [Frame(A), Frame(B)]),
    "mixed line ends": (b"data: %s\r\n\ndata: %s\n\r" % (A, B), [Frame(A), Frame(B)]),
    "event names": (b"event: x\ndata: %s\n\ndata: %s\n\n" % (A, B), [Frame(A, "x"), Frame(B)]),
    "name after data": (b"data: {\nevent: x\ndata: }\n\n", [Frame(b"{\n}", "x")]),
    "no space": (b"event:x\ndata:%s\n\n" % A, [Frame(A, "x")]),
    "two spaces": (b"data:  %s\n\n" % A, [Frame(A)]),
    "bom": (b"\xef\xbb\xbfdata: %s\n\n" % A, [Frame(A)]),
    "bom on the only line": (b"\xef\xbb\xbfdata: %s" % A, [Frame(A)]),
    "comments": (b": PROCESSING\n\n:\ndata: %s\n: x\n\n" % A, [Frame(A)]),
    "comment as data": (b"data: : keepalive\n\ndata: %s\n\n" % A, [Frame(A)]),
    "multi-line data": (b'data: {"a":\ndata: 1}\n\n', [Frame(b'{"a":\n1}')]),
    "id and retry": (b"id: 7\nretry: 10\ndata: %s\n\nretry: 3\n\n" % A, [Frame(A)]),
    "event without data": (b"event: ping\n\ndata: %s\n\n" % A, [Frame(A)]),
    "empty data": (b"data:\n\ndata: \n\ndata: %s\n\n" % A, [Frame(A)]),
    "unknown field": (b"nonsense\ndata: %s\n\n" % A, [Frame(A)]),
    "done": (b"data: [DONE]\n\n", [Frame(b"[DONE]")]),
    "no last blank line": (b"data: %s\n\ndata: %s\n" % (A, B), [Frame(A), Frame(B)]),
    "no last line end": (b"data: %s\n\ndata: %s" % (A, B), [Frame(A), Frame(B)]),
    "no blank lines": (b"data: %s\ndata: %s\n\n" % (A, B), [Frame(A), Frame(B)]),
    "no blank lines, names": (
        b"event: x\ndata: %s\nevent: y\ndata: %s\n\n" % (A, B),
        [Frame(A, "x"), Frame(B, "y")],
    ),
    "half an event": (b'data: %s\n\ndata: {"b":' % A, [Frame(A)]),
    "half a name": (b"data: %s\n\nevent: resp" % A, [Frame(A)]),
    "half a done": (b"data: %s\n\ndata: [DON" % A, [Frame(A)]),
    "nothing": (b"", []),
}


@pytest.mark.parametrize("quirk", QUIRKS)
@pytest.mark.parametrize("cut", [lambda data: [data], drip], ids=["whole", "drip"])
def test_framing_quirks(quirk: str, cut: Callable[[bytes], list[bytes]]) -> None:
    data, expect = QUIRKS[quirk]
    assert read(cut(data)) == expect


@fuzzing.steady(200)
@given(data=st.data(), quirks=st.lists(st.sampled_from(sorted(QUIRKS)), min_size=1, max_size=4))
def test_any_split_gives_the_same_frames(data: Any, quirks: list[str]) -> None:
    stream = b"".join(QUIRKS[quirk][0] for quirk in quirks)
    assert read(data.draw(chunked(stream))) == read([stream])


def test_an_event_ends_at_its_blank_line() -> None:
    reader = SSEReader()
    assert list(reader.feed(b"data: %s\n" % A)) == []
    assert list(reader.feed(b"\n")) == [Frame(A)]


def test_an_event_name_applies_to_one_event() -> None:
    assert read([b"event: x\n\ndata: %s\n\n" % A]) == [Frame(A)]


@pytest.mark.parametrize("cut", [lambda data: [data], drip], ids=["whole", "drip"])
@pytest.mark.parametrize(
    "endless",
    [b"data: " + b"x" * 200, b'data: {"a":\n' * 40, b"x" * 200, b"data: " + b"x" * 200 + b"\n\n"],
    ids=["line", "lines", "no field", "closed"],
)
def test_events_before_an_oversized_one_are_returned(
    cut: Callable[[bytes], list[bytes]], endless: bytes
) -> None:
    reader = SSEReader(max_frame=100)
    frames = (frame for chunk in cut(b"data: %s\n\n" % A + endless) for frame in reader.feed(chunk))
    assert next(frames) == Frame(A)
    with pytest.raises(FrameTooLarge):
        next(frames)


@pytest.mark.parametrize("size", range(90, 105))
def test_the_bound_does_not_depend_on_the_split(size: int) -> None:
    event = b"data: " + (b"{%s}" % (b" " * (size - 8))) + b"\n\n"

    def refused(chunks: list[bytes]) -> bool:
        try:
            return read(chunks, max_frame=100) == []
        except FrameTooLarge:
            return True

    assert refused([event]) == refused(drip(event)) == refused([event[:50], event[50:]])


def test_the_size_limit_applies_to_one_event() -> None:
    event = b"event: x\ndata: %s\n\n" % A
    assert len(read(drip(event * 50), max_frame=40)) == 50
    assert read(drip(b": comment\n" * 50), max_frame=40) == []


def test_the_work_is_linear_in_the_bytes() -> None:
    """Counts executed lines of code instead of time: twice the bytes must run twice the lines."""

    def work(size: int) -> int:
        chunks = [b"x" * 10] * (size // 10)
        reader = SSEReader()
        steps = 0

        def trace(_frame: Any, event: str, _arg: Any) -> Any:
            nonlocal steps
            steps += event == "line"
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            for chunk in [b"data: ", *chunks, b"\n\n"]:
                list(reader.feed(chunk))
        finally:
            sys.settrace(before)
        return steps

    assert work(20_000) < 2.2 * work(10_000)


def test_a_held_line_is_joined_once() -> None:
    """Pieces of a line are joined once at its end. Joining at each piece would be quadratic."""
    reader = SSEReader()
    for _ in range(1000):
        list(reader.feed(b"x"))
    assert len(reader._line) == 1000
