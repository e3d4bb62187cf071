"""Request bodies that were packed for the way: gzip, deflate, br and zstd, undone within bounds.

aiohttp could do it, but takes a gzip body that was cut off for a whole one.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import brotli  # pyright: ignore[reportMissingTypeStubs]

from .refusals import BodyTooLarge, BodyUnreadable, Refusal

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

_brotli = cast(Any, brotli)  # it has no types
_GZIP = 16 + zlib.MAX_WBITS
_MOST_MEMBERS = 16
"""A gzip body may be several, one after another. Nobody sends many."""
_LONG = 64 * 1024
"""A packed body as long as this is unpacked in a thread, so that others get a turn."""
_STEP = 1024 * 1024


async def unpacked(body: bytes, coding: str, largest: int) -> bytes:
    """`body` without its content coding. Raises a `Refusal`."""
    if coding == "identity":
        return body
    unpack = _UNPACKERS.get(coding)
    if unpack is None:
        raise Refusal(
            f"the content coding {coding[:40]!r} is not known here; known are {', '.join(_UNPACKERS)}",
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    if len(body) < _LONG:
        return unpack(body, largest)
    return await asyncio.to_thread(unpack, body, largest)


def _gzip(body: bytes, largest: int) -> bytes:
    whole = bytearray()
    for _ in range(_MOST_MEMBERS):
        member = zlib.decompressobj(_GZIP)
        _inflate(member, body, whole, largest)
        if not member.eof:
            raise BodyUnreadable
        body = member.unused_data.lstrip(b"\0")
        if not body:
            return bytes(whole)
    raise BodyUnreadable


def _deflate(body: bytes, largest: int) -> bytes:
    # Deflate should come in zlib's wrapping; some send it bare. The wrapping begins with method 8.
    wrapped = bool(body) and body[0] & 15 == 8
    inflate = zlib.decompressobj(zlib.MAX_WBITS if wrapped else -zlib.MAX_WBITS)
    whole = bytearray()
    _inflate(inflate, body, whole, largest)
    if not inflate.eof:
        raise BodyUnreadable
    return bytes(whole)


def _inflate(inflate: Any, body: bytes, whole: bytearray, largest: int) -> None:
    try:
        whole += inflate.decompress(body, largest - len(whole) + 1)
    except zlib.error:
        raise BodyUnreadable from None
    if len(whole) > largest:
        raise BodyTooLarge


def _br(body: bytes, largest: int) -> bytes:
    inflate = _brotli.Decompressor()
    whole = bytearray()
    try:
        piece = inflate.process(body, output_buffer_limit=_STEP)
        while piece:
            whole += piece
            if len(whole) > largest:
                raise BodyTooLarge
            piece = b"" if inflate.is_finished() else inflate.process(b"", output_buffer_limit=_STEP)
    except _brotli.error:
        raise BodyUnreadable from None
    if not inflate.is_finished():
        raise BodyUnreadable
    return bytes(whole)


def _zstd(body: bytes, largest: int) -> bytes:
    inflate = ZstdDecompressor()
    try:
        whole = inflate.decompress(body, largest + 1)
    except ZstdError:
        raise BodyUnreadable from None
    if len(whole) > largest:
        raise BodyTooLarge
    if not inflate.eof or inflate.unused_data:
        raise BodyUnreadable
    return whole


_UNPACKERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _br,
    "zstd": _zstd,
}
