"""Keep the members of an upstream's frame that Dragoman does not understand, and put them back.

A decoder takes out of a decoded frame what it understands. What is left keeps the frame's shape: it is the
`members` of the event's `Extras`. The encoder of the same protocol builds its own frame for the event and
merges the members into it.
"""

from __future__ import annotations

from typing import Any

from ...model.messages import Extras
from .fields import Obj, is_array, is_object


def kept(protocol: str, members: Obj) -> Extras | None:
    """The `Extras` for what is left of a frame; None if nothing is left."""
    return Extras(protocol, members) if members else None


def merged(written: Obj, members: Obj) -> Obj:
    """`written` with `members` put back where they were. A member that both have is the written one.

    >>> merged({"a": {"b": 1}, "list": [{}]}, {"a": {"b": 0, "x": 2}, "list": [{"y": 3}]})
    {'a': {'b': 1, 'x': 2}, 'list': [{'y': 3}]}
    """
    result = dict(written)
    for key, value in members.items():
        result[key] = _both(result[key], value) if key in result else value
    return result


def _both(written: Any, value: Any) -> Any:
    if is_object(written) and is_object(value):
        return merged(written, value)
    if is_array(written) and is_array(value):
        pairs = [_both(one, other) for one, other in zip(written, value, strict=False)]
        return pairs + written[len(pairs) :] + value[len(pairs) :]
    return written
