"""Encode events for Gemini clients: a stream of chunks, or one body. A call is always one whole part."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from ....model.messages import Citation, Media, Opaque, Part, Refusal, Seal, Search, Text, Thinking, ToolCall
from ....wire.frames import Frame, escape_separators, json_string, one_line
from ...base import AnswerContext
from ...common import sealed_reasoning
from ...common.collect import Answer, BlockBuilder
from ..own import NAME, is_own

FINISHES: dict[Stop, str] = {
    Stop.END: "STOP",
    # Gemini has no reason for calls: the client looks for `functionCall` parts.
    Stop.TOOL: "STOP",
    Stop.MAX_TOKENS: "MAX_TOKENS",
    Stop.CONTEXT_FULL: "MAX_TOKENS",
    Stop.STOP_SEQUENCE: "STOP",
    Stop.REFUSAL: "SAFETY",
    Stop.FILTER: "SAFETY",
    Stop.PAUSE: "STOP",
}

# Gemini's finish reasons for a filter. An upstream's own reason is passed on if it is one of them.
_FILTERS = """
    SAFETY RECITATION LANGUAGE BLOCKLIST PROHIBITED_CONTENT SPII IMAGE_SAFETY IMAGE_PROHIBITED_CONTENT
    IMAGE_RECITATION IMAGE_OTHER NO_IMAGE OTHER
