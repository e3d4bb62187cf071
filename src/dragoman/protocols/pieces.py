"""A request's body out of pieces that are JSON already: what is long is neither encoded again nor copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode

# Bytes. To copy less than that costs less than to carry it apart.
_SMALL = 16 * 1024

Piece = bytes | memoryview


class Items(msgspec.Struct, frozen=True):
    """An array. Each piece is the JSON of one item, or of several with commas between them."""

    pieces: Sequence[Piece]


def encode(members: Mapping[str, Any]) -> bytes:
    """The object of these members; those that are long may be `Items` or `msgspec.Raw`."""
    return b"".join(written(members))


def written(members: Mapping[str, Any]) -> list[Piece]:
    """The same in pieces, few of them, which are sent one after another."""
    if Items not in map(type, members.values()):
        return [_encode(members)]
    return list(_few(_members(members)))


def plain(value: Any) -> Any:
    """A member as what it says."""
    if isinstance(value, Items):
        return msgspec.json.decode(b"".join(_array(value.pieces)))
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _members(members: Mapping[str, Any]) -> Iterator[Piece]:
    before = b"{"
    for key, value in members.items():
        yield before + _encode(key) + b":"
        if isinstance(value, Items):
            yield from _array(value.pieces)
        else:
            yield memoryview(value) if isinstance(value, msgspec.Raw) else _encode(value)
        before = b","
    yield b"}"


def _array(pieces: Sequence[Piece]) -> Iterator[Piece]:
    before = b"["
    for piece in pieces:
        yield before
        yield piece
        before = b","
    yield b"]" if pieces else b"[]"


def _few(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Small neighbours as one."""
    small: list[Piece] = []
    for piece in pieces:
        if len(piece) < _SMALL:
            small.append(piece)
            continue
        if small:
            yield b"".join(small)
            small = []
        yield piece
    if small:
        yield b"".join(small)
