"""Bodies that were made smaller for the way: gzip and deflate, undone as they come."""

from __future__ import annotations

import zlib

CODINGS = frozenset({"gzip", "x-gzip", "deflate"})
"""The content codings an `Inflater` undoes."""

_GZIP = 16 + zlib.MAX_WBITS
# A few bytes can stand for thousands: more than that of one piece is an attack, or a mistake.
_LARGEST = 32 * 1024 * 1024


class BadCoding(ValueError):
    """A body is not what its content coding says."""


class Overgrown(BadCoding):
    """A body grows to more than it may."""


class Inflater:
    """Undoes one coding; a piece may grow to `largest` bytes."""

    __slots__ = ("_begun", "_coding", "_inflate", "_largest")

    def __init__(self, coding: str, largest: int = _LARGEST) -> None:
        if coding not in CODINGS:
            raise BadCoding(f"the content coding {coding!r} is not known here")
        self._coding = coding
        self._largest = largest
        self._inflate = zlib.decompressobj(_GZIP)
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        """What `data` adds."""
        if not data:
            return b""
        if not self._begun:
            self._begin(data)
        try:
            grown = self._grow(data)
        except zlib.error:
            raise BadCoding(f"the body is no {self._coding}, though its head says so") from None
        if self._inflate.unconsumed_tail:
            raise Overgrown(f"the body grows to more than {self._largest} bytes at once")
        return grown

    def end(self) -> None:
        """The body is over: complain if it was cut."""
        if self._begun and not self._inflate.eof:
            raise BadCoding(f"the {self._coding} body is cut off")

    def _begin(self, data: bytes) -> None:
        self._begun = True
        if self._coding == "deflate":
            # Deflate should come in zlib's wrapping; some send it bare. The wrapping begins with method 8.
            self._inflate = zlib.decompressobj(zlib.MAX_WBITS if data[0] & 15 == 8 else -zlib.MAX_WBITS)

    def _grow(self, data: bytes) -> bytes:
        grown = b""
        # A gzip body may be several, one after another.
        while data:
            if self._inflate.eof:
                if self._coding == "deflate" or not (data := data.lstrip(b"\0")):
                    break
                self._inflate = zlib.decompressobj(_GZIP)
            grown += self._inflate.decompress(data, max(1, self._largest - len(grown)))
            data = self._inflate.unused_data
            if self._inflate.unconsumed_tail:
                break
        return grown
