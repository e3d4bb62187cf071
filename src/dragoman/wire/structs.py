"""JSON into structs: strictly, which is fast, or else as loosely as servers are sloppy.

Loose is: counts as strings or as floats, half an emoji, NaN. Whatever cannot be read even so is the
upstream's fault, and this is the one place that says it.
"""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

import msgspec

from ..model.errors import UpstreamError
from . import surrogates

T = TypeVar("T", bound=msgspec.Struct)


class StructReader(Generic[T]):
    """Reads frames, and what is kept raw inside of them, as structs of one kind.

    `pieces` names the members whose text goes on in the next frame: half a surrogate pair at their end is
    left as it is, for whoever puts the text together. Everywhere else it is mended.
    """

    def __init__(self, kind: type[T], pieces: frozenset[str] = frozenset()) -> None:
        self._kind = kind
        self._pieces = pieces
        self._raw = _raw_members(msgspec.inspect.type_info(kind))
        self._loose = msgspec.json.Decoder(kind, strict=False).decode
        self.strictly = msgspec.json.Decoder(kind).decode
        """Raises msgspec.DecodeError."""

    def __call__(self, data: bytes) -> T:
        try:
            return self.strictly(data)
        except (ValueError, RecursionError) as error:
            return self.loosely(data, error)

    def loosely(self, data: bytes, error: Exception) -> T:
        """Raises UpstreamError, with the strict reader's `error` as the reason."""
        try:
            return self._loose(data)
        except (ValueError, RecursionError):
            pass
        try:
            return msgspec.convert(self._mended(surrogates.loads(data)), self._kind, strict=False)
        except (ValueError, RecursionError):
            raise UpstreamError(f"the upstream sent an event that cannot be read: {error}") from None

    def _mended(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._mended(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, dict):
            return {surrogates.whole(k): self._member(k, v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return surrogates.whole(value)

    def _member(self, key: str, value: Any) -> Any:
        if key in self._pieces:
            return value if isinstance(value, str) else surrogates.whole(value)
        if self._raw.get(key) == "one":
            return _as_raw(value)
        if self._raw.get(key) == "many" and isinstance(value, list):
            return [_as_raw(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
        return self._mended(value)


def present(raw: msgspec.Raw) -> bytes:
    """What is kept raw; nothing where it is missing or null."""
    data = bytes(raw)
    return b"" if data == b"null" else data


def read_value(data: bytes) -> Any:
    """Any JSON, halves of emoji mended. Raises UpstreamError."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        try:
            return surrogates.whole(surrogates.loads(data))
        except (ValueError, RecursionError):
            raise UpstreamError(f"the upstream sent an event that cannot be read: {error}") from None


def mended(data: bytes) -> bytes:
    """The same JSON, halves of emoji mended."""
    return msgspec.json.encode(read_value(data))


def _as_raw(value: Any) -> msgspec.Raw:
    # In ASCII, so that a lone half stays an escape: whoever reads this in turn decides about it.
    return msgspec.Raw(json.dumps(value).encode())


def _raw_members(kind: msgspec.inspect.Type) -> dict[str, str]:
    """Which members of a struct (and of those inside of it) are kept raw, alone or as a list."""
    found: dict[str, str] = {}
    match kind:
        case msgspec.inspect.StructType(fields=fields):
            for field in fields:
                for inner in _alternatives(field.type):
                    if isinstance(inner, msgspec.inspect.RawType):
                        found[field.encode_name] = "one"
                    elif isinstance(inner, msgspec.inspect.ListType):
                        if isinstance(inner.item_type, msgspec.inspect.RawType):
                            found[field.encode_name] = "many"
                        found |= _raw_members(inner.item_type)
                    else:
                        found |= _raw_members(inner)
        case _:
            pass
    return found


def _alternatives(kind: msgspec.inspect.Type) -> tuple[msgspec.inspect.Type, ...]:
    return kind.types if isinstance(kind, msgspec.inspect.UnionType) else (kind,)
