"""Join arguments that Vertex streams as `partialArgs`: each has a JSON path and a part of a value.

The arguments become text only at the end of the call, because a piece may belong to any path.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec

_STEP = re.compile(r"\.([^.\[\]]+)|\['((?:[^'\\]|\\.)*)'\]|\[(\d+)\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class PartialArguments:
    """Builds the arguments of one call."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}

    def add(self, pieces: list[dict[str, Any]]) -> None:
        for piece in pieces:
            steps = [_key(match) for match in _STEP.finditer(str(piece.get("jsonPath", "")))]
            kind = next((name for name in _VALUES if name in piece), None)
            if steps and kind is not None:
                self._set(steps, None if kind == "nullValue" else piece[kind])

    def text(self) -> str:
        return msgspec.json.encode(self._root).decode()

    def _set(self, steps: list[str | int], value: Any) -> None:
        here: Any = self._root
        for step, following in pairwise(steps):
            here = _child(here, step, [] if isinstance(following, int) else {})
        last = steps[-1]
        before = _child(here, last, None)
        # Only strings come in several pieces.
        here[last] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _key(match: re.Match[str]) -> str | int:
    if match[3] is not None:
        return int(match[3])
    return match[1] if match[1] is not None else match[2]


def _child(here: Any, step: str | int, default: Any) -> Any:
    """`here[step]`, created if it is missing. An index beyond the end is an error of the upstream."""
    if isinstance(step, int):
        if not isinstance(here, list) or step > len(here):  # pyright: ignore[reportUnknownArgumentType]
            raise ValueError("the upstream sent a partial argument that skips elements of a list")
        if step == len(here):  # pyright: ignore[reportUnknownArgumentType]
            here.append(default)  # pyright: ignore[reportUnknownMemberType]
        return here[step]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(here, dict):
        raise ValueError("the upstream sent a partial argument that contradicts an earlier one")
    return here.setdefault(step, default)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
