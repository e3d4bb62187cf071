"""What is sent with a request: one piece or many, and large bodies in portions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Piece = bytes | memoryview
Body = bytes | Sequence[Piece]
"""Pieces are sent one after another. What a view shows must stay as it is until the answer is there."""

# A body as large as that is sent in portions, so that others get a turn.
LARGE = 1024 * 1024
_PORTION = 256 * 1024
MOST_PIECES = 1024  # in one portion


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


def _cut(pieces: list[Piece]) -> Iterator[Piece]:
    """None longer than a portion."""
    for piece in pieces:
        if len(piece) <= _PORTION:
            yield piece
        else:
            view = memoryview(piece)
            for at in range(0, len(view), _PORTION):
                yield view[at : at + _PORTION]
