"""Ask a protocol's reader which parts of the neutral request each field of a body sets.

The reader reads the body with and without the field. What differs is what the field sets. So the answer holds
for fields that overrule each other, too, and no table can be wrong about it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..model.errors import BadRequest
from ..model.messages import Request, Settings
from ..protocols.base import ClientProtocol
from ..protocols.common.fields import is_array

MESSAGES = "messages"
_CONTENT = frozenset({MESSAGES, "system", "tools", "model"})
"""Parts whose field always sets them, so the reader is not asked."""
_PARTS = ("stream", "include_usage", *Settings.__struct_fields__)
_NO_SETTINGS = Settings()
_DEFAULTS: Mapping[str, Any] = {
    "stream": False,
    "include_usage": False,
    "parallel_tool_calls": True,
    "n": 1,
    "service_tier": "auto",
}
"""The values of these parts in a request without them. Other parts have the default of `Settings`."""


class FieldReading:
    """What the fields of one body set."""

    def __init__(self, client: ClientProtocol, body: Mapping[str, Any], path: str) -> None:
        self._client = client
        self._path = path
        # The conversation is long, and read once for every field. Its first message is enough.
        self._body = {
            name: value[:1] if MESSAGES in client.fields.get(name, ()) and is_array(value) else value
            for name, value in body.items()
        }
        self._whole = self._read(self._body)

    def parts(self, field: str, spelling: str) -> tuple[str, ...]:
        """The parts that `field`, written as `spelling`, sets. Empty: none, or another field wins."""
        declared = self._client.fields.get(field, ())
        if MESSAGES in declared:
            return (MESSAGES,)  # a conversation counts as messages, even with system messages
        if _CONTENT.intersection(declared):
            return tuple(declared)
        without = self._read(_without(self._body, spelling))
        if self._whole is None or without is None:
            return tuple(declared)
        return tuple([name for name in _PARTS if _part(self._whole, name) != _part(without, name)])

    def asks_for_default(self, field: str, parts: tuple[str, ...]) -> bool:
        """Does the request ask for nothing else than without `field`, which sets `parts`?"""
        names = parts or self._client.fields.get(field, ())
        if self._whole is None or not names or _CONTENT.intersection(names):
            return False
        return all(
            _part(self._whole, name) in (getattr(_NO_SETTINGS, name, None), _DEFAULTS.get(name))
            for name in names
        )

    def _read(self, body: Mapping[str, Any]) -> Request | None:
        try:
            return self._client.read_request(json.dumps(body).encode(), self._path)
        except BadRequest:
            return None


def _part(request: Request, name: str) -> Any:
    return getattr(request, name) if name in ("stream", "include_usage") else getattr(request.settings, name)


def _without(body: Mapping[str, Any], spelling: str) -> dict[str, Any]:
    outer, _, inner = spelling.partition(".")
    if not inner or inner not in body[outer]:
        return {name: value for name, value in body.items() if name != spelling}
    return {**body, outer: {name: value for name, value in body[outer].items() if name != inner}}
