"""JSON in pieces: what is long, and known already, is neither encoded again nor copied.

So a conversation that goes on is held once, though each of its requests has all of it again: its pieces
belong to all of them, as they came and as they are sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode

# Bytes. To copy less than that costs less than to carry it apart.
_SMALL = 16 * 1024

Body = bytes | bytearray
"""A request as it came. Nobody writes to it."""
Piece = bytes | memoryview


class Whole(msgspec.Struct, frozen=True):
    """Any value, in pieces that are cut anywhere."""

    pieces: Sequence[Piece]

    def __deepcopy__(self, memo: object) -> Whole:
        return self  # nothing in it changes, and a view cannot be copied


_ELSEWHERE = msgspec.Raw(b"")
"""The value of a member that is written in pieces."""


def encode(members: Mapping[str, Any]) -> bytes:
    """The object of these members; those that are long may be `Whole` or `msgspec.Raw`."""
    return b"".join(written(members))


def written(members: Mapping[str, Any]) -> list[Piece]:
    """The same in pieces, few of them, which are sent one after another."""
    # By the class itself: `isinstance` asks a struct's metaclass, and takes longer.
    return few(_apart(members)) if Whole in map(type, members.values()) else [_encode(members)]


class Around(msgspec.Struct, frozen=True):
    """An object, written but for one of its members."""

    before: list[Piece]
    after: list[Piece]

    def written(self, member: Whole) -> list[Piece]:
        """With it."""
        return [*self.before, *member.pieces, *self.after]


def around(members: Mapping[str, Any], name: str) -> Around:
    """The object of these members but for the one of that name, whatever it is."""
    gap = memoryview(b"")
    pieces = _apart({**members, name: Whole((gap,))})
    at = next(at for at, piece in enumerate(pieces) if piece is gap)
    return Around(few(pieces[:at]), few(pieces[at + 1 :]))


def _apart(members: Mapping[str, Any]) -> list[Piece]:
    """The object with what is long in pieces of its own."""
    pieces: list[Piece] = []
    begins = b"{"
    short: dict[str, Any] = {}
    for key, value in members.items():
        short[key] = value
        if type(value) is Whole:
            long = value.pieces
        elif type(value) is msgspec.Raw and len(value) >= _SMALL:
            long = (memoryview(value),)
        else:
            continue
        short[key] = _ELSEWHERE
        pieces.append(begins + _encode(short)[1:-1])
        pieces += long
        begins, short = b",", {}
    pieces.append(begins + _encode(short)[1:] if short else b"}")
    return pieces


def few(pieces: Sequence[Piece]) -> list[Piece]:
    """The same pieces, short neighbours as one."""
    result: list[Piece] = []
    short: list[Piece] = []
    for piece in pieces:
        if len(piece) < _SMALL:
            short.append(piece)
            continue
        if short:
            result.append(b"".join(short))
            short = []
        result.append(piece)
    if short:
        result.append(b"".join(short))
    return result


def plain(value: Any) -> Any:
    """A member as what it says."""
    if type(value) is Whole:
        return msgspec.json.decode(b"".join(value.pieces))
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def grown(pieces: Sequence[T | memoryview], more: Sequence[T | Piece]) -> list[T | memoryview]:
    """`pieces` with `more` behind them. What is less than twice as long as what follows it becomes one with
    that: so there are few pieces of something that grows by and by, and none of it is copied often."""
    left: list[Any] = [*pieces, *more]
    done: list[Any] = []
    while len(left) > len(pieces):
        run = [left.pop()]
        if _is_bytes(run[0]):
            size = len(run[0])
            while left and _is_bytes(left[-1]) and len(left[-1]) < 2 * size:
                size += len(left[-1])
                run.append(left.pop())
            run = [memoryview(b"".join(reversed(run)) if len(run) > 1 else run[0])]
        done += run
    return [*left, *reversed(done)]


def _is_bytes(piece: Any) -> bool:
    return type(piece) is memoryview or type(piece) is bytes
