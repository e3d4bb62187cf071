"""Arguments that came in one piece and are so plainly right that no rule could have a say."""

from __future__ import annotations

import functools
import json
from typing import Any

from ..rules.tables import squash
from ..schema import ToolSchema
from .members import TOOL_NAMES

_pairs = json.JSONDecoder(object_pairs_hook=list)
# Null may mean "not given", a number with a point may be an integer, and whatever holds members or items
# has places where a rule may apply.
_PLAIN = frozenset({str, int, bool})


def plain_value(text: str, schema: ToolSchema) -> dict[str, Any] | None:
    """The arguments, if all members are declared, plain, and fit; None leaves them to the corrector."""
    if text[:1] != "{" or text[-1:] != "}" or "\\ud" in text or "\\uD" in text:
        return None
    try:
        pairs: list[tuple[str, Any]] = _pairs.decode(text)
    except (ValueError, RecursionError):
        return None
    value = dict(pairs)
    if not value or len(value) != len(pairs):
        return None
    declared = schema.properties
    for name, item in pairs:
        if type(item) not in _PLAIN or name not in declared or _names_tool(name):
            return None
    return value if schema.fits(value) else None


@functools.lru_cache(maxsize=4096)
def _names_tool(name: str) -> bool:
    """Such a member may be the name on a wrapper."""
    return squash(name) in TOOL_NAMES
