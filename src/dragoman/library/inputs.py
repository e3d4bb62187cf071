"""Turn an SDK's objects, dicts and whole responses back into the frames of the wire.

So the decoders, which know the quirks of real servers, are the only readers of every protocol. No SDK is
imported here: pydantic objects are recognised by their `model_dump` methods.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ..protocols.common.fields import is_object
from ..protocols.registry import PROTOCOLS
from ..wire.frames import Frame

# The SDKs' stream helpers add their own events, which repeat the events of the wire.
_HELPER_EVENTS = frozenset({"text", "thinking", "signature", "citation", "input_json", "compaction"})
_CHAT_HELPER_EVENTS = ("content.", "refusal.", "logprobs.", "tool_calls.")
# Members that stream helpers and google-genai add. Dumping a growing snapshot per event costs quadratic time.
_EXCLUDED = {"snapshot", "sdk_http_response", "automatic_function_calling_history", "parsed"}


def frame_of(given: object) -> Frame | None:
    """The frame of an SDK's object; None for a helper's event that only repeats others."""
    if isinstance(given, Mapping):
        return Frame(_encoded(_as_on_wire(cast("Mapping[str, Any]", given))))
    kind = getattr(given, "type", None)
    if kind == "chunk":
        given = getattr(given, "chunk", given)
    elif isinstance(kind, str) and (kind in _HELPER_EVENTS or kind.startswith(_CHAT_HELPER_EVENTS)):
        return None
    return Frame(_dumped(given))


def plain(given: Any) -> Any:
    """The JSON value of an SDK's object, without added members. Other values are returned unchanged."""
    if not hasattr(given, "model_dump"):
        return given
    return given.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=_EXCLUDED, warnings=False)


def sniff(frame: Frame) -> tuple[str | None, bool]:
    """The protocol of a first frame, if it shows, and whether the frame is a whole response."""
    try:
        value = msgspec.json.decode(frame.data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None, False
    if is_object(value):
        for record in PROTOCOLS.values():
            whole = record.sdk.whole(value, frame.event)
            if whole is not None:
                return record.name, whole
    return None, False


def _dumped(given: Any) -> bytes:
    if not hasattr(given, "model_dump_json"):
        raise TypeError(
            f"cannot read a {type(given).__name__}: give an SDK's event or response, a dict, or bytes"
        )
    options: dict[str, Any] = {
        "by_alias": True,
        "exclude_none": True,
        "exclude": _EXCLUDED,
        "warnings": False,
    }
    try:
        return given.model_dump_json(**options).encode()
    except ValueError:  # a lone surrogate: the server split an emoji between two events
        return _escaped(given.model_dump(**options))


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=plain)
    except ValueError:
        return _escaped(value)


def _escaped(value: Any) -> bytes:
    return json.dumps(value, default=_to_builtins).encode()


def _to_builtins(value: Any) -> Any:
    """Convert bytes and enums, which `json` cannot encode."""
    return msgspec.to_builtins(value)


def _as_on_wire(event: Mapping[str, Any]) -> Mapping[str, Any]:
    for record in PROTOCOLS.values():
        event = record.sdk.on_wire(event)
    return event
