r"""Join surrogate pairs that were split: `"Hi \ud83d"` in one JSON frame, `"\ude00"` in the next.

Servers that cut text by UTF-16 units split emoji like this. msgspec rejects such frames; `json.loads` reads
them. `PairJoiner` holds the first half of a pair back until the second arrives, so all output can be encoded.
"""

from __future__ import annotations

import re
from typing import Any

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def has_lone_surrogate(text: str) -> bool:
    return _SURROGATE.search(text) is not None


class PairJoiner:
    """Joins surrogate pairs across consecutive pieces of one text."""

    def __init__(self) -> None:
        self._first_half = ""

    def feed(self, text: str) -> str:
        text = self._first_half + text
        self._first_half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._first_half, text = text[-1], text[:-1]
        return _join_pairs(text)

    def close(self) -> str:
        half, self._first_half = self._first_half, ""
        return _join_pairs(half)


def _join_pairs(text: str) -> str:
    # The UTF-16 round trip joins pairs. A lone surrogate becomes U+FFFD, because UTF-8 cannot encode it.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def replace_lone_surrogates(value: Any) -> Any:
    """A JSON value without lone surrogates."""
    if isinstance(value, str):
        return _join_pairs(value) if has_lone_surrogate(value) else value
    if isinstance(value, list):
        return [replace_lone_surrogates(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {replace_lone_surrogates(k): replace_lone_surrogates(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value
