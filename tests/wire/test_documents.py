"""Bodies other than event streams: one document, NDJSON, a growing array; and how they are detected."""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fuzzing
from support.mutations import chunked

from dragoman.model.errors import FrameTooLarge
from dragoman.wire.frames import Frame
from dragoman.wire.jsondocs import ArrayReader, DocumentReader
from dragoman.wire.reader import FrameReader

steady = fuzzing.steady(150)

TRICKY = ['"', "\\", '\\"', "[", "]", "{", "}", "a", "\u00e9", "\U0001f600", "\u2028", "\n", ",", "data: "]
texts = st.lists(st.sampled_from(TRICKY), max_size=6).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(texts, values, max_size=3)


def read(reader: Any, chunks: Iterable[bytes]) -> list[bytes]:
    frames = [frame for chunk in chunks for frame in reader.feed(chunk)]
    return [frame.data for frame in [*frames, *reader.close()]]


def encoded(value: Any, *, ascii_only: bool) -> bytes:
    return json.dumps(value, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")


@steady
@given(data=st.data(), items=st.lists(objects, max_size=4), ascii_only=st.booleans())
def test_an_array_split_anywhere_gives_its_elements(data: Any, items: list[Any], ascii_only: bool) -> None:
    body = encoded(items, ascii_only=ascii_only)
    frames = read(ArrayReader(), data.draw(chunked(body)))
    assert [json.loads(frame) for frame in frames] == items
    assert read(FrameReader(), data.draw(chunked(body))) == frames


@steady
@given(data=st.data(), items=st.lists(objects, min_size=1, max_size=4), ascii_only=st.booleans())
def test_lines_of_json_split_anywhere(data: Any, items: list[Any], ascii_only: bool) -> None:
    end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\n\n"]))
    body = end.join(encoded(item, ascii_only=ascii_only) for item in items)
    frames = read(FrameReader(), data.draw(chunked(body)))
    assert [json.loads(frame) for frame in frames] == items


@steady
@given(data=st.data(), value=objects, indent=st.sampled_from([None, 2]))
def test_a_document_split_anywhere_is_one_frame(data: Any, value: Any, indent: int | None) -> None:
    body = json.dumps(value, indent=indent).encode()
    assert [json.loads(f) for f in read(DocumentReader(), data.draw(chunked(body)))] == [value]
    assert [json.loads(f) for f in read(FrameReader(), data.draw(chunked(body)))] == [value]


def test_array_elements_come_as_they_complete() -> None:
    reader = ArrayReader()
    assert list(reader.feed(b'[{"a":"]}"}')) == [Frame(b'{"a":"]}"}')]
    assert list(reader.feed(b',{"b":')) == []
    assert list(reader.feed(b"2}]")) == [Frame(b'{"b":2}')]


def test_an_incomplete_element_is_never_returned() -> None:
    assert read(ArrayReader(), [b'[{"a":1},{"b":']) == [b'{"a":1}']


def test_a_done_marker_after_a_body_is_a_frame() -> None:
    assert read(FrameReader(), [b'{"a":1}\ndata: [DONE]\n\n']) == [b'{"a":1}', b"[DONE]"]


@pytest.mark.parametrize("reader", [DocumentReader, ArrayReader, FrameReader])
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_documents_are_bounded(reader: Any, size: int) -> None:
    body = b'[{"a":"' + b"x" * 500 if reader is not DocumentReader else b'{"a":"' + b"x" * 500
    it = reader(100)
    with pytest.raises(FrameTooLarge, match="100 bytes"):
        read(it, [body[at : at + size] for at in range(0, len(body), size)])


def test_elements_before_an_oversized_one_are_returned() -> None:
    for body in (b'[{"a":1},{"b":"' + b"x" * 500, b'{"a":1}\n{"b":"' + b"x" * 500):
        frames = FrameReader(100).feed(body)
        assert next(frames).data == b'{"a":1}'
        with pytest.raises(FrameTooLarge):
            next(frames)


@pytest.mark.parametrize(
    ("body", "frames", "streaming"),
    [
        (b'data: {"a":1}\n\n', [b'{"a":1}'], True),
        (b'\xef\xbb\xbf\r\n data: {"a":1}\n\n', [b'{"a":1}'], True),
        (b': hi\n\ndata: {"a":1}\n\n', [b'{"a":1}'], True),
        (b'event: x\ndata: {"a":1}\n\n', [b'{"a":1}'], True),
        (b'{"a":1}', [b'{"a":1}'], False),
        (b'\n\xef\xbb\xbf {"a":1}\n', [b'{"a":1}'], False),
        (b'[{"a":1}]', [b'{"a":1}'], True),
        (b"<html>bad gateway</html>", [], True),
        (b"", [], True),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_the_first_byte_selects_the_reader(
    body: bytes, frames: list[bytes], streaming: bool, size: int
) -> None:
    reader = FrameReader()
    assert read(reader, [body[at : at + size] for at in range(0, len(body), size)]) == frames
    assert reader.streaming is streaming