"""
FILTERS = frozenset(_FILTERS.split())

ERROR_STATUS: dict[FailureKind, str] = {
    FailureKind.INVALID_REQUEST: "INVALID_ARGUMENT",
    FailureKind.AUTHENTICATION: "UNAUTHENTICATED",
    FailureKind.BILLING: "RESOURCE_EXHAUSTED",
    FailureKind.PERMISSION: "PERMISSION_DENIED",
    FailureKind.NOT_FOUND: "NOT_FOUND",
    FailureKind.CONFLICT: "ABORTED",
    FailureKind.TOO_LARGE: "INVALID_ARGUMENT",
    FailureKind.RATE_LIMIT: "RESOURCE_EXHAUSTED",
    FailureKind.SERVER: "INTERNAL",
    FailureKind.TIMEOUT: "DEADLINE_EXCEEDED",
    FailureKind.OVERLOADED: "UNAVAILABLE",
    FailureKind.UPSTREAM: "UNAVAILABLE",
}

_TEXT = b'data: {"candidates":[{"content":{"parts":[{"text":'

_json = msgspec.json.Encoder().encode


class StreamEncoder:
    """Writes one answer as chunks. It sends only `data: ` frames: Google's SDK fails on all others."""

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._identity: dict[str, Any] = {}
        self._tail = b""
        self._usage = Usage()
        self._open: dict[int, BlockBuilder] = {}
        self._citations: list[Citation] = []
        self._searches: list[Search] = []

    def encode(self, events: list[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta:
                self._text(event, out)
            else:
                self._other_event(event, out)
        return b"".join(out)

    def verbatim(self, frame: Frame, events: list[Event]) -> bytes:
        self.encode(events)
        return b"data: %b\n\n" % one_line(frame.data)

    def _text(self, event: TextDelta, out: list[bytes]) -> None:
        thought = type(self._open[event.block].part) is Thinking
        closing = b',"thought":true}' if thought else b"}"
        out += (_TEXT, json_string(event.text), closing, self._tail)

    def _other_event(self, event: Event, out: list[bytes]) -> None:
        match event:
            case ArgumentsDelta(block, text):
                self._open[block].pieces.append(text)
            case BlockStart(block, part):
                self._open[block] = BlockBuilder(part)
            case BlockEnd(block, complete):
                self._close(self._open.pop(block), complete, out)
            case Sealed(block, seal):
                self._open[block].seal = seal
            case CitationAdded(_, citation):
                self._citations.append(citation)
            case UsageSeen(usage):
                self._usage = self._usage.updated(usage)
            case Start():
                self._start(event)
            case End():
                self._end(event, out)
            case Failed():
                out += (b"data: ", error_body(event), b"\n\n")
            case _:
                pass

    def _start(self, event: Start) -> None:
        self._identity = identity(event, self._context)
        tail = b'],"role":"model"},"index":0}],' + escape_separators(_json(self._identity))[1:]
        self._tail = tail + b"\n\n"

    def _close(self, block: BlockBuilder, complete: bool, out: list[bytes]) -> None:
        if not complete:
            return
        part = block.finished()
        if type(part) is Search:
            self._searches.append(part)
        if isinstance(part, Thinking):
            part = Thinking("", part.seal)  # its text is already sent; the seal is not
        value = part_object(part) if not isinstance(part, (Text, Refusal)) else None
        if value is not None:
            head = b'data: {"candidates":[{"content":{"parts":['
            out += (head, one_line(_json(value)), self._tail)

    def _end(self, event: End, out: list[bytes]) -> None:
        # Google's last chunk has an empty text, too. Clients read `content.parts` without a check.
        candidate: dict[str, Any] = {"content": {"parts": [{"text": ""}], "role": "model"}}
        candidate |= ending(event, self._citations, self._searches)
        value: dict[str, Any] = {"candidates": [candidate]}
        if self._usage.known:
            value["usageMetadata"] = usage_object(self._usage)
        out += (b"data: ", one_line(_json(value | self._identity)), b"\n\n")


def identity(start: Start, context: AnswerContext) -> dict[str, Any]:
    return {"modelVersion": start.model or context.model, "responseId": start.id or context.id}


def part_object(part: Part) -> dict[str, Any] | None:
    """The JSON of a part. None for an empty part, or one that Gemini's answers cannot contain."""
    match part:
        case Text(text) | Refusal(text):
            return {"text": text} if text else None
        case Thinking(text, seal):
            value: dict[str, Any] = {"text": text, "thought": True}
            if seal is not None:
                value["thoughtSignature"] = signature(seal)
            return value if text or seal else None
        case ToolCall():
            args = msgspec.Raw(part.arguments.encode() or b"{}")
            named = {"id": part.id} if part.id else {}
            value = {"functionCall": {**named, "name": part.name, "args": args}}
            if part.seal is not None:
                value["thoughtSignature"] = signature(part.seal)
            return value
        case Media():
            return media_object(part)
        case Opaque(raw, _) if is_own(raw):
            return raw.value
        case _:
            return None


def signature(seal: Seal) -> str:
    """The signature of a seal. One that is not base64 goes into an envelope: Google's SDK would reject it."""
    own = NAME if sealed_reasoning.is_base64(seal.data) else ""
    return sealed_reasoning.to_slot(seal, own)


def media_object(part: Media) -> dict[str, Any] | None:
    if part.data is not None:
        return {"inlineData": {"mimeType": part.media_type, "data": part.data}}
    if part.url is not None:
        return {"fileData": {"mimeType": part.media_type, "fileUri": part.url}}
    return None


def ending(end: End, citations: list[Citation], searches: list[Search]) -> dict[str, Any]:
    own = (end.detail or "").upper() if end.stop is Stop.FILTER else ""
    reason = own if own in FILTERS else FINISHES[end.stop]
    fields: dict[str, Any] = {"finishReason": reason, "index": 0}
    if citations:
        sources = [{"uri": c.url, "title": c.title} for c in citations if c.url]
        fields["citationMetadata"] = {"citationSources": sources}
    if searches:
        fields["groundingMetadata"] = grounding(searches)
    return fields


def grounding(searches: list[Search]) -> dict[str, Any]:
    """The queries and the found pages. Gemini has no other place for a search."""
    found = {source.url: source for search in searches for source in search.sources}
    return {
        "webSearchQueries": [search.query for search in searches],
        "groundingChunks": [{"web": {"uri": s.url, "title": s.title}} for s in found.values()],
    }


def usage_object(usage: Usage) -> dict[str, Any]:
    reasoning = usage.reasoning or 0
    output = usage.output or 0
    value: dict[str, Any] = {
        "promptTokenCount": usage.prompt,
        # Google counts thoughts apart from the candidates.
        "candidatesTokenCount": max(0, output - reasoning),
        "totalTokenCount": usage.prompt + max(output, reasoning) + (usage.tool_prompt or 0),
    }
    if usage.cache_read is not None:
        value["cachedContentTokenCount"] = usage.cache_read
    if usage.reasoning is not None:
        value["thoughtsTokenCount"] = reasoning
    if usage.tool_prompt is not None:
        value["toolUsePromptTokenCount"] = usage.tool_prompt
    return value


def error_body(failure: Failed, request_id: str = "") -> bytes:
    error = {
        "code": failure.status,
        "message": failure.message,
        "status": ERROR_STATUS[failure.kind],
    }
    return escape_separators(_json({"error": error}))


def render(answer: Answer, context: AnswerContext) -> bytes:
    """Write the whole body."""
    assert answer.end is not None
    parts = [value for part in answer.parts if (value := part_object(part)) is not None]
    citations = [c for part in answer.parts if isinstance(part, Text) for c in part.citations]
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}}
    searches = [part for part in answer.parts if isinstance(part, Search)]
    candidate |= ending(answer.end, citations, searches)
    body: dict[str, Any] = {"candidates": [candidate]}
    if answer.usage.known:
        body["usageMetadata"] = usage_object(answer.usage)
    return escape_separators(_json(body | identity(answer.start, context)))
