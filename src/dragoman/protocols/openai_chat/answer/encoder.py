"""Encode events for OpenAI Chat clients: a stream of chunks, or one `chat.completion`."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import (
    DELTAS,
    NO_USAGE,
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Event,
    Failed,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from ....model.messages import (
    SEPARATOR,
    Citation,
    Media,
    Part,
    Refusal,
    Seal,
    Thinking,
    ToolCall,
)
from ....wire.frames import Frame, escape_separators, json_string, one_line
from ...base import AnswerContext, Freeform
from ...common import failures, sealed_reasoning
from ...common.collect import Answer
from ..own import NAME

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


class StreamEncoder:
    """Writes one answer as chunks. The constant parts of a chunk are encoded once."""

    __slots__ = (
        "_calls", "_context", "_delta_parts", "_head", "_listed", "_refused", "_silent", "_tail", "_thought",
        "_usage",
    )  # fmt: skip

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._head = b""
        self._tail = b',"finish_reason":null}]}\n\n'
        self._delta_parts: dict[int, tuple[bytes, bytes]] = {}
        """By block: the bytes before and after the text of each delta."""
        self._silent: set[int] = set()
        """Thinking blocks without text so far."""
        self._thought = False
        """Has the client got reasoning? A blank line separates it from the next thinking block."""
        self._calls = 0
        self._refused = False
        self._listed = 0
        self._usage = NO_USAGE

    def encode(self, events: list[Any]) -> bytes:
        out: list[bytes] = []
        for event in events:
            kind: type = type(event)  # pyright: ignore[reportUnknownVariableType]
            if kind is TextDelta or kind is ArgumentsDelta:
                before, after = self._delta_parts[event.block]
                if self._silent and event.block in self._silent:
                    self._begin_thinking(event.block, out)
                out += (before, json_string(event.text), after)
            elif kind is BlockStart:
                self._open(event.block, event.part, out)
            elif kind is BlockEnd:
                del self._delta_parts[event.block]
                self._silent.discard(event.block)
            else:
                self._other_event(event, out)
        return b"".join(out)

    def verbatim(self, frame: Frame, events: list[Any]) -> bytes:
        if len(events) != 1 or type(events[0]) not in DELTAS:  # a delta does not change the encoder's state
            self.encode(events)
        return b"data: %b\n\n" % one_line(frame.data)

    def _other_event(self, event: Event, out: list[bytes]) -> None:
        if type(event) is Start:
            self._start(event, out)
        elif type(event) is UsageSeen:
            self._usage = self._usage.updated(event.usage)
        elif type(event) is End:
            self._end(event, out)
        elif type(event) is Sealed:
            self._sealed(event.seal, out)
        elif type(event) is CitationAdded:
            self._list("annotations", annotation(event.citation), out)
        elif type(event) is Failed:
            out += (b"data: ", error_body(event), b"\n\n")

    def _delta(self, delta: dict[str, Any], out: list[bytes]) -> None:
        out += (self._head, escape_separators(_json(delta)), self._tail)

    def _start(self, event: Start, out: list[bytes]) -> None:
        head = envelope("chat.completion.chunk", event, self._context)
        self._head = b"data: " + escape_separators(_json(head))[:-1] + b',"choices":[{"index":0,"delta":'
        # OpenAI's first chunk. The role is sent once: the SDK would concatenate a second one.
        self._delta({"role": "assistant", "content": ""}, out)

    def _open(self, block: int, part: Part, out: list[bytes]) -> None:
        field, closing = b'{"content":', b"}"
        match part:
            case Thinking(_, seal):
                # Not in OpenAI's spec. DeepSeek introduced the field, and most agents read it.
                field = b'{"reasoning_content":'
                self._silent.add(block)
                if seal is not None:
                    self._sealed(seal, out)
            case Refusal():
                field = b'{"refusal":'
                self._refused = True
            case ToolCall():
                # Cursor 3.14 crashes on `type: custom` and takes the raw text as function arguments.
                # `Freeform` says which form this client reads.
                custom = part.kind == "custom" and self._context.freeform == "custom"
                inner = b'"custom":{"input":' if custom else b'"function":{"arguments":'
                field, closing = b'{"tool_calls":[{"index":%d,%b' % (self._calls, inner), b"}}]}"
                self._delta(
                    {"tool_calls": [{"index": self._calls, **call_object(part, "", self._context.freeform)}]},
                    out,
                )
                self._calls += 1
            case Media() if image(part):
                self._list("images", image(part), out)
            case _:
                pass
        self._delta_parts[block] = (self._head + field, closing + self._tail)

    def _begin_thinking(self, block: int, out: list[bytes]) -> None:
        """The first text of a thinking block follows."""
        self._silent.discard(block)
        if self._thought:
            self._delta({"reasoning_content": SEPARATOR}, out)
        self._thought = True

    def _sealed(self, seal: Seal, out: list[bytes]) -> None:
        for detail in reasoning_details(seal):
            self._list("reasoning_details", detail, out)

    def _list(self, field: str, item: dict[str, Any], out: list[bytes]) -> None:
        # OpenAI's SDK merges items of unknown lists by their index, and raises without one.
        self._delta({field: [{**item, "index": self._listed}]}, out)
        self._listed += 1

    def _end(self, event: End, out: list[bytes]) -> None:
        finish = finish_reason(event.stop, refused=self._refused)
        out += (self._head, b'{},"finish_reason":"%s"}]}\n\n' % finish.encode())
        # After the finish reason, in the last chunk, with empty `choices`: OpenAI's order. Its SDK keeps only
        # the usage of the last chunk.
        if self._context.include_usage and self._usage.known:
            head = self._head[: -len(b'[{"index":0,"delta":')]
            out += (head, b'[],"usage":', _json(usage_object(self._usage)), b"}\n\n")
        out.append(b"data: [DONE]\n\n")


def envelope(kind: str, start: Start, context: AnswerContext) -> dict[str, Any]:
    return {
        "id": start.id or f"chatcmpl-{context.id}",
        "object": kind,
        "created": context.created if start.created is None else start.created,
        "model": start.model or context.model,
    }


def finish_reason(stop: Stop, *, refused: bool) -> str:
    # OpenAI's refusal is `message.refusal` with the finish reason `stop`.
    return "stop" if stop is Stop.REFUSAL and refused else FINISHES[stop]


def call_object(part: ToolCall, arguments: str, freeform: Freeform) -> dict[str, Any]:
    if part.kind == "custom" and freeform == "custom":
        return {"id": part.id, "type": "custom", "custom": {"name": part.name, "input": arguments}}
    call: dict[str, Any] = {
        "id": part.id,
        "type": part.run_by_provider or "function",
        "function": {"name": part.name, "arguments": arguments},
    }
    if part.seal is not None:
        # Google's own Chat endpoint has the signature here, so clients that support Google send it back.
        call["extra_content"] = {"google": {"thought_signature": sealed_reasoning.to_slot(part.seal, NAME)}}
    return call


def reasoning_details(seal: Seal) -> list[dict[str, Any]]:
    """A seal as OpenRouter's `reasoning_details`: Chat's own unchanged, others in an envelope."""
    if seal.protocol == NAME:
        return msgspec.json.decode(seal.data, type=list[dict[str, Any]])
    return [{"type": "reasoning.encrypted", "data": sealed_reasoning.to_slot(seal, NAME)}]


def annotation(citation: Citation) -> dict[str, Any]:
    source = {
        "url": citation.url,
        "title": citation.title,
        "start_index": citation.start or 0,
        "end_index": citation.end or 0,
    }
    return {"type": "url_citation", "url_citation": source}


def image(part: Media) -> dict[str, Any]:
    """An image of the answer in OpenRouter's form (`images`). Empty for other media."""
    url = part.url or (f"data:{part.media_type};base64,{part.data}" if part.data else "")
    return {"type": "image_url", "image_url": {"url": url}} if part.kind == "image" and url else {}


