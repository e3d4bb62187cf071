"""Build the objects of a Responses answer: items, content parts, the response, errors."""

from __future__ import annotations

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
from ...common.extras import merged
from ...common.fields import Obj, is_object
from .. import builtins, searches
from ..own import NAME, is_own
from .echo import DEFAULTS
from .forms import UNFINISHED

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

_OBJECTS = ("error", "incomplete_details", "usage")
"""The members of a response that are objects or null."""
_REASONS = ("max_output_tokens", "max_messages", "content_filter", "steered")
"""OpenAI's reasons for an incomplete response."""

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


def builtin_of(part: Part) -> str:
    """The built-in tool that a call belongs to (`local_shell`, `shell`, `apply_patch`, `tool_search`)."""
    return part.builtin if isinstance(part, ToolCall) else ""


def _known_id(part: Part) -> str | None:
    """The id of an item that came as a whole, or with a seal."""
    if isinstance(part, Opaque):
        id = part.raw.value.get("id") if is_own(part.raw) else None
        return id if isinstance(id, str) else None
    seal = part.seal if isinstance(part, Thinking) else None
    return seal.id if seal is not None and seal.protocol == NAME else None


class ItemIds:
    """Assigns unique ids to the items of an answer, even if the upstream repeats ids."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._taken: set[str] = set()

    def take(self, part: Part, own: str | None, number: int) -> str:
        """The id of item `number`: the upstream's id, or a generated one if it is missing or already used."""
        own = own or _known_id(part)
        id = own if own and own not in self._taken else self.mint(prefix(part), number)
        self._taken.add(id)
        return id

    def mint(self, prefix: str, number: int) -> str:
        return f"{prefix}_{self._seed}_{number}"


def with_notes(part: Obj, notes: list[Obj]) -> Obj:
    """A part with text, as OpenAI writes it."""
    return {**part, "annotations": notes, "logprobs": []}


def item_object(part: Part, id: str) -> Obj | None:
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


def call_item(part: ToolCall, id: str, arguments: str, status: str) -> Obj:
    item: Obj = {"id": id, "type": "function_call", "status": status, "call_id": part.id}
    if part.kind == "custom":
        item |= {"type": "custom_tool_call", "name": part.name, "input": arguments}
    else:
        item |= {"name": part.name, "arguments": arguments}
    if part.namespace:
        item["namespace"] = part.namespace
    return item


def whole_item(part: Part, id: str, content: list[Obj], complete: bool) -> Obj:
    """The item for `output_item.done`. `content` are its parts."""
    item = item_object(part, id) or {}
    match part:
        case Text() | Refusal():
            item |= {"status": "completed", "content": content}
        case Thinking(seal=seal):
            item["summary"] = content
            if seal is not None:
                item["encrypted_content"] = sealed(seal)
        case ToolCall():
            builtin = builtin_of(part)
            own = builtins.call_item(builtin, part, id, complete) if builtin else None
            status = "completed" if complete else "incomplete"
            return own or call_item(part, id, part.arguments, status)
        case _:
            pass
    return item


def sealed(seal: Seal) -> str:
    return sealed_reasoning.to_slot(seal, NAME)


def seal_carrier(call: ToolCall, seal: Seal, id: str) -> Obj:
    """An empty reasoning item that carries a call's seal: `function_call` has no slot for one."""
    sealed = sealed_reasoning.to_slot(seal, NAME, call.id)
    return {"id": id, "type": "reasoning", "summary": [], "encrypted_content": sealed}


def annotation(citation: Citation) -> Obj:
    if is_own(citation.raw):
        return citation.raw.value
    return {
        "type": "url_citation",
        "url": citation.url,
        "title": citation.title,
        "start_index": citation.start or 0,
        "end_index": citation.end or 0,
    }


def outcome(stop: Stop, *, refused: bool) -> Obj:
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
    start: Start, context: AnswerContext, status: str, output: list[Obj], given: Obj | None
) -> Obj:
    """The response. `given` is the upstream's own, whose settings count; None: it has none."""
    response: Obj = {
        "id": start.id or f"resp_{context.id}",
        "object": "response",
        "created_at": context.created if start.created is None else start.created,
        "status": status,
        "model": start.model or context.model,
        "output": output,
    }
    if given is not None:
        if isinstance(given.get("created_at"), (int, float)):
            del response["created_at"]
        wrong = {name: None for name in _OBJECTS if name in given and not is_object(given[name])}
        return merged(response, {**given, **wrong, "output": []})
    nothing: Obj = {"completed_at": None, "error": None, "incomplete_details": None, "usage": None}
    return {**response, **nothing, **DEFAULTS, **context.echo}


def finished_response(
    start: Start,
    context: AnswerContext,
    output: list[Obj],
    end: End,
    usage: Obj | None,
    *,
    refused: bool,
) -> Obj:
    """The response object at the end of the answer."""
    given = members_for(NAME, end.extras).get("response")
    ended = outcome(end.stop, refused=refused)
    if given is not None:
        ended = _own_outcome(given) or ended
    response = merged(ended, response_object(start, context, ended["status"], output, given))
    if "usage" in response or usage is not None:
        response["usage"] = usage
    if response["status"] == "completed" and given is None:
        response["completed_at"] = response["created_at"] + int(context.elapsed() if context.elapsed else 0)
    if context.on_response is not None:
        context.on_response(response)
    return response


def _own_outcome(given: Obj) -> Obj | None:
    """The outcome in the upstream's own words, if they are legal."""
    status, details = given.get("status"), given.get("incomplete_details")
    if status == "incomplete":
        return {"status": status} if is_object(details) and details.get("reason") in _REASONS else None
    return {"status": status} if status in ("completed", *UNFINISHED) else None


def usage_object(usage: Usage, given: Obj | None) -> Obj | None:
    """The token counts. `given` is the upstream's own object, whose members count; None: it has none."""
    if not usage.known:
        return None
    output = usage.output or 0
    counts = {
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
    return counts if given is None else _counted(counts, given)


def _counted(counts: Obj, given: Obj) -> Obj:
    """The upstream's own object with these counts. Clients need both details, but not each count in them."""
    result = {**given, **counts}
    for name, details in counts.items():
        own = given.get(name)
        if is_object(details) and is_object(own):
            result[name] = {**own, **{key: n for key, n in details.items() if own.get(key) is not None}}
    return result


def error_object(failure: Failed) -> Obj:
    return {
        "message": failure.message,
        "type": failures.OPENAI_TYPES[failure.kind],
        "param": None,
        "code": failure.code or ERROR_CODES[failure.kind],
    }


def error_body(failure: Failed, request_id: str = "") -> bytes:
    return escape_separators(_json({"error": error_object(failure)}))
