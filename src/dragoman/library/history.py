"""An assistant's turn as the provider's history wants it back, put together from what was received.

It goes back as the provider gave it, signatures and all. Only what a provider would refuse from its own
model is put right: arguments that are no JSON object, texts without words, calls without a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..protocols.common.fields import is_object
from ..tools.json_text import NotJson, parse_plain
from .calls import Finished

Obj = dict[str, Any]


def parsed(text: Any) -> Obj | None:
    """The object this text stands for, if it does."""
    try:
        value: Any = parse_plain(text) if isinstance(text, str) else text
    except NotJson:
        return None
    return value if is_object(value) else None


def readable(text: str, call: Finished | None) -> str:
    """Arguments as given where they can be read, else as mended, else none."""
    if parsed(text) is not None:
        return text
    return msgspec.json.encode((call.arguments if call else None) or {}).decode()


def native(calls: Iterable[Finished]) -> list[Finished]:
    """The calls that stand in the provider's history as calls."""
    return [call for call in calls if not call.recovered]


def by_id(calls: Sequence[Finished], id: Any) -> Finished | None:
    return next((call for call in calls if call.given_id == id), None)
