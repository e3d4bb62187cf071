"""What is sent with a request: one piece or many, not joined where the socket takes them as they are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence

Piece = bytes | memoryview
Body = bytes | Sequence[Piece]
"""Pieces are sent one after another. What a view shows must stay as it is until the answer is there."""

# A body as large as that is sent in portions, so that others get a turn.
_LARGE = 1024 * 1024
_PORTION = 256 * 1024
_MOST_PIECES = 1024  # at once: IOV_MAX, the same wherever there is a `writev`


def is_one_portion(pieces: list[Piece], size: int) -> bool:
    """Are `pieces`, `size` bytes of them, few enough to be written without letting others have a turn?"""
    return size < _LARGE and len(pieces) <= _MOST_PIECES


def portions(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """`pieces` in portions that are."""
    portion: list[Piece] = []
    left = _PORTION
    for piece in _cut(pieces):
        if len(piece) > left or len(portion) == _MOST_PIECES:
            yield portion
            portion, left = [], _PORTION
        portion.append(piece)
        left -= len(piece)
    yield portion


def gathering(transport: asyncio.Transport) -> int:
    """The socket, where it takes pieces as they are; -1: TLS would make a record, and a call, of each."""
    sock = transport.get_extra_info("socket")
    if sock is None or transport.get_extra_info("sslcontext") is not None or not hasattr(os, "writev"):
        return -1
    return sock.fileno()


def write(transport: asyncio.Transport, socket: int, pieces: list[Piece], size: int) -> None:
    """All `size` bytes: what the socket takes in one call to the system; the rest waits in the transport."""
    if socket < 0:
        transport.write(b"".join(pieces))
        return
    if transport.get_write_buffer_size() == 0 and not transport.is_closing():
        sent = _taken(socket, pieces)
        if sent == size:
            return
        pieces = _unsent(pieces, sent)
    for piece in pieces:
        transport.write(piece)


def _taken(socket: int, pieces: list[Piece]) -> int:
    try:
        return os.writev(socket, pieces)
    except OSError:  # it is full, or broken: the transport will meet the same, and knows what to do then
        return 0


def _unsent(pieces: list[Piece], sent: int) -> list[Piece]:
    for at, piece in enumerate(pieces):
        if sent < len(piece):
            return [memoryview(piece)[sent:], *pieces[at + 1 :]]
        sent -= len(piece)
    return []


def _cut(pieces: list[Piece]) -> Iterator[Piece]:
    """None longer than a portion."""
    for piece in pieces:
        if len(piece) <= _PORTION:
            yield piece
        else:
            view = memoryview(piece)
            for at in range(0, len(view), _PORTION):
                yield view[at : at + _PORTION]
