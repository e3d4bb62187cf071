"""Build the objects of a Chat answer: calls, citations, token counts, errors, the whole `chat.completion`."""

from __future__ import annotations

import msgspec

from ....model.events import Failed, Start, Stop, Usage
from ....model.messages import Citation, Extras, Media, Seal, Text, Thinking, ToolCall, members_for
from ....wire.frames import escape_separators
from ...base import AnswerContext, Freeform
from ...common import failures, sealed_reasoning
from ...common.collect import Answer
from ...common.extras import merged
from ...common.fields import Obj
from ..own import NAME
from .members import adds_up, read_usage
from .reasoning_text import TEXT_FIELDS

FINISHES: dict[Stop, str] = {
    Stop.END: "stop",
    Stop.TOOL: "tool_calls",
    Stop.MAX_TOKENS: "length",
    # Chat has no own reason for a full context. Agents treat `length` as an incomplete answer, which it is.
    Stop.CONTEXT_FULL: "length",
    Stop.STOP_SEQUENCE: "stop",
    Stop.REFUSAL: "content_filter",
    Stop.FILTER: "content_filter",
    # Anthropic's `pause_turn` has no counterpart.
    Stop.PAUSE: "stop",
}

_json = msgspec.json.Encoder().encode


def envelope(kind: str, start: Start, context: AnswerContext) -> Obj:
    return {
        "id": start.id or f"chatcmpl-{context.id}",
        "object": kind,
        "created": context.created if start.created is None else start.created,
        "model": start.model or context.model,
    }


def finish_reason(stop: Stop, *, refused: bool) -> str:
    # OpenAI's refusal is `message.refusal` with the finish reason `stop`.
    return "stop" if stop is Stop.REFUSAL and refused else FINISHES[stop]


def call_object(part: ToolCall, arguments: str, freeform: Freeform) -> Obj:
    if part.kind == "custom" and freeform == "custom":
        return {"id": part.id, "type": "custom", "custom": {"name": part.name, "input": arguments}}
    call: Obj = {
        "id": part.id,
        "type": part.run_by_provider or "function",
        "function": {"name": part.name, "arguments": arguments},
    }
    if part.seal is not None:
        # Google's own Chat endpoint has the signature here, so clients that support Google send it back.
        call["extra_content"] = {"google": {"thought_signature": sealed_reasoning.to_slot(part.seal, NAME)}}
    return call


def reasoning_details(seal: Seal) -> list[Obj]:
    """A seal as OpenRouter's `reasoning_details`: Chat's own unchanged, others in an envelope."""
    if seal.protocol == NAME:
        return msgspec.json.decode(seal.data, type=list[Obj])
    return [{"type": "reasoning.encrypted", "data": sealed_reasoning.to_slot(seal, NAME)}]


def annotation(citation: Citation) -> Obj:
    source = {
        "url": citation.url,
        "title": citation.title,
        "start_index": citation.start or 0,
        "end_index": citation.end or 0,
    }
    return {"type": "url_citation", "url_citation": source}


def image(part: Media) -> Obj:
    """An image of the answer in OpenRouter's form (`images`). Empty for other media."""
    url = part.url or (f"data:{part.media_type};base64,{part.data}" if part.data else "")
    return {"type": "image_url", "image_url": {"url": url}} if part.kind == "image" and url else {}


def reasoning_fields(
    text: str, extras: Extras | None, usual: tuple[str, ...] = ("reasoning_content",)
) -> Obj:
    """The fields with reasoning. Those of a Chat upstream are in `extras`, empty, or its details."""
    delta = delta_members(extras)
    fields = [name for name in TEXT_FIELDS if delta.get(name) == ""]
    if not fields and "reasoning_details" in delta:
        return {}
    return dict.fromkeys(fields or usual, text)


def usage_object(usage: Usage) -> Obj:
    output = usage.output or 0
    return {
        "prompt_tokens": usage.prompt,
        "completion_tokens": output,
        "total_tokens": usage.prompt + output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
    }


def delta_members(extras: Extras | None) -> Obj:
    """The members in the delta, or message, of a Chat upstream's chunk."""
    choices: list[Obj] = members_for(NAME, extras).get("choices") or [{}]
    delta: Obj | None = choices[0].get("delta")
    return delta or {}


def own_usage(usage: Usage, given: Obj) -> Obj:
    """The counts as the upstream sent them, if they still hold; else ours with its other members."""
    if adds_up(given) and read_usage(given) == usage:
        return given
    return merged(usage_object(usage), given)


def error_body(failure: Failed, request_id: str = "") -> bytes:
    error = {
        "message": failure.message,
        "type": failures.OPENAI_TYPES[failure.kind],
        "param": None,
        "code": failure.code,
    }
    return escape_separators(_json(merged({"error": error}, members_for(NAME, failure.extras))))


def render(answer: Answer, context: AnswerContext) -> bytes:
    """Write the whole `chat.completion`."""
    assert answer.end is not None
    extras = answer.start.extras
    own = extras is not None and extras.protocol == NAME
    members = members_for(NAME, extras)
    choice: Obj = {"index": 0, "message": _message(answer, context, own=own)}
    choice["finish_reason"] = finish_reason(answer.end.stop, refused=bool(answer.refusal()))
    if not own:
        choice["logprobs"] = None
    body: Obj = {**envelope("chat.completion", answer.start, context), "choices": [choice]}
    if answer.usage.known:
        body["usage"] = own_usage(answer.usage, members_for(NAME, answer.usage_extras).get("usage") or {})
    if members.get("choices"):
        # The members of a body's message have the name of those of a delta.
        first = {"message" if k == "delta" else k: v for k, v in members["choices"][0].items()}
        members = {**members, "choices": [first, *members["choices"][1:]]}
    return escape_separators(_json(merged(body, members)))


def _message(answer: Answer, context: AnswerContext, *, own: bool) -> Obj:
    """The message of a whole answer. `own`: it comes from a Chat upstream, and gets no other members."""
    text, refusal, thinking = answer.text(), answer.refusal(), answer.thinking()
    message: Obj = {"role": "assistant"}
    if text or "content" not in delta_members(answer.start.extras):
        # OpenAI sends null, not an empty string, if there are only calls.
        message["content"] = text or None
    if refusal or not own:
        message["refusal"] = refusal or None
    if thinking:
        message |= reasoning_fields(thinking, answer.start.extras)
    thoughts = [part for part in answer.parts if isinstance(part, Thinking)]
    known = "reasoning_details" in delta_members(answer.start.extras)
    if not known and (sealed := [thought.seal for thought in thoughts if thought.seal]):
        message["reasoning_details"] = [d for seal in sealed for d in reasoning_details(seal)]
    notes = [annotation(c) for p in answer.parts if isinstance(p, Text) for c in p.citations]
    if notes:
        message["annotations"] = notes
    if answer.media():
        message["images"] = [image(m) for m in answer.media() if image(m)]
    if answer.calls():
        message["tool_calls"] = [
            merged(call_object(call, call.arguments, context.freeform), members_for(NAME, call.extras))
            for call in answer.calls()
        ]
    return message
