"""Content codings: gzip, br and zstd are undone by the library, deflate here, any other is an error."""

from __future__ import annotations

import zlib

from .errors import CutOff, Malformed, UnknownCoding

_PIECE = 64 * 1024  # a few bytes can stand for a thousand times as many: they are given out in pieces


def decoder_for(coding: str) -> Deflate | None:
    """What undoes `coding`, the `content-encoding` that the library has left. None: nothing is to be done."""
    match coding.strip().lower():
        case "" | "identity":
            return None
        case "deflate" | "gzip" | "x-gzip":  # the library knows gzip in lower case only
            return Deflate()
        case _:
            raise UnknownCoding(f"sends its answer in the unknown content coding {coding[:40]!r}")


class Deflate:
    """Undoes deflate, in zlib's wrapping or bare, or gzip."""

    __slots__ = ("_begun", "_inflate")

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(32 + zlib.MAX_WBITS)  # in the wrapping of zlib or gzip
        self._begun = False

    @property
    def waiting(self) -> bytes:
        """What was fed and not undone yet: feed it again."""
        return self._inflate.unconsumed_tail

    def feed(self, data: bytes) -> bytes:
        """What `data` stands for, or the first piece of it."""
        if not data:
            return b""
        if not self._begun and data[0] & 15 != 8 and data[0] != 0x1F:  # some servers leave the wrapping out
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        self._begun = True
        try:
            return self._inflate.decompress(data, _PIECE)
        except zlib.error:
            raise Malformed("sends a body that is not what its content coding says") from None

    def end(self) -> None:
        """The body is over: complain if it was cut."""
        if self._begun and not self._inflate.eof:
            raise CutOff("broke off in the middle of a compressed answer")
