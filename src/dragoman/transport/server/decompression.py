"""Decompresses request bodies (gzip, deflate, br, zstd) up to a maximum size.

aiohttp could do this, but accepts a truncated gzip body as complete.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, cast

import brotli  # pyright: ignore[reportMissingTypeStubs]

from .refusals import BodyTooLarge, BodyUnreadable, RefusedRequest

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdDecompressor, ZstdError
else:
    from backports.zstd import ZstdDecompressor, ZstdError

_brotli = cast(Any, brotli)  # it has no types
_GZIP = 16 + zlib.MAX_WBITS
_MAX_MEMBERS = 16
"""A gzip body may consist of several members. Real clients send one."""
_THREAD_SIZE = 64 * 1024
"""A compressed body of this size is decompressed in a thread, so that the event loop stays free."""
# Decompress in pieces, so that a compression bomb is noticed before it fills the memory.
_STEP = 1024 * 1024


async def decompressed(body: bytes, coding: str, max_size: int) -> bytes:
    """`body` without its content coding. Raises a `RefusedRequest`."""
    if coding == "identity":
        return body
    decompress = _DECOMPRESSORS.get(coding)
    if decompress is None:
        raise RefusedRequest(
            f"the content coding {coding[:40]!r} is not supported; use one of {', '.join(_DECOMPRESSORS)}",
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    if len(body) < _THREAD_SIZE:
        return decompress(body, max_size)
    return await asyncio.to_thread(decompress, body, max_size)


def _gzip(body: bytes, max_size: int) -> bytes:
    whole = bytearray()
    for _ in range(_MAX_MEMBERS):
        member = zlib.decompressobj(_GZIP)
        _inflate(member, body, whole, max_size)
        if not member.eof:
            raise BodyUnreadable
        body = member.unused_data.lstrip(b"\0")
        if not body:
            return bytes(whole)
    raise BodyUnreadable


def _deflate(body: bytes, max_size: int) -> bytes:
    # RFC 9110 wants deflate data in the zlib format, but some clients send raw deflate. The low half of the
    # first byte is 8 in the zlib format.
    is_zlib = bool(body) and body[0] & 15 == 8
    inflate = zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
    whole = bytearray()
    _inflate(inflate, body, whole, max_size)
    if not inflate.eof:
        raise BodyUnreadable
    return bytes(whole)


def _inflate(inflate: Any, body: bytes, whole: bytearray, max_size: int) -> None:
    try:
        whole += inflate.decompress(body, max_size - len(whole) + 1)
    except zlib.error:
        raise BodyUnreadable from None
    if len(whole) > max_size:
        raise BodyTooLarge


def _br(body: bytes, max_size: int) -> bytes:
    inflate = _brotli.Decompressor()
    whole = bytearray()
    try:
        chunk = inflate.process(body, output_buffer_limit=_STEP)
        while chunk:
            whole += chunk
            if len(whole) > max_size:
                raise BodyTooLarge
            chunk = b"" if inflate.is_finished() else inflate.process(b"", output_buffer_limit=_STEP)
    except _brotli.error:
        raise BodyUnreadable from None
    if not inflate.is_finished():
        raise BodyUnreadable
    return bytes(whole)


def _zstd(body: bytes, max_size: int) -> bytes:
    inflate = ZstdDecompressor()
    try:
        whole = inflate.decompress(body, max_size + 1)
    except ZstdError:
        raise BodyUnreadable from None
    if len(whole) > max_size:
        raise BodyTooLarge
    if not inflate.eof or inflate.unused_data:
        raise BodyUnreadable
    return whole


_DECOMPRESSORS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _deflate,
    "br": _br,
    "zstd": _zstd,
}
