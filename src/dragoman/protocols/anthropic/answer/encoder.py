"""Encode events for Anthropic clients: a stream of named events, or one message.

The protocol record sets `serial`, so at most one block is open at a time. Its index is the number of blocks
before it.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from ....model.events import (
    NO_USAGE,
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Ping,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Unknown,
    Usage,
    UsageSeen,
)
from ....model.messages import Citation, Opaque, Part, Refusal, Seal, Search, Text, Thinking, ToolCall
from ....wire.frames import Frame, escape_separators, json_string, one_line
from ...base import AnswerContext
from ...common import sealed_reasoning
from ...common.collect import Answer
from ..own import NAME, is_own
from ..searches import search_blocks

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

# The only keepalive that Anthropic documents.
PING = b'event: ping\ndata: {"type":"ping"}\n\n'

_json = msgspec.json.Encoder().encode


# Templates: constant JSON is written once, not encoded for every event.
# Anthropic's SDK fails later if `message_start` lacks `content` or `usage`, and it skips frames without an
# event name.
_MESSAGE_START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":%b,"type":"message",'
    b'"role":"assistant","model":%b,"content":[],"stop_reason":null,"stop_sequence":null,"usage":%b}}\n\n'
)
_MESSAGE_END = (
    b'event: message_delta\ndata: {"type":"message_delta","delta":%b,"usage":%b}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)
_USAGE = (
    b'{"input_tokens":%d,"cache_creation_input_tokens":%d,"cache_read_input_tokens":%d,"output_tokens":%d%b}'
)
# `message_delta` must have `usage`, too: the SDK reads it without a check.
_NO_COUNTS = _USAGE % (0, 0, 0, 0, b"")
_BLOCK_STOP = b'event: content_block_stop\ndata: {"type":"content_block_stop","index":%d}\n\n'
_DELTA = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":'


def _written(value: Any) -> bytes:
    return escape_separators(_json(value))


def _named_event(name: str, data: bytes) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), one_line(data))


def _block_start(index: int, block: dict[str, Any]) -> bytes:
    value = {"type": "content_block_start", "index": index, "content_block": block}
    return b"event: content_block_start\ndata: %b\n\n" % _written(value)


@functools.lru_cache(maxsize=64)
def _text_start(index: int) -> bytes:
    return _block_start(index, {"type": "text", "text": ""})


@functools.lru_cache(maxsize=128)
def _deltas(index: int, thinking: bool) -> dict[type, bytes]:
    """The bytes before the text of a block's deltas, by event type."""
    delta = _DELTA % index
    text = b'{"type":"thinking_delta","thinking":' if thinking else b'{"type":"text_delta","text":'
    return {TextDelta: delta + text, ArgumentsDelta: delta + b'{"type":"input_json_delta","partial_json":'}


