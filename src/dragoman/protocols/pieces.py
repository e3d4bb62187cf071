"""A request's body put together out of pieces that are JSON already, so that what is long is copied once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


class Items(msgspec.Struct, frozen=True):
    """An array. Each piece is the JSON of one item, or of several with commas between them."""

    pieces: Sequence[bytes | memoryview]


def encode(members: Mapping[str, Any]) -> bytes:
    """The object of these members; those that are long may be `Items` or `msgspec.Raw`."""
    if not any(isinstance(value, Items) for value in members.values()):
        return _encode(members)
    pieces: list[Any] = []
    for key, value in members.items():
        pieces += (b",", _encode(key), b":")
        if isinstance(value, Items):
            pieces += (b"[", *_apart(value.pieces), b"]")
        else:
            pieces.append(value if isinstance(value, msgspec.Raw) else _encode(value))
    pieces[0] = b"{"
    pieces.append(b"}")
    return b"".join(pieces)


def plain(value: Any) -> Any:
    """A member as what it says."""
    if isinstance(value, Items):
        return msgspec.json.decode(b"".join((b"[", *_apart(value.pieces), b"]")))
    return msgspec.json.decode(value) if isinstance(value, msgspec.Raw) else value


def _apart(pieces: Sequence[bytes | memoryview]) -> list[bytes | memoryview]:
    """With commas between them."""
    apart: list[bytes | memoryview] = [b","] * (2 * len(pieces) - 1)
    apart[::2] = pieces
    return apart
