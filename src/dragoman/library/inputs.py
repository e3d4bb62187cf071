"""What SDKs hand out, as the frames they were on the wire: objects, dicts and whole responses alike.

Going back to the wire's own JSON is what keeps one reading of every protocol: the decoders', which know
what real servers send. No SDK is imported here; pydantic's objects are known by how they dump themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ..protocols.gemini.request.keys import camel
from ..wire.frames import Frame

# Beside the events of the wire, the SDKs' stream helpers give events of their own that repeat them.
_REPEATING = frozenset({"text", "thinking", "signature", "citation", "input_json", "compaction"})
_REPEATING_CHAT = ("content.", "refusal.", "logprobs.", "tool_calls.")
# What helpers and google-genai add to an event: dumping a growing snapshot with each would be quadratic.
_BALLAST = {"snapshot", "sdk_http_response", "automatic_function_calling_history", "parsed"}
_ARGUMENTS = frozenset({"args", "response"})

_ANTHROPIC = frozenset(
    {"message_start", "content_block_start", "content_block_delta", "content_block_stop"}
    | {"message_delta", "message_stop", "message", "ping"}
)


class _Marks(msgspec.Struct, frozen=True):
    """The members by which a protocol's first frame can be told."""

    type: Any = None
    object: Any = None
    choices: msgspec.Raw = msgspec.Raw()
    candidates: msgspec.Raw = msgspec.Raw()
    usageMetadata: msgspec.Raw = msgspec.Raw()  # noqa: N815
    promptFeedback: msgspec.Raw = msgspec.Raw()  # noqa: N815
    responseId: msgspec.Raw = msgspec.Raw()  # noqa: N815


_marks = msgspec.json.Decoder(_Marks).decode


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
        marks = _marks(frame.data)
    except msgspec.DecodeError:
        return None, False
    kind = marks.type if isinstance(marks.type, str) else frame.event
    if kind in _ANTHROPIC:
        return "anthropic", kind == "message"
    if kind.startswith("response.") or marks.object == "response":
        return "openai-responses", marks.object == "response"
    if marks.choices or str(marks.object).startswith("chat.completion"):
        return "openai-chat", marks.object == "chat.completion"
    gemini = (marks.candidates, marks.usageMetadata, marks.promptFeedback, marks.responseId)
    return ("gemini" if any(gemini) else None), False


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


def _as_on_wire(event: Mapping[str, Any]) -> Any:
    """google-genai's objects call `finishReason` `finish_reason` when they are dumped without aliases."""
    if "candidates" in event or "usage_metadata" in event or "response_id" in event:
        return _camel(event)
    return event


def _camel(value: Any) -> Any:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        # Arguments are the model's own: their keys are not ours to rename.
        return {
            camel(key): member if key in _ARGUMENTS else _camel(member)
            for key, member in members.items()
            if member is not None
        }
    if isinstance(value, list):
        return [_camel(item) for item in cast("list[Any]", value)]
    return value
