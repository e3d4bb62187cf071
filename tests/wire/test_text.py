"""Difficult characters (line separators, split surrogate pairs) and lenient reading of structs."""

import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fuzzing

from dragoman.model.errors import UpstreamError
from dragoman.wire import surrogates
from dragoman.wire.frames import escape_separators, is_utf8, one_line
from dragoman.wire.structs import JsonReader, read_value, without_lone_surrogates

steady = fuzzing.steady(200)
tricky = st.text(st.sampled_from('a"\\\u0085\u2028\u2029\u00c2\u20ac\U0001f600\n'), max_size=12)


@steady
@given(tricky)
def test_escaping_separators_keeps_the_value(text: str) -> None:
    raw = json.dumps({"t": text}, ensure_ascii=False).encode()
    escaped = escape_separators(raw)
    assert json.loads(escaped) == {"t": text}
    assert len(escaped.decode().splitlines()) == 1


@steady
@given(tricky)
def test_one_line_removes_line_breaks_and_keeps_the_value(text: str) -> None:
    pretty = json.dumps({"t": [text, text]}, ensure_ascii=False, indent=1).encode()
    line = one_line(pretty)
    assert len(line.decode().splitlines()) == 1
    assert json.loads(line) == {"t": [text, text]}


def test_one_line_removes_carriage_returns() -> None:
    assert b"\r" not in one_line(b'{\r\n"a":\r1}')


@steady
@given(st.data(), st.text(st.sampled_from("ab\u00e9\U0001f600\U0001f468"), max_size=10))
def test_split_surrogate_pairs_are_joined_for_every_split(data: Any, text: str) -> None:
    units = text.encode("utf-16-le")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(units) // 2), max_size=5)))
    bounds = [0, *cuts, len(units) // 2]
    pieces = [
        units[2 * a : 2 * b].decode("utf-16-le", "surrogatepass") for a, b in itertools.pairwise(bounds)
    ]
    joiner = surrogates.PairJoiner()
    given_out = [joiner.feed(piece) for piece in pieces] + [joiner.close()]
    assert "".join(given_out) == text
    assert not any(surrogates.has_lone_surrogate(piece) for piece in given_out)


@pytest.mark.parametrize(
    ("pieces", "expect"),
    [
        (["a\ud83d", "b"], "a\ufffdb"),
        (["\ude00a"], "\ufffda"),
        (["a\ud83d"], "a\ufffd"),
        (["\ud83d", "\ud83d\ude00"], "\ufffd\U0001f600"),
    ],
)
def test_a_lone_surrogate_is_replaced(pieces: list[str], expect: str) -> None:
    joiner = surrogates.PairJoiner()
    assert "".join([*map(joiner.feed, pieces), joiner.close()]) == expect


def test_lone_surrogates_are_replaced_in_keys_and_values_only() -> None:
    value = {"\ud83d": ["\ude00", {"a": "\U0001f600"}], "b": 1}
    assert surrogates.replace_lone_surrogates(value) == {"\ufffd": ["\ufffd", {"a": "\U0001f600"}], "b": 1}


def test_is_utf8() -> None:
    assert is_utf8("é".encode())
    assert not is_utf8(b"\xc3")


@pytest.mark.parametrize("shift", range(4))
def test_long_text_is_utf8_for_every_alignment(shift: int) -> None:
    data = b"a" * shift + "\U0001f600".encode() * 20_000
    assert is_utf8(data)
    assert not is_utf8(data[:-1])
    assert not is_utf8(data[:40_001] + b"\xff" + data[40_001:])
    assert not is_utf8(data + b"\xff")


class Inner(msgspec.Struct):
    raw: msgspec.Raw = msgspec.Raw()
    text: str = ""


class Outer(msgspec.Struct):
    count: int | None = None
    text: str = ""
    raw: msgspec.Raw = msgspec.Raw()
    many: list[msgspec.Raw] | None = None
    inner: list[Inner] | None = None


read = JsonReader(Outer, frozenset({"text"}))


@pytest.mark.parametrize("count", [b"12", b"12.0", b'"12"'])
def test_counts_are_read_leniently(count: bytes) -> None:
    assert read(b'{"count":%s}' % count).count == 12


def test_raw_members_keep_their_digits_beside_a_lenient_count() -> None:
    got = read(b'{"count":"1","raw":{"a": 1.10}}')
    assert bytes(got.raw) == b'{"a": 1.10}'


def test_surrogates_stay_in_text_pieces_and_are_mended_elsewhere() -> None:
    got = read(rb'{"text":"a\ud83d","x":"\ud83d","raw":{"t":"\ud83d"},"many":["\ude00"],"inner":[{"raw":1}]}')
    assert got.text == "a\ud83d"
    assert bytes(got.raw) == rb'{"t": "\ud83d"}'
    assert [bytes(one) for one in got.many or ()] == [rb'"\ude00"']
    assert [bytes(one.raw) for one in got.inner or ()] == [b"1"]
    assert JsonReader(Outer)(rb'{"text":"a\ud83d"}').text == "a\ufffd"


@pytest.mark.parametrize(
    "frame",
    [
        b'{"count":[]}',
        b'{"text":5}',
        b'{"count":1',
        b"[]",
        b'{"count":"x"}',
        b"\xff",
        b'{"raw":' + b"[" * 100_000,
    ],
)
def test_an_unreadable_value_is_an_upstream_error(frame: bytes) -> None:
    with pytest.raises(UpstreamError, match="cannot be read") as caught:
        read(frame)
    assert caught.value.fault == "upstream"


def test_values_are_read_with_lone_surrogates_replaced() -> None:
    assert read_value(rb'{"a":"\ud83d"}') == {"a": "\ufffd"}
    assert without_lone_surrogates(rb'{"a":"\ud83d"}') == '{"a":"\ufffd"}'.encode()
    with pytest.raises(UpstreamError):
        read_value(b"{")
