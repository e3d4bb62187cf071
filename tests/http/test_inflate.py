"""Gzip and deflate, undone in pieces."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.http.inflate import BadCoding, Inflater

WORDS = b"every tool call arrives whole, valid and once. " * 50


def bare(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeeze.compress(data) + squeeze.flush()


FORMS = {
    "gzip": ("gzip", gzip.compress(WORDS)),
    "x-gzip": ("x-gzip", gzip.compress(WORDS)),
    "several": ("gzip", gzip.compress(WORDS[:100]) + gzip.compress(WORDS[100:])),
    "padded": ("gzip", gzip.compress(WORDS) + bytes(8)),
    "deflate": ("deflate", zlib.compress(WORDS)),
    "bare": ("deflate", bare(WORDS)),
}


def inflated(coding: str, pieces: list[bytes]) -> bytes:
    inflater = Inflater(coding)
    got = b"".join(map(inflater.feed, pieces))
    inflater.end()
    return got


@pytest.mark.parametrize("form", FORMS)
def test_whole_and_byte_by_byte(form: str) -> None:
    coding, data = FORMS[form]
    assert inflated(coding, [data]) == WORDS
    assert inflated(coding, [data[i : i + 1] for i in range(len(data))]) == WORDS


@given(st.binary(max_size=500), st.sampled_from(["gzip", "deflate"]), st.data())
def test_any_cut_gives_the_same(data: bytes, coding: str, cuts: st.DataObject) -> None:
    squeezed = gzip.compress(data) if coding == "gzip" else zlib.compress(data)
    at = cuts.draw(st.integers(0, len(squeezed)))
    assert inflated(coding, [squeezed[:at], squeezed[at:]]) == data


def test_no_body_is_a_body() -> None:
    assert inflated("gzip", []) == inflated("gzip", [b""]) == b""


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_what_is_none_is_told(coding: str) -> None:
    with pytest.raises(BadCoding, match=f"no {coding}"):
        Inflater(coding).feed(b"\xff{}plain words")
    with pytest.raises(BadCoding, match="cut off"):
        inflated(coding, [FORMS[coding][1][:-9]])


def test_an_unknown_coding_is_told() -> None:
    with pytest.raises(BadCoding, match="'br' is not known"):
        Inflater("br")


def test_a_piece_grows_only_so_far() -> None:
    bomb = gzip.compress(bytes(100_000))
    with pytest.raises(BadCoding, match="more than 50000 bytes"):
        Inflater("gzip", largest=50_000).feed(bomb)
    twice = gzip.compress(bytes(40_000)) * 2
    with pytest.raises(BadCoding, match="more than 50000 bytes"):
        Inflater("gzip", largest=50_000).feed(twice)
    assert Inflater("gzip", largest=100_000).feed(bomb) == bytes(100_000)
