"""Decompress answers piece by piece: gzip, deflate, br and zstd. Any other content coding is an error.

libcurl could do it, but the libcurl of the pycurl wheels has no zstd.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any, Protocol, cast

import brotli  # pyright: ignore[reportMissingTypeStubs]

from .errors import CutOff, Malformed, UnknownCoding

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

_brotli = cast(Any, brotli)  # it has no types
# The largest piece of output. A few compressed bytes may expand to a thousand times their size ("zip bomb"),
# so the output comes in pieces, and the reader can stop.
_PIECE = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS


class _Coding(Protocol):
    """The decompressor of one compressed stream. A body may contain several streams, one after another."""

    over: bool
    """The stream has ended."""
    rest: bytes
    """Input that is not read yet: it follows the stream's end, or the output piece is full."""
    more: bool
    """More output is ready without new input."""

    def give(self, data: bytes) -> bytes:
        """Decompress `data`. Returns about `_PIECE` bytes at most."""
        ...


def decoder_for(coding: str) -> BodyDecoder | None:
    """The decoder for a `content-encoding`; None if the body is not compressed."""
    name = coding.strip().lower()
    if name in ("", "identity"):
        return None
    make = _CODINGS.get(name)
    if make is None:
        raise UnknownCoding(f"sends its answer in the unknown content coding {coding[:40]!r}")
    return BodyDecoder(make)


class BodyDecoder:
    """Takes the compressed pieces of one body and returns the decompressed ones."""

    __slots__ = ("_coding", "_make", "_waiting")

    def __init__(self, make: Callable[[bytes], _Coding]) -> None:
        self._make = make
        self._coding: _Coding | None = None
        self._waiting = b""

    def feed(self, data: bytes) -> bytes:
        """The next piece of output. Empty: the decoder needs more input."""
        data = self._waiting + data if self._waiting else data
        self._waiting = b""
        while data or (self._coding is not None and self._coding.more):
            if self._coding is None:
                self._coding = self._make(data)
            coding = self._coding
            try:
                piece = coding.give(data)
            except (zlib.error, ZstdError, _brotli.error, EOFError, ValueError):
                raise Malformed("sends a body that is not what its content coding says") from None
            data = coding.rest
            if coding.over:
                self._coding = None
                data = data.lstrip(b"\0")  # some servers pad a gzip stream with zeros
            if piece:
                self._waiting = data
                return piece
        return b""

    def end(self) -> None:
        """Call this at the end of the body. Raises `CutOff` if the compressed stream is incomplete."""
        if self._coding is not None:
            raise CutOff("broke off in the middle of a compressed answer")


class _Zlib:
    """gzip, or deflate with or without the zlib header."""

    __slots__ = ("_inflate", "more", "over", "rest")

    def __init__(self, bits: int) -> None:
        self._inflate = zlib.decompressobj(bits)
        self.over = self.more = False
        self.rest = b""

    def give(self, data: bytes) -> bytes:
        inflate = self._inflate
        piece = inflate.decompress(data, _PIECE)
        self.over = inflate.eof
        self.rest = inflate.unused_data if inflate.eof else inflate.unconsumed_tail
        # zlib may have read all input and still hold output. Then call it again without new input.
        self.more = not inflate.eof and not self.rest and len(piece) == _PIECE
        return piece


class _Brotli:
    __slots__ = ("_inflate", "more", "over", "rest")

    def __init__(self) -> None:
        self._inflate = _brotli.Decompressor()
        self.over = self.more = False
        self.rest = b""

    def give(self, data: bytes) -> bytes:
        inflate = self._inflate
        if not inflate.can_accept_more_data():
            self.rest = data
            data = b""
        else:
            self.rest = b""
        # The output exceeds this limit, because the library finishes the block that it has begun.
        piece: bytes = inflate.process(data, output_buffer_limit=_PIECE // 4)
        self.over = inflate.is_finished()
        # The library does not say whether it holds more output. So call it again until it returns nothing.
        self.more = not self.over and bool(piece)
        return piece


class _Zstd:
    __slots__ = ("_inflate", "more", "over", "rest")

    def __init__(self) -> None:
        self._inflate = ZstdDecompressor()
        self.over = self.more = False
        self.rest = b""

    def give(self, data: bytes) -> bytes:
        inflate = self._inflate
        piece = inflate.decompress(data, _PIECE)
        self.over = inflate.eof
        self.rest = inflate.unused_data if inflate.eof else b""
        self.more = not inflate.eof and not inflate.needs_input
        return piece


def _gzip(data: bytes) -> _Coding:
    return _Zlib(_GZIP)


def _deflate(data: bytes) -> _Coding:
    # RFC 9110 wants a zlib header, whose first byte ends with method 8. Some servers send raw deflate data.
    return _Zlib(zlib.MAX_WBITS if data[0] & 15 == 8 else -zlib.MAX_WBITS)


_CODINGS: dict[str, Callable[[bytes], _Coding]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": lambda _: _Brotli(),
    "zstd": lambda _: _Zstd(),
}