class StreamEncoder:
    """Writes one answer as named events."""

    __slots__ = (
        "_begun",
        "_context",
        "_deltas",
        "_index",
        "_pending_start",
        "_seal",
        "_searches",
        "_start",
        "_usage",
        "_whole",
    )

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._start: Start | None = None
        self._begun = False
        self._usage = NO_USAGE
        self._index = 0
        self._seal: Seal | None = None
        self._searches = 0
        self._whole = False
        self._deltas: dict[type, bytes] = {}
        self._pending_start: tuple[bytes, dict[type, bytes]] | None = None
        """The start of a thinking block and its delta templates. It waits for content, because an empty block
        must not be opened."""

    def encode(self, events: list[Any]) -> bytes:
        out: list[bytes] = []
        for event in events:
            kind: type = type(event)  # pyright: ignore[reportUnknownVariableType]
            if kind in self._deltas and self._start is None:
                out += (self._deltas[kind], json_string(event.text), b"}}\n\n")
            elif kind is Start:
                self._start = event
            elif kind is UsageSeen:
                self._usage = self._usage.updated(event.usage)
            elif kind is Failed:
                # A failure before `message_start` needs no start: the SDK raises at an `error` event
                # anywhere.
                self._start = None
                out.append(b"event: error\ndata: " + error_body(event, self._context.id) + b"\n\n")
            else:
                if self._start is not None:
                    self._message_start(self._start, out)
                if kind is BlockStart:
                    self._open(event.part, out)
                elif kind is BlockEnd:
                    self._close(out)
                else:
                    self._other_event(event, out)
        if self._start is not None:
            self._message_start(self._start, out)
        return b"".join(out)

    def verbatim(self, frame: Frame, events: list[Any]) -> bytes:
        # A single delta in an open block does not change the encoder's state.
        if len(events) != 1 or type(events[0]) not in self._deltas:
            self.encode(events)
        return _named_event(frame.event, frame.data)

    def _message_start(self, start: Start, out: list[bytes]) -> None:
        """Write `message_start`. It waits for the usage in the same frame, which belongs into it."""
        id, model = _written(message_id(start, self._context)), _written(start.model or self._context.model)
        self._start = None
        self._begun = True
        out.append(_MESSAGE_START % (id, model, usage_json(self._usage)))

    def _other_event(self, event: Event, out: list[bytes]) -> None:
        match event:
            case End():
                self._end(event, out)
            case TextDelta() | ArgumentsDelta():
                self._emit_start(out)
                out += (self._deltas[type(event)], json_string(event.text), b"}}\n\n")
            case Sealed(_, seal):
                self._seal = seal
            case CitationAdded(_, citation):
                self._delta({"type": "citations_delta", "citation": citation_object(citation)}, out)
            # Before `message_start`, the SDK raises an error at any other event.
            case Ping() if self._begun:
                out.append(PING)
            case Unknown(protocol, name, data) if protocol == NAME and self._begun:
                out.append(_named_event(name, data))
            case _:
                pass

    def _delta(self, delta: dict[str, Any], out: list[bytes]) -> None:
        out += (_DELTA % self._index, _written(delta), b"}\n\n")

    def _open(self, part: Part, out: list[bytes]) -> None:
        self._seal = None
        self._whole = False
        if type(part) is Text:
            out.append(_text_start(self._index))
            self._deltas = _deltas(self._index, False)
            return
        if isinstance(part, ToolCall) and part.seal is not None:
            self._seal_carrier(sealed_reasoning.to_slot(part.seal, NAME, part.id), out)
        if type(part) is Search:
            self._search(part, out)
        thinking = isinstance(part, Thinking)
        self._seal = part.seal if thinking else None
        block = block_object(part)
        self._whole = block is None
        if block is None:
            return
        self._pending_start = (_block_start(self._index, block), _deltas(self._index, thinking))
        self._deltas = {}
        if block["type"] != "thinking":
            self._emit_start(out)

    def _emit_start(self, out: list[bytes]) -> None:
        if self._pending_start is not None:
            start, self._deltas = self._pending_start
            self._pending_start = None
            out.append(start)

    def _close(self, out: list[bytes]) -> None:
        if self._whole:
            return
        if self._pending_start is not None and self._seal is None:
            self._pending_start = None
            return
        self._emit_start(out)
        if self._seal is not None and not self._seal.redacted:
            # In one delta: Anthropic's SDK overwrites the signature and does not append.
            signature = sealed_reasoning.to_slot(self._seal, NAME)
            self._delta({"type": "signature_delta", "signature": signature}, out)
        self._seal = None
        out.append(_BLOCK_STOP % self._index)
        self._index += 1

    def _seal_carrier(self, signature: str, out: list[bytes]) -> None:
        """Write an empty thinking block that carries a call's seal: `tool_use` has no slot for one."""
        # Clients send thinking blocks back unchanged, because Anthropic checks their signatures. So the seal
        # returns with the next request. Ids are no place for a seal: they may not be long, and they would
        # reach other providers.
        block = {"type": "thinking", "thinking": "", "signature": ""}
        out.append(_block_start(self._index, block))
        self._delta({"type": "signature_delta", "signature": signature}, out)
        out.append(_BLOCK_STOP % self._index)
        self._index += 1

    def _search(self, search: Search, out: list[bytes]) -> None:
        """Two blocks: the input of the first comes in a delta, which is where the SDK reads it."""
        call, result = search_blocks(search)
        query = _json(call["input"]).decode()
        out.append(_block_start(self._index, {**call, "input": {}}))
        self._delta({"type": "input_json_delta", "partial_json": query}, out)
        out += (_BLOCK_STOP % self._index, _block_start(self._index + 1, result))
        out.append(_BLOCK_STOP % (self._index + 1))
        self._index += 2
        self._searches += 1

    def _end(self, event: End, out: list[bytes]) -> None:
        plain = event.sequence is None and event.detail is None
        # The stop reason is sent once, in the last `message_delta`: a second one without it would erase it in
        # the SDK.
        delta = _PLAIN_STOPS[event.stop] if plain else _written(stop_fields(event))
        out.append(_MESSAGE_END % (delta, usage_json(self._usage, self._searches)))


