"""The first difference between two canonical requests, and how near they are to each other."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any, cast

import msgspec

from .canonical import Form

_SHOWN = 60
_MISSING = object()


class Difference(msgspec.Struct, frozen=True):
    """Where two requests differ first, and both values, shortened."""

    path: str
    recorded: str
    asked: str

    def __str__(self) -> str:
        return f"{self.path}: the recording has {self.recorded}, the request has {self.asked}"


def first_difference(recorded: Form, asked: Form) -> Difference | None:
    return _differs("", recorded, asked)


def nearness(recorded: Form, asked: Form) -> tuple[int, int, int]:
    """The larger, the nearer: by equal turns from the beginning, then by the length of the conversation."""
    same = 0
    for left, right in zip(recorded["messages"], asked["messages"], strict=False):
        if left != right:
            break
        same += 1
    others = sum(recorded[key] == asked[key] for key in recorded if key != "messages")
    return same, others, -abs(len(recorded["messages"]) - len(asked["messages"]))


def _differs(path: str, recorded: Any, asked: Any) -> Difference | None:
    if recorded == asked:
        return None
    if isinstance(recorded, dict) and isinstance(asked, dict):
        left, right = cast(Form, recorded), cast(Form, asked)
        for key in dict.fromkeys((*left, *right)):
            inner = f"{path}.{key}" if path else key
            if found := _differs(inner, left.get(key, _MISSING), right.get(key, _MISSING)):
                return found
    if isinstance(recorded, list) and isinstance(asked, list):
        pairs = zip_longest(cast(list[Any], recorded), cast(list[Any], asked), fillvalue=_MISSING)
        for number, (one, other) in enumerate(pairs):
            if found := _differs(f"{path}[{number}]", one, other):
                return found
    if isinstance(recorded, str) and isinstance(asked, str):
        return Difference(path, *_around(recorded, asked))
    return Difference(path, _shown(recorded), _shown(asked))


def _around(recorded: str, asked: str) -> tuple[str, str]:
    """Both texts around the first character that differs."""
    pairs = enumerate(zip(recorded, asked, strict=False))
    at = next((n for n, (one, other) in pairs if one != other), min(len(recorded), len(asked)))
    start = max(0, at - _SHOWN // 3)
    lead = "…" if start else ""
    cut = (
        text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")
        for text in (recorded, asked)
    )
    one, other = (repr(lead + text) for text in cut)
    return one, other


def _shown(value: Any) -> str:
    if value is _MISSING:
        return "nothing"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
