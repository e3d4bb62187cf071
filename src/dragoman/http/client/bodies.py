"""What is sent with a request: one piece or many, not joined where the socket takes them as they are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence

Piece = bytes | memoryview
Body = bytes | Sequence[Piece]
"""Pieces are sent one after another. What a view shows must stay as it is until the answer is there."""

# A body as large as that is sent in portions, so that others get a turn.
LARGE = 1024 * 1024
_PORTION = 256 * 1024
MOST_PIECES = 1024  # at once: IOV_MAX, the same wherever there is a `writev`


def portions(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """`pieces` in portions that can be written without keeping others waiting for long."""
    portion: list[Piece] = []
    left = _PORTION
    for piece in _cut(pieces):
        if len(piece) > left or len(portion) == MOST_PIECES:
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


def write(transport: asyncio.Transport, socket: int, pieces: list[Piece], size: int) -> bool:
    """All `size` bytes. True: the system took them in one call. False: the rest waits in the transport."""
    if socket >= 0 and transport.get_write_buffer_size() == 0 and not transport.is_closing():
        try:
            sent = os.writev(socket, pieces)
        except OSError:  # it is full, or broken: the transport will meet the same, and knows what to do then
            sent = 0
        if sent == size:
            return True
        pieces = _unsent(pieces, sent)
    if socket < 0:
        pieces = [b"".join(pieces)]
    for piece in pieces:
        transport.write(piece)
    return transport.get_write_buffer_size() == 0


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