def message_id(start: Start, context: AnswerContext) -> str:
    return start.id or f"msg_{context.id}"


def block_object(part: Part) -> dict[str, Any] | None:
    """The content of `content_block_start`. None for a part that Anthropic's answers cannot contain."""
    match part:
        case Text() | Refusal():
            return {"type": "text", "text": ""}
        case Thinking(_, seal) if seal is not None and seal.redacted:
            return {"type": "redacted_thinking", "data": sealed_reasoning.to_slot(seal, NAME)}
        case Thinking():
            return {"type": "thinking", "thinking": "", "signature": ""}
        case ToolCall():
            block: dict[str, Any] = {"type": "tool_use", "id": part.id, "name": part.name, "input": {}}
            return block if part.namespace is None else {**block, "toolset_name": part.namespace}
        case Opaque(raw, _) if is_own(raw):
            return raw.value
        case _:
            return None


def citation_object(citation: Citation) -> dict[str, Any]:
    if is_own(citation.raw):
        return citation.raw.value
    return {
        "type": "web_search_result_location",
        "url": citation.url,
        "title": citation.title,
        "cited_text": citation.text,
        # The SDK requires the member. The empty value marks the citation as foreign: `request/restore.py`
        # removes it.
        "encrypted_index": "",
    }


def usage_json(usage: Usage, searches: int = 0) -> bytes:
    if usage is NO_USAGE and not searches:
        return _NO_COUNTS
    reasoning = usage.reasoning
    more = b"" if reasoning is None else b',"output_tokens_details":{"thinking_tokens":%d}' % reasoning
    if searches:
        more += b',"server_tool_use":{"web_search_requests":%d,"web_fetch_requests":0}' % searches
    counts = (usage.input or 0, usage.cache_write or 0, usage.cache_read or 0, usage.output or 0, more)
    return _USAGE % counts


def stop_fields(end: End) -> dict[str, Any]:
    sequence = (end.sequence or "") if end.stop is Stop.STOP_SEQUENCE else None
    fields: dict[str, Any] = {"stop_reason": STOP_REASONS[end.stop], "stop_sequence": sequence}
    if fields["stop_reason"] == "refusal" and end.detail:
        fields["stop_details"] = {"type": "refusal", "category": None, "explanation": end.detail}
    return fields


_PLAIN_STOPS = {stop: _json(stop_fields(End(stop))) for stop in Stop}


def error_body(failure: Failed, request_id: str = "") -> bytes:
    error = {"type": ERROR_TYPES[failure.kind], "message": failure.message}
    body: dict[str, Any] = {"type": "error", "error": error}
    if request_id:
        body["request_id"] = request_id
    return _written(body)


def render(answer: Answer, context: AnswerContext) -> bytes:
    """Write the whole message."""
    assert answer.end is not None
    body: dict[str, Any] = {
        "id": message_id(answer.start, context),
        "type": "message",
        "role": "assistant",
        "model": answer.start.model or context.model,
        "content": [block for part in answer.parts for block in whole_blocks(part)],
    }
    body |= stop_fields(answer.end)
    searches = sum(type(part) is Search for part in answer.parts)
    body["usage"] = msgspec.Raw(usage_json(answer.usage, searches))
    return _written(body)


def whole_blocks(part: Part) -> list[dict[str, Any]]:
    """The content blocks of a part: one, or two for a call with a seal (a thinking block carries it)."""
    match part:
        case Text(text, _, citations) if text:
            block: dict[str, Any] = {"type": "text", "text": text}
            if citations:
                block["citations"] = [citation_object(c) for c in citations]
            return [block]
        case Refusal(text) if text:
            return [{"type": "text", "text": text}]
        case Thinking(text, seal) if text or seal is not None:
            block = block_object(part) or {}
            if block["type"] == "thinking":
                block |= {"thinking": text, "signature": sealed_reasoning.to_slot(seal, NAME) if seal else ""}
            return [block]
        case ToolCall():
            block = block_object(part) or {}
            # The text of the arguments is copied, not encoded again: large integers and repeated keys stay as
            # they are.
            block["input"] = msgspec.Raw(part.arguments.encode() or b"{}")
            if part.seal is None:
                return [block]
            signature = sealed_reasoning.to_slot(part.seal, NAME, part.id)
            return [{"type": "thinking", "thinking": "", "signature": signature}, block]
        case Opaque(raw, _) if is_own(raw):
            return [raw.value]
        case Search():
            return list(search_blocks(part))
        case _:
            return []
