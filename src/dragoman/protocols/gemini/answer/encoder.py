"""Encode events for Gemini clients: a stream of chunks, or one body. A call is always one whole part."""

from __future__ import annotations

from functools import reduce
from typing import assert_never

import msgspec

from ....model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    Carried,
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
from ....model.messages import (
    Citation,
    Extras,
    Media,
    Opaque,
    Part,
    Refusal,
    Seal,
    Search,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    members_for,
)
from ....wire.frames import escape_separators, json_string, one_line
from ...base import AnswerContext
from ...common import sealed_reasoning
from ...common.collect import Answer, BlockBuilder
from ...common.extras import merged
from ...common.fields import Obj, is_object
from ..own import NAME, is_own
from .chunk import Chunk
from .left import part_in
from .usage import counted, usage_object

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

_NULL = msgspec.Raw(b"null")

_json = msgspec.json.Encoder().encode


class StreamEncoder:
    """Writes one answer as chunks. It sends only `data: ` frames: Google's SDK fails on all others.

    Between equal protocols a `Carried` begins a chunk of the upstream. What the batch writes after it goes
    into this chunk. Without it, each part is a chunk of its own.
    """

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._identity: Obj = {}
        self._tail = b""
        self._chunk: Chunk | None = None
        self._usage = Usage()
        self._counted = False
        """Has the client got the usage?"""
        self._finished = False
        """Has the client got the finish reason?"""
        self._open: dict[int, BlockBuilder] = {}
        self._members: dict[int, Obj] = {}
        """The upstream's members of the next part of an open block."""
        self._citations: list[Citation] = []
        self._searches: list[Search] = []

    def encode(self, events: list[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta:
                self._text(event, out)
            elif type(event) is Carried:
                self._carried(event, out)
            else:
                self._other_event(event, out)
        if self._chunk is not None:
            self._flush(out)
        return b"".join(out)

    def _text(self, event: TextDelta, out: list[bytes]) -> None:
        block = event.block
        thought = type(self._open[block].part) is Thinking
        if self._chunk is None and event.extras is None and block not in self._members:
            closing = b',"thought":true}' if thought else b"}"
            out += (_TEXT, json_string(event.text), closing, self._tail)
            return
        if event.extras is not None:
            self._carry(event.extras, block)
        self._part(_said(event.text, thought), block, out)

    def _part(self, value: Obj, block: int, out: list[bytes]) -> None:
        """Write a part of a block, with the upstream's members of it."""
        members = self._members.pop(block, None)
        value = merged(value, members) if members else value
        if self._chunk is not None:
            self._chunk.parts.append(value)
        else:
            head = b'data: {"candidates":[{"content":{"parts":['
            out += (head, one_line(_json(value)), self._tail)

    def _carried(self, event: Carried, out: list[bytes]) -> None:
        members = members_for(NAME, event.extras)
        part = part_in(members)
        if part is None:
            self._flush(out)
            self._chunk = Chunk(members)
        elif event.block is None or "text" in part:
            self._part({"text": "", **part}, -1, out)
        else:
            self._carry(event.extras, event.block)

    def _carry(self, extras: Extras, block: int) -> None:
        """Keep the members of a part until the next part of its block is written."""
        part = part_in(members_for(NAME, extras))
        if part:
            self._members[block] = merged(self._members.get(block, {}), part)

    def _flush(self, out: list[bytes]) -> None:
        chunk, self._chunk = self._chunk, None
        if chunk is not None:
            value = chunk.written(self._identity)
            self._finished = self._finished or chunk.finished
            out += (b"data: ", one_line(_json(value)), b"\n\n")

    def _other_event(self, event: Event, out: list[bytes]) -> None:
        match event:
            case BlockStart() | ArgumentsDelta() | Sealed() | CitationAdded() | BlockEnd():
                self._in_block(event, out)
            case UsageSeen(usage):
                self._count(usage)
            case Start():
                self._start(event)
            case End():
                self._end(event)
            case Failed():
                self._flush(out)
                out += (b"data: ", error_body(event), b"\n\n")
            case Unknown(protocol, _, data):
                out += (b"data: ", one_line(data), b"\n\n") if protocol == NAME else ()
            case Ping():
                pass  # Google's SDK fails on comments, and Gemini has no empty chunks
            case TextDelta() | Carried():
                raise AssertionError("`encode` takes these events itself")
            case _:
                assert_never(event)

    def _in_block(
        self, event: BlockStart | ArgumentsDelta | Sealed | CitationAdded | BlockEnd, out: list[bytes]
    ) -> None:
        match event:
            case BlockStart(block, part):
                self._open[block] = BlockBuilder(part)
                if (members := own_members(part)) is not None:
                    self._members[block] = members
            case ArgumentsDelta(block, text):
                self._open[block].pieces.append(text)
            case Sealed(block, seal):
                self._open[block].seal = seal
            case CitationAdded(_, citation):
                self._citations.append(citation)
            case BlockEnd(block, complete):
                self._close(block, complete, out)
            case _:
                assert_never(event)

    def _start(self, event: Start) -> None:
        self._identity = identity(event, self._context)
        tail = b'],"role":"model"},"index":0}],' + escape_separators(_json(self._identity))[1:]
        self._tail = tail + b"\n\n"

    def _close(self, number: int, complete: bool, out: list[bytes]) -> None:
        block = self._open.pop(number)
        if not complete:
            self._members.pop(number, None)
            return
        part = block.finished()
        if type(part) is Search:
            self._searches.append(part)
        if isinstance(part, (Text, Refusal, Thinking)):
            # Its text is already sent; a seal, or the members of a part without text, are not.
            value = None
            if number in self._members:
                value = _said("", type(part) is Thinking)
            elif isinstance(part, Thinking):
                value = part_object(Thinking("", part.seal))
        else:
            value = part_object(part)
        if value is not None:
            self._part(value, number, out)

    def _count(self, usage: Usage) -> None:
        before, self._usage = self._usage.output or 0, self._usage.updated(usage)
        if self._chunk is not None:
            # The output must not shrink.
            now = usage if (usage.output or 0) >= before else self._usage
            self._chunk.usage = counted(self._chunk.usage, now)
            self._counted = True

    def _end(self, event: End) -> None:
        if self._finished:
            return
        chunk = self._chunk or Chunk(self._identity)
        if not chunk.blocked:
            if chunk.candidate is None:
                # Google's last chunk has an empty text, too. Clients read `content.parts` without a check.
                chunk.parts.append(_said("", False))
            finish(chunk, event, self._citations, self._searches)
        if self._usage.known and not self._counted:
            chunk.usage = usage_object(self._usage)
        self._chunk = chunk


def own_members(part: Part) -> Obj | None:
    """The upstream's members of a part; None if Dragoman made the part, or another protocol's upstream."""
    extras = None if isinstance(part, Search) else part.extras
    return extras.members if extras is not None and extras.protocol == NAME else None


def _said(text: str, thought: bool) -> Obj:
    return {"text": text, "thought": True} if thought else {"text": text}


def identity(start: Start, context: AnswerContext) -> Obj:
    return {"modelVersion": start.model or context.model, "responseId": start.id or context.id}


def part_object(part: Part) -> Obj | None:
    """The JSON of a part. None for an empty part, or one that Gemini's answers cannot contain."""
    match part:
        case Text(text) | Refusal(text):
            return {"text": text} if text else None
        case Thinking(text, seal):
            value: Obj = {"text": text, "thought": True}
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
        case Opaque(raw, _):
            return raw.value if is_own(raw) else None
        case ToolResult() | Search():
            return None
        case _:
            assert_never(part)


def signature(seal: Seal) -> str:
    """The signature of a seal. One that is not base64 goes into an envelope: Google's SDK would reject it."""
    own = NAME if sealed_reasoning.is_base64(seal.data) else ""
    return sealed_reasoning.to_slot(seal, own)


def media_object(part: Media) -> Obj | None:
    kind = {"mimeType": part.media_type} if part.media_type else {}
    if part.data is not None:
        return {"inlineData": {**kind, "data": part.data}}
    if part.url is not None:
        return {"fileData": {**kind, "fileUri": part.url}}
    return None


def finish(chunk: Chunk, end: End, citations: list[Citation], searches: list[Search]) -> None:
    """Write the finish reason, and the sources that the upstream's chunk does not have."""
    fields: Obj = {"finishReason": finish_reason(end), "index": 0}
    if citations:
        sources = [{"uri": c.url, "title": c.title} for c in citations if c.url]
        fields["citationMetadata"] = {"citationSources": sources}
    if searches:
        fields["groundingMetadata"] = grounding(searches)
    if (candidate := chunk.candidate) is not None:
        known = {key for key, value in candidate.items() if key != "finishReason" and value != _NULL}
        fields = {key: value for key, value in fields.items() if key != "index" and key not in known}
    chunk.add_to_candidate(fields)


def finish_reason(end: End) -> str:
    """The upstream's own reason, if Gemini has it."""
    sent = members_for(NAME, end.extras).get("finishReason")
    if isinstance(sent, str) and sent.isupper():
        return sent  # clients compare reasons, and Google's are upper case
    own = (end.detail or "").upper() if end.stop is Stop.FILTER else ""
    return own if own in FILTERS else FINISHES[end.stop]


def grounding(searches: list[Search]) -> Obj:
    """The queries and the found pages. Gemini has no other place for a search."""
    found = {source.url: source for search in searches for source in search.sources}
    return {
        "webSearchQueries": [search.query for search in searches],
        "groundingChunks": [{"web": {"uri": s.url, "title": s.title}} for s in found.values()],
    }


def error_body(failure: Failed, request_id: str = "") -> bytes:
    error: Obj = {"code": failure.status, "message": failure.message}
    sent = members_for(NAME, failure.extras)
    given = sent.get("error")
    if is_object(given):
        code = given.get("code")
        error["code"] = code if type(code) is int else failure.status
        error = merged(error, given)
    else:
        error["status"] = ERROR_STATUS[failure.kind]
    return escape_separators(_json({**sent, "error": error}))


def render(answer: Answer, context: AnswerContext) -> bytes:
    """Write the whole body."""
    assert answer.end is not None
    names = identity(answer.start, context)
    carried = [members_for(NAME, extras) for extras in answer.carried]
    around = [members for members in carried if part_in(members) is None]
    # Later chunks have the newer values.
    chunk = Chunk(reduce(lambda older, newer: merged(newer, older), around or [_empty(names)]))
    chunk.parts += [value for part in answer.parts if (value := _whole_part(part)) is not None]
    chunk.parts += [{"text": "", **part} for members in carried if (part := part_in(members)) is not None]
    if not (chunk.blocked or chunk.finished):
        citations = [c for part in answer.parts if isinstance(part, Text) for c in part.citations]
        finish(chunk, answer.end, citations, [part for part in answer.parts if isinstance(part, Search)])
    if answer.usage.known:
        chunk.usage = counted(chunk.usage, answer.usage)
    value = chunk.written(names)
    return escape_separators(_json(value))


def _empty(names: Obj) -> Obj:
    return {"candidates": [{"content": {"parts": [], "role": "model"}, "index": 0}], **names}


def _whole_part(part: Part) -> Obj | None:
    """The JSON of a part, with the upstream's members of it."""
    members = own_members(part)
    if members is None:
        return part_object(part)
    said = isinstance(part, (Text, Thinking)) and not part.text
    value = _said("", type(part) is Thinking) if said else part_object(part)
    return None if value is None else merged(value, members)
