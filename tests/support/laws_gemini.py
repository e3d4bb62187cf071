"""The laws of Gemini generateContent.

Stream: `data: ` lines and nothing else, since the SDK's reader stumbles over anything more; each
holds new parts; the one with the finishReason is the last. Or an error object at any point.
"""

import base64
import binascii
from typing import Any

from .laws_framing import Complaints, events, filled, json_object, whole_number, whole_object
from .shape import Json, UnreadableError, load

_CONSTANT = ("responseId", "modelVersion")
_COUNTS = (
    "promptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
)
_URL_SAFE = str.maketrans("-_", "+/")


def check_stream(body: bytes) -> list[str]:
    complaints = Complaints()
    stream = _Stream(complaints)
    for number, chunk in enumerate(_chunks(body, complaints)):
        complaints.place = f"event {number}"
        with complaints.reading():
            stream.feed(chunk)
    complaints.place = "end"
    with complaints.reading():
        stream.close()
    return complaints.found


def check_whole(body: bytes) -> list[str]:
    complaints = Complaints()
    value = whole_object(body, complaints)
    if value is None:
        return complaints.found
    stream = _Stream(complaints)
    with complaints.reading():
        stream.feed(value)
    stream.close()
    return complaints.found


def _chunks(body: bytes, complaints: Complaints) -> list[Any]:
    """Without `alt=sse` a stream is one JSON array of the same chunks."""
    if body.lstrip().startswith(b"["):
        return _array(body, complaints)
    chunks: list[Any] = []
    for number, event in enumerate(events(body, complaints, comments=False)):
        complaints.place = f"event {number}"
        complaints.unless(event.name is None, f"has a name: {event.name}")
        chunk = json_object(event.data, complaints)
        if chunk is not None:
            chunks.append(chunk)
    return chunks


def _array(body: bytes, complaints: Complaints) -> list[Any]:
    try:
        return load(body)
    except (UnreadableError, UnicodeDecodeError) as error:
        complaints.add(str(error))
        return []


class _Stream:
    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.constant: Json = {}
        self.ended: str | None = None
        self.call_ids: set[str] = set()
        self.output = 0

    def feed(self, chunk: Json) -> None:
        self.complain.unless(self.ended is None, f"comes after {self.ended}")
        if "error" in chunk:
            self.ended = "an error"
            _check_error(self.complain, chunk["error"])
            return
        for name in _CONSTANT:
            if name in chunk:
                old = self.constant.setdefault(name, chunk[name])
                self.complain.unless(old == chunk[name], f"{name} changed")
        self._check_usage(chunk.get("usageMetadata") or {})
        if (chunk.get("promptFeedback") or {}).get("blockReason"):
            self.ended = "a blockReason"
        for candidate in chunk.get("candidates") or []:
            self._check_candidate(candidate)

    def close(self) -> None:
        self.complain.unless(self.ended, "no finishReason and no error")

    def _check_candidate(self, candidate: Json) -> None:
        content = candidate.get("content")
        if content is not None:
            self.complain.unless(content.get("role", "model") == "model", "the role is not model")
            for part in content.get("parts") or []:
                self._check_part(part)
        if candidate.get("finishReason"):
            self.ended = "the finishReason"

    def _check_part(self, part: Json) -> None:
        self.complain.unless(isinstance(part.get("text", ""), str), "text is not text")
        if "functionCall" in part:
            self._check_call(part["functionCall"])
        if "thoughtSignature" in part:
            self.complain.unless(_is_base64(part["thoughtSignature"]), "signature is not base64")

    def _check_call(self, call: Json) -> None:
        self.complain.unless(filled(call.get("name")), "a functionCall without a name")
        self.complain.unless(isinstance(call.get("args"), dict), "args is not an object")
        if "id" in call:
            self.complain.unless(filled(call["id"]), "an empty call id")
            self.complain.unless(call["id"] not in self.call_ids, "two calls have the same id")
            self.call_ids.add(call["id"])

    def _check_usage(self, usage: Json) -> None:
        if "promptTokenCount" not in usage:
            return
        counts = [usage.get(name, 0) for name in _COUNTS]
        self.complain.unless(all(map(whole_number, counts)), "a token count is not a number")
        if "totalTokenCount" in usage:
            self.complain.unless(usage["totalTokenCount"] == sum(counts), "totalTokenCount is not the sum")
        output = usage.get("candidatesTokenCount", 0)
        self.complain.unless(output >= self.output, "candidatesTokenCount went down")
        self.output = output


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.translate(_URL_SAFE), validate=True)
    except binascii.Error:
        return False
    return True


def _check_error(complaints: Complaints, error: Json) -> None:
    complaints.unless(whole_number(error["code"]), "the error code is not a number")
    complaints.unless(filled(error["message"]), "the error has no message")
