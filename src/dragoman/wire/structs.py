"""Decode an upstream's JSON into structs or dicts: first strictly, which is fast, then leniently.

Lenient decoding accepts counts as strings or floats, lone surrogates, and NaN. JSON that even the lenient
decoder rejects raises `UpstreamError`.
"""

from __future__ import annotations

import json
from typing import Any, Generic, TypeVar

import msgspec

from ..model.errors import UpstreamError
from .surrogates import replace_lone_surrogates

T = TypeVar("T")


class JsonReader(Generic[T]):
    """Decodes frames, or raw members of frames, as values of one type: structs, or plain dicts.

    `pieces` names the members whose text continues in the next frame. A lone surrogate in them stays: the
    other half may follow, and the decoder joins both (`protocols/common/surrogate_joiner.py`). In all other
    members a lone surrogate is replaced.
    """

    def __init__(self, kind: type[T], pieces: frozenset[str] = frozenset()) -> None:
        self._kind = kind
        self._pieces = pieces
        self._raw = _raw_members(msgspec.inspect.type_info(kind))
        self._decode_lenient = msgspec.json.Decoder(kind, strict=False).decode
        self.strict = msgspec.json.Decoder(kind).decode
        """Raises msgspec.DecodeError."""

    def __call__(self, data: bytes) -> T:
        try:
            return self.strict(data)
        except (ValueError, RecursionError) as error:
            return self.lenient(data, error)

    def lenient(self, data: bytes, error: Exception) -> T:
        """Decode leniently. Raises UpstreamError, with the strict decoder's `error` as the reason."""
        try:
            return self._decode_lenient(data)
        except (ValueError, RecursionError):
            pass
        try:
            return msgspec.convert(self._replaced(json.loads(data)), self._kind, strict=False)
        except (ValueError, RecursionError):
            raise UpstreamError(f"the upstream sent an event that cannot be read: {error}") from None

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._replaced(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, dict):
            return {replace_lone_surrogates(k): self._member(k, v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        return replace_lone_surrogates(value)

    def _member(self, key: str, value: Any) -> Any:
        if key in self._pieces:
            return value if isinstance(value, str) else replace_lone_surrogates(value)
        if self._raw.get(key) == "one":
            return _as_raw(value)
        if self._raw.get(key) == "many" and isinstance(value, list):
            return [_as_raw(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
        return self._replaced(value)


def present(raw: msgspec.Raw) -> bytes:
    """The bytes of a raw member; empty if it is missing or null."""
    data = bytes(raw)
    return b"" if data == b"null" else data


def read_value(data: bytes | msgspec.Raw) -> Any:
    """Decode any JSON, and replace lone surrogates. Raises UpstreamError."""
    try:
        return msgspec.json.decode(data)
    except (ValueError, RecursionError) as error:
        try:
            return replace_lone_surrogates(json.loads(bytes(data)))
        except (ValueError, RecursionError):
            raise UpstreamError(f"the upstream sent an event that cannot be read: {error}") from None


def without_lone_surrogates(data: bytes) -> bytes:
    """The same JSON with lone surrogates replaced."""
    return msgspec.json.encode(read_value(data))


def _as_raw(value: Any) -> msgspec.Raw:
    # ASCII output keeps a lone surrogate as an escape. The decoder of this raw member handles it.
    return msgspec.Raw(json.dumps(value).encode())


def _raw_members(kind: msgspec.inspect.Type) -> dict[str, str]:
    """The members of a struct, and of nested structs, that stay raw: `one` value or a list (`many`)."""
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
