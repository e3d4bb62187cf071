r"""Text whose emoji were cut in two: `"Hi \ud83d"` in one JSON frame, `"\ude00"` in the next.

Fast JSON readers refuse such frames; `loads` reads them, and `PairJoiner` holds the first half of a pair
back until the second arrives, so that everything given out can be encoded.
"""

from __future__ import annotations

import json
import re
from typing import Any

_LONE = re.compile(r"[\ud800-\udfff]")


def loads(data: bytes) -> Any:
    """JSON that may hold half a surrogate pair. Raises ValueError like `json.loads`."""
    return json.loads(data)


def has_lone(text: str) -> bool:
    return _LONE.search(text) is not None


class PairJoiner:
    """Joins surrogate halves over neighbouring pieces of one text."""

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
    # UTF-16 puts halves together; what stays alone becomes U+FFFD, since no wire can carry it.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def whole(value: Any) -> Any:
    """A JSON value without lone halves."""
    if isinstance(value, str):
        return _whole(value) if has_lone(value) else value
    if isinstance(value, list):
        return [whole(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {whole(k): whole(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType]
    return value
