"""Content codings: gzip, deflate, br and zstd are undone piece by piece, any other is an error."""

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
_PIECE = 64 * 1024  # a few bytes can stand for a thousand times as many: they are given out in pieces
_GZIP = 16 + zlib.MAX_WBITS


class _Coding(Protocol):
    """What one library knows. A body may hold several, one after another."""

    over: bool
    """It has found its end."""
    rest: bytes
    """What it has been given and has not read, because it is over or has enough to give out."""
    more: bool
    """It has more to give out already."""

    def give(self, data: bytes) -> bytes:
        """At most about `_PIECE` bytes of what `data` stands for."""
        ...


def decoder_for(coding: str) -> Decoder | None:
    """What undoes `coding`, the `content-encoding` of an answer. None: nothing is to be done."""
    name = coding.strip().lower()
    if name in ("", "identity"):
        return None
    make = _CODINGS.get(name)
    if make is None:
        raise UnknownCoding(f"sends its answer in the unknown content coding {coding[:40]!r}")
    return Decoder(make)


class Decoder:
    """Undoes one content coding."""

    __slots__ = ("_coding", "_make", "_waiting")

    def __init__(self, make: Callable[[bytes], _Coding]) -> None:
        self._make = make
        self._coding: _Coding | None = None
        self._waiting = b""

    def feed(self, data: bytes) -> bytes:
        """The next piece of what `data`, and what was fed before, stands for. Empty: it needs more."""
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
                data = data.lstrip(b"\0")  # what fills up a block
            if piece:
                self._waiting = data
                return piece
        return b""

    def end(self) -> None:
        """The body is over: complain if it was cut."""
        if self._coding is not None:
            raise CutOff("broke off in the middle of a compressed answer")


class _Zlib:
    """gzip, or deflate in zlib's wrapping or bare."""

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
        # zlib may have taken all input and still hold output; it is asked again with nothing new.
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
        piece: bytes = inflate.process(data, output_buffer_limit=_PIECE // 4)  # it goes beyond
        self.over = inflate.is_finished()
        self.more = not self.over and bool(piece)  # it does not tell whether it holds more: ask again
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
    # It should come in zlib's wrapping, which begins with method 8. Some servers leave the wrapping out.
    return _Zlib(zlib.MAX_WBITS if data[0] & 15 == 8 else -zlib.MAX_WBITS)


_CODINGS: dict[str, Callable[[bytes], _Coding]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": lambda _: _Brotli(),
    "zstd": lambda _: _Zstd(),
}
