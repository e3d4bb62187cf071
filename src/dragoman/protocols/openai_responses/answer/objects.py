"""Build the objects of a Responses answer: items, content parts, the response, errors."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import End, Failed, FailureKind, Start, Stop, Usage
from ....model.messages import (
    Citation,
    Media,
    Opaque,
    Part,
    Refusal,
    Seal,
    Search,
    Text,
    Thinking,
    ToolCall,
    members_for,
)
from ....wire.frames import escape_separators
from ...base import AnswerContext
from ...common import failures, sealed_reasoning
from ...common.collect import Answer
from .. import builtins, searches
from ..own import NAME, is_own
from .echo import DEFAULTS

ERROR_CODES: dict[FailureKind, str] = {
    FailureKind.INVALID_REQUEST: "invalid_prompt",
    FailureKind.AUTHENTICATION: "invalid_api_key",
    FailureKind.BILLING: "insufficient_quota",
    FailureKind.PERMISSION: "permission_denied",
    FailureKind.NOT_FOUND: "model_not_found",
    FailureKind.CONFLICT: "conflict",
    FailureKind.TOO_LARGE: "request_too_large",
    FailureKind.RATE_LIMIT: "rate_limit_exceeded",
    FailureKind.SERVER: "server_error",
    FailureKind.TIMEOUT: "timeout",
    FailureKind.OVERLOADED: "server_is_overloaded",
    FailureKind.UPSTREAM: "upstream_error",
}

IDENTITY = ("id", "type", "call_id", "name", "namespace", "role")
"""The members that must not change between `added` and `done`: OpenAI's SDK checks them."""

_json = msgspec.json.Encoder().encode


def prefix(part: Part) -> str:
    match part:
        case ToolCall(kind="custom"):
            return "ctc"
        case ToolCall():
            return "fc"
        case Thinking():
            return "rs"
        case Media():
            return "ig"
        case Search():
            return searches.PREFIX
        case _:
            return "msg"


def delta_event(part: Part) -> tuple[str, dict[str, Any]]:
    match part:
        case ToolCall(kind="custom"):
            return "response.custom_tool_call_input.delta", {}
        case ToolCall():
            return "response.function_call_arguments.delta", {}
        case Thinking():
            return "response.reasoning_summary_text.delta", {}
        case Refusal():
            return "response.refusal.delta", {}
        case _:
            return "response.output_text.delta", {"logprobs": []}


def is_empty(part: Part) -> bool:
    """Is this part without content? It gets no item."""
    if isinstance(part, Thinking):
        return not part.text and part.seal is None
    return isinstance(part, (Text, Refusal)) and not part.text


def builtin_of(part: Part) -> str:
    """The built-in tool that a call belongs to (`local_shell`, `shell`, `apply_patch`, `tool_search`)."""
    return part.builtin if isinstance(part, ToolCall) else ""


def upstream_id(part: Part) -> str | None:
    """The item id of the upstream, if the upstream speaks Responses too."""
    if isinstance(part, Opaque):
        id = part.raw.value.get("id") if is_own(part.raw) else None
        return id if isinstance(id, str) else None
    extras = part.extras if isinstance(part, (Text, Thinking, ToolCall)) else None
    if id := members_for(NAME, extras).get("item_id"):
        return id
    seal = part.seal if isinstance(part, Thinking) else None
    return seal.id if seal is not None and seal.protocol == NAME else None


class ItemIds:
    """Assigns unique ids to the items of an answer, even if the upstream repeats ids."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._taken: set[str] = set()

    def take(self, part: Part, number: int) -> str:
        """The id of item `number`: the upstream's id, or a generated one if it is missing or already used."""
        own = upstream_id(part)
        id = own if own and own not in self._taken else self.mint(prefix(part), number)
        self._taken.add(id)
        return id

    def taken(self, id: str) -> None:
        """Note that the client already has an item with this id."""
        self._taken.add(id)

    def mint(self, prefix: str, number: int) -> str:
        return f"{prefix}_{self._seed}_{number}"


def content_part(part: Part, text: str) -> dict[str, Any] | None:
    match part:
        case Text(citations=citations):
            notes = [annotation(c) for c in citations]
            return {"type": "output_text", "text": text, "annotations": notes, "logprobs": []}
        case Refusal():
            return {"type": "refusal", "refusal": text}
        case Thinking():
            return {"type": "summary_text", "text": text}
        case _:
            return None


def item_object(part: Part, id: str) -> dict[str, Any] | None:
    """The item for `output_item.added`. None for a part that Responses answers cannot contain."""
    match part:
        case Text() | Refusal():
            return {
                "id": id,
                "type": "message",
                "status": "in_progress",
                "role": "assistant",
                "content": [],
            }
        case Thinking():
            # OpenAI's SDK requires `summary` in a reasoning item, and `arguments` or `input` in a call, even
            # if empty.
            return {"id": id, "type": "reasoning", "summary": []}
        case ToolCall():
            return call_item(part, id, "", "in_progress")
        case Media(kind="image", data=data) if data:
            return {
                "id": id,
                "type": "image_generation_call",
                "status": "completed",
                "result": data,
            }
        case Opaque(raw, type) if is_own(raw):
            return {**raw.value, "type": type, "id": id}
        case Search():
            return searches.search_item(part, id)
        case _:
            return None


