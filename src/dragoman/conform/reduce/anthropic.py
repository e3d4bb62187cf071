"""Anthropic Messages, stream and whole, to the neutral form."""

from dataclasses import dataclass

from .. import sse
from ..shape import Json, ReducedAnswer, ReducedCall, compact, counts, error_message, inner, load_object

_STOPS = {"model_context_window_exceeded": "max_tokens"}

STOP_FALLBACKS = {"content_filter": "refusal"}
"""Anthropic has no stop reason for a content filter."""


def stream(body: bytes) -> ReducedAnswer:
    reader = _Reader()
    for event in sse.events(body):
        reader.feed(load_object(event.data))
        if reader.ended:
            break
    return reader.answer()


def whole(body: bytes) -> ReducedAnswer:
    return answer_of(load_object(body))


def answer_of(message: Json) -> ReducedAnswer:
    if message.get("type") == "error":
        answer = ReducedAnswer()
        answer.fail(error_message(message["error"]))
        return answer
    return _answer(message, [_Block(block, stopped=True) for block in message["content"]])


@dataclass(slots=True)
class _Block:
    """A content block and the argument text of its deltas (None: no deltas)."""

    value: Json
    fragments: str | None = None
    stopped: bool = False

    def add(self, delta: Json) -> None:
        match delta["type"]:
            case "text_delta":
                self.value["text"] += delta["text"]
            case "thinking_delta":
                self.value["thinking"] += delta["thinking"]
            case "signature_delta":
                self.value["signature"] = delta["signature"]
            case "input_json_delta":
                self.fragments = (self.fragments or "") + delta["partial_json"]
            case _:
                pass

    def call(self) -> ReducedCall:
        call = ReducedCall(self.value["id"], self.value["name"], complete=self.stopped)
        if self.fragments:
            call.raw = self.fragments
        else:
            # Without fragments, the input of content_block_start counts.
            call.value = self.value["input"]
            call.raw = compact(call.value) if call.value or self.fragments is None else ""
        return call


class _Reader:
    def __init__(self) -> None:
        self.message: Json = {"content": [], "usage": {}, "stop_reason": None}
        self.blocks: dict[int, _Block] = {}
        self.error: str | None = None
        self.ended = False

    def feed(self, event: Json) -> None:
        match event["type"]:
            case "message_start":
                self.message.update(event["message"])
            case "content_block_start":
                self.blocks[event["index"]] = _Block(dict(event["content_block"]))
            case "content_block_delta":
                self.blocks[event["index"]].add(event["delta"])
            case "content_block_stop":
                self.blocks[event["index"]].stopped = True
            case "message_delta":
                self.message["stop_reason"] = event["delta"].get("stop_reason")
                self.message["usage"] = self.message["usage"] | event.get("usage", {})
            case "message_stop":
                self.ended = True
            case "error":
                self.error = error_message(event["error"])
                self.ended = True
            case _:
                pass

    def answer(self) -> ReducedAnswer:
        if not self.ended:
            # Without message_stop a stream is cut: a stop reason in an earlier message_delta does not count.
            self.message["stop_reason"] = None
        answer = _answer(self.message, list(self.blocks.values()))
        if self.error is not None:
            answer.fail(self.error)
        return answer


def _answer(message: Json, blocks: list[_Block]) -> ReducedAnswer:
    answer = ReducedAnswer(id=message.get("id"), model=message.get("model"))
    answer.usage = _usage(message["usage"])
    reason = message["stop_reason"]
    answer.stop = _STOPS.get(reason, reason)
    for block in blocks:
        _read_block(answer, block)
    return answer


def _read_block(answer: ReducedAnswer, block: _Block) -> None:
    value = block.value
    match value["type"]:
        case "text":
            answer.text += value["text"]
        case "thinking":
            answer.thinking += value["thinking"]
            if value.get("signature"):
                answer.opaque.append(value["signature"])
        case "redacted_thinking":
            answer.opaque.append(value["data"])
        case "tool_use":
            answer.calls.append(block.call())
        case _:
            pass


def _usage(usage: Json) -> dict[str, int]:
    """Anthropic's `input_tokens` excludes cache reads and writes; the neutral `input` includes them."""
    read = usage.get("cache_read_input_tokens")
    written = usage.get("cache_creation_input_tokens")
    plain = usage.get("input_tokens")
    details = inner(usage, "output_tokens_details")
    return counts(
        input=None if plain is None else plain + (read or 0) + (written or 0),
        output=usage.get("output_tokens"),
        cached_input=read,
        cache_write=written,
        reasoning=details.get("thinking_tokens"),
    )
