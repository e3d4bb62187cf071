"""The laws of Gemini generateContent.

A stream only has `data: ` lines, because the SDK's reader fails on anything else. Each chunk has new parts.
The chunk with the finishReason is the last. Or an error object ends the stream at any point.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from ..shape import Json, UnreadableError, compact, entries, inner, is_object, load
from .base import Complaints, Law
from .framing import (
    CALL_JSON,
    JSON,
    SHAPE,
    STREAM,
    UTF8,
    events,
    filled,
    json_object,
    whole_number,
    whole_object,
)

# What breaks without each law was tried with google-genai 3.1: an `event:` line, a comment, `[DONE]` or a
# byte-order mark ends its line reader with UnknownApiResponseError.
NO_NAMES = Law("no-event-names", "events have no name: the SDK's reader fails on one")
CONSTANT = Law("constant-head", "responseId and modelVersion are the same in every chunk")
CONTENT = Law("content", "content has the role model, and text is text")
CALL_NAME = Law("call-name", "a functionCall has a name")
CALL_ID = Law("call-id", "call ids, if present, are unique and not empty")
# ValidationError. The URL-safe alphabet is accepted.
SIGNATURE = Law("signature", "a thoughtSignature is base64")
USAGE = Law("usage", "counts are numbers, totalTokenCount is their sum, and none goes down")
TERMINAL = Law("terminal-event", "one finishReason or error ends the stream, with nothing after it")
ERROR = Law("error-form", "an error is {error: {code, message}}")

_CONTENT = (CONTENT, CALL_NAME, CALL_ID, CALL_JSON, SIGNATURE, USAGE, TERMINAL, ERROR)
FAILED_ANSWER = b'"candidates"'
LAWS_OF_STREAMS = (*STREAM, NO_NAMES, CONSTANT, *_CONTENT)
LAWS_OF_BODIES = (UTF8, JSON, SHAPE, *_CONTENT)

_CONSTANT = ("responseId", "modelVersion")
_COUNTS = (
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
)
_URL_SAFE = str.maketrans("-_", "+/")


def check_stream(body: bytes) -> Complaints:
    complaints = Complaints()
    stream = _Stream(complaints)
    for number, (chunk, raw, offset) in enumerate(_chunks(body, complaints)):
        complaints.at(f"event {number}", raw, offset)
        with complaints.reading(SHAPE):
            stream.feed(chunk)
    complaints.at_end(body)
    with complaints.reading(SHAPE):
        stream.close()
    return complaints


def check_whole(body: bytes) -> Complaints:
    complaints = Complaints()
    value = whole_object(body, complaints)
    if value is None:
        return complaints
    stream = _Stream(complaints)
    with complaints.reading(SHAPE):
        stream.feed(value)
    stream.close()
    return complaints


_Chunk = tuple[Any, bytes, int | None]
"""A chunk, its bytes, and their offset."""


def _chunks(body: bytes, complaints: Complaints) -> list[_Chunk]:
    """The chunks of a stream. Without `alt=sse` Gemini sends one JSON array of the same chunks."""
    if body.lstrip().startswith(b"["):
        return _array(body, complaints)
    chunks: list[_Chunk] = []
    for number, event in enumerate(events(body, complaints, comments=False)):
        complaints.at(f"event {number}", event.raw, event.offset)
        complaints.unless(event.name is None, NO_NAMES, f"has a name: {event.name}")
        chunk = json_object(event.data, complaints)
        if chunk is not None:
            chunks.append((chunk, event.raw, event.offset))
    return chunks


def _array(body: bytes, complaints: Complaints) -> list[_Chunk]:
    complaints.at("", body, 0)
    try:
        return [(chunk, compact(chunk).encode(), None) for chunk in load(body)]
    except (UnreadableError, UnicodeDecodeError) as error:
        complaints.add(JSON, str(error))
        return []


class _Stream:
    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.constant: Json = {}
        self.ended: str | None = None
        self.call_ids: set[str] = set()
        self.output = 0

    def feed(self, chunk: Json) -> None:
        self.complain.unless(self.ended is None, TERMINAL, f"comes after {self.ended}")
        if "error" in chunk:
            self.ended = "an error"
            _check_error(self.complain, chunk["error"])
            return
        for name in _CONSTANT:
            if name in chunk:
                old = self.constant.setdefault(name, chunk[name])
                self.complain.unless(old == chunk[name], CONSTANT, f"{name} changed")
        self._check_usage(inner(chunk, "usageMetadata"))
        if inner(chunk, "promptFeedback").get("blockReason"):
            self.ended = "a blockReason"
        for candidate in entries(chunk, "candidates"):
            self._check_candidate(candidate)

    def close(self) -> None:
        self.complain.unless(self.ended, TERMINAL, "no finishReason and no error")

    def _check_candidate(self, candidate: Json) -> None:
        content = candidate.get("content")
        if content is not None:
            self.complain.unless(content.get("role", "model") == "model", CONTENT, "the role is not model")
            for part in entries(content, "parts"):
                self._check_part(part)
        if candidate.get("finishReason"):
            self.ended = "the finishReason"

    def _check_part(self, part: Json) -> None:
        self.complain.unless(isinstance(part.get("text", ""), str), CONTENT, "text is not text")
        if "functionCall" in part:
            self._check_call(part["functionCall"])
        if "thoughtSignature" in part:
            self.complain.unless(_is_base64(part["thoughtSignature"]), SIGNATURE, "signature is not base64")

    def _check_call(self, call: Json) -> None:
        self.complain.unless(filled(call.get("name")), CALL_NAME, "a functionCall without a name")
        self.complain.unless(is_object(call.get("args")), CALL_JSON, "args is not an object")
        if "id" in call:
            self.complain.unless(filled(call["id"]), CALL_ID, "an empty call id")
            self.complain.unless(call["id"] not in self.call_ids, CALL_ID, "two calls have the same id")
            self.call_ids.add(call["id"])

    def _check_usage(self, usage: Json) -> None:
        if "promptTokenCount" not in usage:
            return
        counts = [usage.get(name, 0) for name in _COUNTS]
        self.complain.unless(all(map(whole_number, counts)), USAGE, "a token count is not a number")
        if "totalTokenCount" in usage:
            self.complain.unless(
                usage["totalTokenCount"] == sum(counts), USAGE, "totalTokenCount is not the sum"
            )
        output = usage.get("candidatesTokenCount", 0)
        self.complain.unless(output >= self.output, USAGE, "candidatesTokenCount went down")
        self.output = output


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.translate(_URL_SAFE), validate=True)
    except binascii.Error:
        return False
    return True


def _check_error(complaints: Complaints, error: Json) -> None:
    with complaints.reading(ERROR):
        complaints.unless(whole_number(error["code"]), ERROR, "the error code is not a number")
        complaints.unless(filled(error["message"]), ERROR, "the error has no message")
