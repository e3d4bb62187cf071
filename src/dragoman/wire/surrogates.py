r"""Join surrogate pairs that were split: `"Hi \ud83d"` in one JSON frame, `"\ude00"` in the next.

Servers that cut text by UTF-16 units split emoji like this. msgspec rejects such frames; `loads` reads them.
`PairJoiner` holds the first half of a pair back until the second arrives, so all output can be encoded.
"""

from __future__ import annotations

import json
import re
from typing import Any

_LONE = re.compile(r"[\ud800-\udfff]")


def loads(data: bytes) -> Any:
    """Decode JSON that may hold lone surrogates. Raises ValueError like `json.loads`."""
    return json.loads(data)


def has_lone(text: str) -> bool:
    return _LONE.search(text) is not None


class PairJoiner:
    """Joins surrogate pairs across consecutive pieces of one text."""

    def __init__(self) -> None:
        self._half = ""

    def feed(self, text: str) -> str:
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half, text = text[-1], text[:-1]
        return _whole(text)

    def close(self) -> str:
        half, self._half = self._half, ""
        return _whole(half)


def _whole(text: str) -> str:
    # The UTF-16 round trip joins pairs. A lone surrogate becomes U+FFFD, because UTF-8 cannot encode it.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole(value: Any) -> Any:
    """A JSON value without lone surrogates."""
    if isinstance(value, str):
        return _whole(value) if has_lone(value) else value
    if isinstance(value, list):
        return [whole(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {whole(k): whole(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value
