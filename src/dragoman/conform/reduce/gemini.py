"""Gemini generateContent, stream and whole, to the neutral form. Only candidate 0 is read.

A functionCall may come without an id. Its index (`@0`, `@1`, ...) becomes its id.
"""

from typing import Any

from .. import sse
from ..shape import (
    Json,
    ReducedAnswer,
    ReducedCall,
    UnreadableError,
    compact,
    counts,
    entries,
    error_message,
    inner,
    is_array,
    is_object,
    load,
    load_object,
)

_STOPS = {"MAX_TOKENS": "max_tokens"}
_FILTERED = {
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "MODEL_ARMOR",
}
_FAILED = {
    "MALFORMED_FUNCTION_CALL",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MALFORMED_RESPONSE",
}


def stream(body: bytes) -> ReducedAnswer:
    return answer_of(_chunks(body))


def whole(body: bytes) -> ReducedAnswer:
    value = load(body)
    # Google wraps some error bodies in a list with one element.
    return answer_of(value if is_array(value) else [value])


def _chunks(body: bytes) -> list[Any]:
    """The chunks of a stream. Without `alt=sse` Gemini sends one JSON array of the same chunks."""
    if body.lstrip().startswith(b"["):
        return load(body)
    return [load_object(event.data) for event in sse.events(body)]


def answer_of(chunks: list[Any]) -> ReducedAnswer:
    answer = ReducedAnswer()
    usage: Json = {}
    for chunk in chunks:
        if not is_object(chunk):
            raise UnreadableError(f"not a JSON object: {str(chunk)[:80]}")
        if "error" in chunk:
            answer.fail(error_message(chunk["error"]))
            break
        answer.id = answer.id or chunk.get("responseId")
        answer.model = answer.model or chunk.get("modelVersion")
        usage |= inner(chunk, "usageMetadata")
        _read_chunk(answer, chunk)
    answer.usage = _usage(usage)
    return answer


def _read_chunk(answer: ReducedAnswer, chunk: Json) -> None:
    if inner(chunk, "promptFeedback").get("blockReason"):
        answer.stop = "content_filter"
    for candidate in entries(chunk, "candidates"):
        if candidate.get("index", 0) != 0:
            continue
        for part in entries(inner(candidate, "content"), "parts"):
            _read_part(answer, part)
        if candidate.get("finishReason"):
            _finish(answer, candidate)


def _read_part(answer: ReducedAnswer, part: Json) -> None:
    if part.get("thoughtSignature"):
        answer.opaque.append(part["thoughtSignature"])
    if part.get("thought"):
        answer.thinking += part.get("text", "")
    else:
        answer.text += part.get("text", "")
    if "functionCall" in part:
        answer.calls.append(_call(part["functionCall"], len(answer.calls)))


def _call(call: Json, place: int) -> ReducedCall:
    args = call.get("args")
    value = args if is_object(args) else None
    raw = "" if args is None else compact(args)
    return ReducedCall(call.get("id") or f"@{place}", call.get("name") or "", raw, value=value)


def _finish(answer: ReducedAnswer, candidate: Json) -> None:
    reason: str = candidate["finishReason"]
    if reason in _FAILED:
        answer.fail(candidate.get("finishMessage") or reason)
    elif reason in _FILTERED:
        answer.stop = "content_filter"
    elif reason == "STOP":
        # Gemini also sends STOP after calls.
        answer.stop = "tool_use" if answer.calls else "end_turn"
    else:
        answer.stop = _STOPS.get(reason, reason)


def _usage(usage: Json) -> dict[str, int]:
    """`candidatesTokenCount` excludes the thoughts. Gemini omits a count of zero."""
    if "promptTokenCount" not in usage:
        return {}
    thoughts = usage.get("thoughtsTokenCount")
    return counts(
        input=usage["promptTokenCount"],
        output=usage.get("candidatesTokenCount", 0) + (thoughts or 0),
        cached_input=usage.get("cachedContentTokenCount"),
        reasoning=thoughts,
    )