def matches_item(part: Part, item: dict[str, Any]) -> bool:
    """Is `item`, which the client already has, the item of `part`?"""
    own = item_object(part, upstream_id(part) or item["id"])
    return own is not None and all(own.get(name) == item.get(name) for name in IDENTITY)


def call_item(part: ToolCall, id: str, arguments: str, status: str) -> dict[str, Any]:
    item: dict[str, Any] = {"id": id, "type": "function_call", "status": status, "call_id": part.id}
    if part.kind == "custom":
        item |= {"type": "custom_tool_call", "name": part.name, "input": arguments}
    else:
        item |= {"name": part.name, "arguments": arguments}
    if part.namespace:
        item["namespace"] = part.namespace
    return item


def whole_item(part: Part, id: str, complete: bool = True) -> dict[str, Any]:
    """The item for `output_item.done`."""
    item = item_object(part, id) or {}
    match part:
        case Text() | Refusal():
            item |= {"status": "completed", "content": [content_part(part, part.text)]}
        case Thinking(text, seal):
            item["summary"] = [
                content_part(part, summary) for summary in part.summaries or (text,) if summary
            ]
            if seal is not None:
                item["encrypted_content"] = sealed_reasoning.to_slot(seal, NAME)
        case ToolCall():
            builtin = builtin_of(part)
            own = builtins.call_item(builtin, part, id, complete) if builtin else None
            status = "completed" if complete else "incomplete"
            return own or call_item(part, id, part.arguments, status)
        case _:
            pass
    return item


def with_raw_reasoning(item: dict[str, Any]) -> dict[str, Any]:
    """A reasoning item whose text is its content, not its summary: open models write it so."""
    content = [{"type": "reasoning_text", "text": part["text"]} for part in item["summary"]]
    return item | {"summary": [], "content": content}


def seal_carrier(call: ToolCall, seal: Seal, id: str) -> dict[str, Any]:
    """An empty reasoning item that carries a call's seal: `function_call` has no slot for one."""
    sealed = sealed_reasoning.to_slot(seal, NAME, call.id)
    return {"id": id, "type": "reasoning", "summary": [], "encrypted_content": sealed}


def annotation(citation: Citation) -> dict[str, Any]:
    if is_own(citation.raw):
        return citation.raw.value
    return {
        "type": "url_citation",
        "url": citation.url,
        "title": citation.title,
        "start_index": citation.start or 0,
        "end_index": citation.end or 0,
    }


def outcome(stop: Stop, *, refused: bool) -> dict[str, Any]:
    """The status of the response. A refusal with text is a complete answer, one without is filtered."""
    match stop:
        # Responses has no reason for a full context.
        case Stop.MAX_TOKENS | Stop.CONTEXT_FULL:
            return {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        case Stop.FILTER | Stop.REFUSAL if not (refused and stop is Stop.REFUSAL):
            return {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
        case _:
            return {"status": "completed"}


def response_object(
    start: Start, context: AnswerContext, status: str, output: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "id": start.id or f"resp_{context.id}",
        "object": "response",
        "created_at": context.created if start.created is None else start.created,
        "completed_at": None,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": start.model or context.model,
        "output": output,
        "usage": None,
        **DEFAULTS,
        **context.echo,
    }


def finished_response(
    start: Start,
    context: AnswerContext,
    output: list[dict[str, Any]],
    end: End,
    usage: Usage,
    *,
    refused: bool,
) -> dict[str, Any]:
    """The response object at the end of the answer."""
    response = response_object(start, context, "completed", output)
    response |= outcome(end.stop, refused=refused)
    response["usage"] = usage_object(usage) if usage.known else None
    if response["status"] == "completed":
        response["completed_at"] = response["created_at"] + int(context.elapsed() if context.elapsed else 0)
    if context.on_response is not None:
        context.on_response(response)
    return response


def usage_object(usage: Usage) -> dict[str, Any]:
    output = usage.output or 0
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read or 0,
            # The SDK requires both counts.
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.prompt + output,
    }


def error_object(failure: Failed) -> dict[str, Any]:
    return {
        "message": failure.message,
        "type": failures.OPENAI_TYPES[failure.kind],
        "param": None,
        "code": failure.code or ERROR_CODES[failure.kind],
    }


def error_body(failure: Failed, request_id: str = "") -> bytes:
    return escape_separators(_json({"error": error_object(failure)}))


def render(answer: Answer, context: AnswerContext) -> bytes:
    """Write the whole response."""
    assert answer.end is not None
    items: list[dict[str, Any]] = []
    ids = ItemIds(context.id)
    for part in answer.parts:
        if isinstance(part, ToolCall) and part.seal is not None:
            items.append(seal_carrier(part, part.seal, ids.mint("rs", len(items))))
        if item_object(part, "") is not None and not is_empty(part):
            items.append(whole_item(part, ids.take(part, len(items))))
    refused = bool(answer.refusal())
    body = finished_response(answer.start, context, items, answer.end, answer.usage, refused=refused)
    return escape_separators(_json(body))
