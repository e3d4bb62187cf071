"""The JSON objects of Anthropic's answers that streams and whole messages share."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import End, Failed, FailureKind, Start, Stop, Usage
from ....model.messages import (
    Citation,
    Extras,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    members_for,
)
from ....wire.frames import one_line
from ...base import AnswerContext
from ...common import sealed_reasoning
from ...common.extras import merged
from ...common.fields import Obj, is_object
from ..own import NAME, is_own

STOP_REASONS: dict[Stop, str] = {
    Stop.END: "end_turn",
    Stop.TOOL: "tool_use",
    Stop.MAX_TOKENS: "max_tokens",
    Stop.CONTEXT_FULL: "model_context_window_exceeded",
    Stop.STOP_SEQUENCE: "stop_sequence",
    Stop.REFUSAL: "refusal",
    # Anthropic has no reason for a content filter.
    Stop.FILTER: "refusal",
    Stop.PAUSE: "pause_turn",
}

ERROR_TYPES: dict[FailureKind, str] = {
    FailureKind.INVALID_REQUEST: "invalid_request_error",
    FailureKind.AUTHENTICATION: "authentication_error",
    FailureKind.BILLING: "billing_error",
    FailureKind.PERMISSION: "permission_error",
    FailureKind.NOT_FOUND: "not_found_error",
    FailureKind.CONFLICT: "conflict_error",
    FailureKind.TOO_LARGE: "request_too_large",
    FailureKind.RATE_LIMIT: "rate_limit_error",
    FailureKind.SERVER: "api_error",
    FailureKind.TIMEOUT: "timeout_error",
    FailureKind.OVERLOADED: "overloaded_error",
    FailureKind.UPSTREAM: "api_error",
}

_NULL = msgspec.Raw(b"null")
_json = msgspec.json.Encoder().encode


def written(value: Any) -> bytes:
    """JSON in one line. Members that were kept as they came may hold line ends."""
    return one_line(_json(value))


def members(extras: Extras | None, name: str = "") -> Obj:
    """The members for a client of this protocol, or those of the object at `name` in them."""
    found: Any = members_for(NAME, extras)
    found = found.get(name) if name else found
    return found if is_object(found) else {}


def message_object(start: Start, context: AnswerContext) -> Obj:
    """A message without its content, its end and its usage."""
    id, model = start.id or f"msg_{context.id}", start.model or context.model
    return {"id": id, "type": "message", "role": "assistant", "model": model}


def block_object(part: Part) -> Obj | None:
    """The content of `content_block_start`. None for a part that Anthropic's answers cannot contain."""
    match part:
        case Text() | Refusal():
            block: Obj = {"type": "text", "text": ""}
        case Thinking(_, seal) if seal is not None and seal.redacted:
            block = {"type": "redacted_thinking", "data": sealed_reasoning.to_slot(seal, NAME)}
        case Thinking():
            block = {"type": "thinking", "thinking": "", "signature": ""}
        case ToolCall():
            block = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            if part.namespace is not None:
                block["toolset_name"] = part.namespace
        case Opaque(raw, _) if is_own(raw):
            return raw.value
        case _:
            return None
    return block if part.extras is None else merged(block, members(part.extras))


def citation_object(citation: Citation) -> Obj:
    if is_own(citation.raw):
        return citation.raw.value
    return {
        "type": "web_search_result_location",
        "url": citation.url,
        "title": citation.title,
        "cited_text": citation.text,
        # The SDK requires the member. The empty value marks the citation as foreign: no upstream gets it.
        "encrypted_index": "",
    }


def usage_object(
    total: Usage, searches: int = 0, *, sent: Usage | None = None, needed: tuple[str, ...] = ()
) -> Obj:
    """Token counts: all, or those that an upstream of this protocol `sent` and those that clients need."""
    named = {
        "input_tokens": (total.input, sent and sent.input),
        "cache_creation_input_tokens": (total.cache_write, sent and sent.cache_write),
        "cache_read_input_tokens": (total.cache_read, sent and sent.cache_read),
        "output_tokens": (total.output, sent and sent.output),
    }
    usage: Obj = {
        name: count or 0
        for name, (count, theirs) in named.items()
        if sent is None or theirs is not None or name in needed
    }
    if total.reasoning is not None and (sent is None or sent.reasoning is not None):
        usage["output_tokens_details"] = {"thinking_tokens": total.reasoning}
    if searches:
        usage["server_tool_use"] = {"web_search_requests": searches, "web_fetch_requests": 0}
    return usage


def stop_fields(end: End, kept: Obj) -> Obj:
    """The stop reason and its details. `kept`: members of the upstream's ending."""
    sequence = (end.sequence or "") if end.stop is Stop.STOP_SEQUENCE else None
    fields: Obj = {"stop_reason": STOP_REASONS[end.stop], "stop_sequence": sequence}
    if end.stop in (Stop.END, Stop.PAUSE) and isinstance(kept.get("stop_reason"), str):
        fields["stop_reason"] = kept["stop_reason"]
    details = kept.get("stop_details")
    has_details = details is not None and details != _NULL
    if fields["stop_reason"] == "refusal" and end.detail and not has_details:
        fields["stop_details"] = {"type": "refusal", "category": None, "explanation": end.detail}
    return fields


def error_body(failure: Failed, request_id: str = "") -> bytes:
    error = {"type": ERROR_TYPES[failure.kind], "message": failure.message}
    kept = members(failure.extras)
    body: Obj = {"type": "error", "error": error}
    if request_id and "request_id" not in kept:
        body["request_id"] = request_id
    return written(merged(body, kept))
