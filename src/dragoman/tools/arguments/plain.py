"""Arguments that came in one piece and are so plainly right that no rule could have a say."""

from __future__ import annotations

import functools
import json
from typing import Any

import msgspec

from ..rules.tables import squash
from ..schema import ToolSchema
from .members import TOOL_NAMES

# Null may mean "not given", a number with a point may be an integer, and whatever holds members or items
# has places where a rule may apply.
_read = msgspec.json.Decoder(dict[str, str | int | bool]).decode
_pairs = json.JSONDecoder(object_pairs_hook=list).decode


def plain_value(text: str, schema: ToolSchema) -> dict[str, Any] | None:
    """The arguments, if all members are declared, plain, and fit; None leaves them to the corrector."""
    escaped = "\\u" in text
    if text[:1] != "{" or text[-1:] != "}" or (escaped and ("\\ud" in text or "\\uD" in text)):
        return None
    try:
        value = _read(text)
    except (ValueError, RecursionError):
        return None
    if not value or not value.keys() <= _names(schema):
        return None
    if _may_repeat(value, text, escaped) and _repeats(text):
        return None
    return value if schema.fits(value) else None


def _may_repeat(value: dict[str, Any], text: str, escaped: bool) -> bool:
    """May a name be there twice? A word without escapes is written in one way only."""
    if escaped:
        return True
    for name in value:  # noqa: SIM110 - a generator costs more than the look
        if text.count(f'"{name}"') != 1 or not name.isidentifier():
            return True
    return False


def _repeats(text: str) -> bool:
    pairs: list[tuple[str, Any]] = _pairs(text)
    return len(dict(pairs)) != len(pairs)


@functools.lru_cache(maxsize=1024)
def _names(schema: ToolSchema) -> frozenset[str]:
    """The declared members, but for those that may be the name on a wrapper."""
    return frozenset(name for name in schema.properties if squash(name) not in TOOL_NAMES)