def usage_object(usage: Usage) -> dict[str, Any]:
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


def error_body(failure: Failed, request_id: str = "") -> bytes:
    error = {
        "message": failure.message,
        "type": failures.OPENAI_TYPES[failure.kind],
        "param": None,
        "code": failure.code,
    }
    return escape_separators(_json({"error": error}))


def render(answer: Answer, context: AnswerContext) -> bytes:
    """Write the whole `chat.completion`."""
    assert answer.end is not None
    # OpenAI sends null, not an empty string, if there are only calls.
    message: dict[str, Any] = {"role": "assistant", "content": answer.text() or None}
    refusal = answer.refusal()
    message["refusal"] = refusal or None
    if answer.thinking():
        message["reasoning_content"] = answer.thinking()
    sealed = [p.seal for p in answer.parts if isinstance(p, Thinking) and p.seal]
    if sealed:
        message["reasoning_details"] = [d for seal in sealed for d in reasoning_details(seal)]
    notes = [annotation(c) for p in answer.parts for c in getattr(p, "citations", ())]
    if notes:
        message["annotations"] = notes
    if answer.media():
        message["images"] = [image(m) for m in answer.media() if image(m)]
    if answer.calls():
        message["tool_calls"] = [
            call_object(call, call.arguments, context.freeform) for call in answer.calls()
        ]
    finish = finish_reason(answer.end.stop, refused=bool(refusal))
    body = envelope("chat.completion", answer.start, context)
    body["choices"] = [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}]
    if answer.usage.known:
        body["usage"] = usage_object(answer.usage)
    return escape_separators(_json(body))
