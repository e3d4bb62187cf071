"""Stored keys as rows of a table: the part that every engine shares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from .types import StoredKey

KEY = StoredKey.__struct_fields__
"""The columns. `models` is JSON."""
_MODELS = KEY.index("models")


def key_row(key: StoredKey) -> list[Any]:
    row = [getattr(key, name) for name in KEY]
    row[_MODELS] = msgspec.json.encode(key.models).decode()
    return row


def key_of(row: Sequence[Any]) -> StoredKey:
    values: dict[str, Any] = dict(zip(KEY, row, strict=True))
    values["models"] = tuple(msgspec.json.decode(values["models"]))
    return StoredKey(**values)
