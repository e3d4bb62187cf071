"""Build the assistant's turn for the provider's history from the received events.

The turn goes back unchanged, with its signatures. Only parts that the provider itself would refuse are
corrected: arguments that are not a JSON object, empty texts, calls without a name.
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
    """The JSON object in `text`, or None."""
    try:
        value: Any = parse_plain(text) if isinstance(text, str) else text
    except NotJson:
        return None
    return value if is_object(value) else None


def readable(text: str, call: Finished | None) -> str:
    """The original arguments if they are a JSON object, else the mended ones, else `{}`."""
    if parsed(text) is not None:
        return text
    return msgspec.json.encode((call.arguments if call else None) or {}).decode()


def native(calls: Iterable[Finished]) -> list[Finished]:
    """The calls that the provider itself sent as calls, not those recovered from text."""
    return [call for call in calls if not call.recovered]


def by_id(calls: Sequence[Finished], id: Any) -> Finished | None:
    return next((call for call in calls if call.given_id == id), None)
