"""What SDKs hand out, as the frames they were on the wire: objects, dicts and whole responses alike.

Going back to the wire's own JSON is what keeps one reading of every protocol: the decoders', which know
what real servers send. No SDK is imported here; pydantic's objects are known by how they dump themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ..protocols.common.fields import is_object
from ..protocols.registry import PROTOCOLS
from ..wire.frames import Frame

# Beside the events of the wire, the SDKs' stream helpers give events of their own that repeat them.
_REPEATING = frozenset({"text", "thinking", "signature", "citation", "input_json", "compaction"})
_REPEATING_CHAT = ("content.", "refusal.", "logprobs.", "tool_calls.")
# What helpers and google-genai add to an event: dumping a growing snapshot with each would be quadratic.
_BALLAST = {"snapshot", "sdk_http_response", "automatic_function_calling_history", "parsed"}


def frame_of(given: object) -> Frame | None:
    """The frame an SDK's object stands for; None for an event that only repeats others."""
    if isinstance(given, Mapping):
        return Frame(_encoded(_as_on_wire(cast("Mapping[str, Any]", given))))
    kind = getattr(given, "type", None)
    if kind == "chunk":
        given = getattr(given, "chunk", given)
    elif isinstance(kind, str) and (kind in _REPEATING or kind.startswith(_REPEATING_CHAT)):
        return None
    return Frame(_dumped(given))


def plain(given: Any) -> Any:
    """An SDK's object as the JSON value it came from, with nothing added; anything else as it is."""
    if not hasattr(given, "model_dump"):
        return given
    return given.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude=_BALLAST, warnings=False)


def sniff(frame: Frame) -> tuple[str | None, bool]:
    """Which protocol a first frame is of, if it tells, and whether it is a whole response by itself."""
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
    options: dict[str, Any] = {"by_alias": True, "exclude_none": True, "exclude": _BALLAST, "warnings": False}
    try:
        return given.model_dump_json(**options).encode()
    except ValueError:  # half a surrogate pair, where a server cut an emoji in two
        return _escaped(given.model_dump(**options))


def _encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value, enc_hook=plain)
    except ValueError:
        return _escaped(value)


def _escaped(value: Any) -> bytes:
    return json.dumps(value, default=_odd).encode()


def _odd(value: Any) -> Any:
    """Bytes and enums, which Python's own encoder does not know."""
    return msgspec.to_builtins(value)


def _as_on_wire(event: Mapping[str, Any]) -> Mapping[str, Any]:
    for record in PROTOCOLS.values():
        event = record.sdk.on_wire(event)
    return event
