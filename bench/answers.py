"""The scripted upstream's answers as bytes. The load generator checks against the same shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from .shapes import TOOL, Shape

CHAT, ANTHROPIC, RESPONSES = "openai-chat", "anthropic", "openai-responses"
STAMP = "@stamp@"
"""In a paced answer's text: replaced by the number of the event and the time it was sent."""
_HEAD = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1700000000, "model": "bench"}
_ID = "call_bench1"


def stream(protocol: str, shape: Shape, told: str = "") -> list[bytes]:
    """The events of a streamed answer. Its text ends with `told`, the request's note."""
    pieces = [STAMP] * shape.texts if shape.every_ms else shape.pieces()
    pieces += [told] if told else []
    return list(_chat(shape, pieces) if protocol == CHAT else _anthropic(shape, pieces))


def body(protocol: str, shape: Shape) -> bytes:
    """The same answer in one piece."""
    return msgspec.json.encode(_chat_body(shape) if protocol == CHAT else _anthropic_body(shape))


def _chat(shape: Shape, pieces: list[str]) -> Iterator[bytes]:
    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return b"data: %b\n\n" % msgspec.json.encode({**_HEAD, "choices": [choice]})

    yield chunk({"role": "assistant", "content": ""})
    yield from (chunk({"content": piece}) for piece in pieces)
    if shape.fragments:
        function = {"name": TOOL, "arguments": ""}
        yield chunk({"tool_calls": [{"index": 0, "id": _ID, "type": "function", "function": function}]})
        for fragment in shape.argument_fragments():
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": fragment}}]})
    yield chunk({}, "tool_calls" if shape.fragments else "stop")
    usage = {"prompt_tokens": 100, "completion_tokens": shape.events, "total_tokens": 100 + shape.events}
    yield b"data: %b\n\n" % msgspec.json.encode({**_HEAD, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _anthropic(shape: Shape, pieces: list[str]) -> Iterator[bytes]:
    def event(type: str, **fields: Any) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (type.encode(), msgspec.json.encode({"type": type, **fields}))

    def delta(index: int, type: str, **fields: Any) -> bytes:
        return event("content_block_delta", index=index, delta={"type": type, **fields})

    message = {"type": "message", "role": "assistant", "model": "bench", "content": []}
    usage = {"input_tokens": 100, "output_tokens": 1}
    ends = {"stop_reason": None, "stop_sequence": None}
    yield event("message_start", message={"id": "msg_bench", **message, **ends, "usage": usage})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    yield from (delta(0, "text_delta", text=piece) for piece in pieces)
    yield event("content_block_stop", index=0)
    if shape.fragments:
        block = {"type": "tool_use", "id": "toolu_bench1", "name": TOOL, "input": {}}
        yield event("content_block_start", index=1, content_block=block)
        for fragment in shape.argument_fragments():
            yield delta(1, "input_json_delta", partial_json=fragment)
        yield event("content_block_stop", index=1)
    reason = "tool_use" if shape.fragments else "end_turn"
    ends = {"stop_reason": reason, "stop_sequence": None}
    yield event("message_delta", delta=ends, usage={"output_tokens": shape.events})
    yield event("message_stop")


def _chat_body(shape: Shape) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(shape.pieces())}
    if shape.fragments:
        function = {"name": TOOL, "arguments": "".join(shape.argument_fragments())}
        message["tool_calls"] = [{"id": _ID, "type": "function", "function": function}]
    reason = "tool_calls" if shape.fragments else "stop"
    usage = {"prompt_tokens": 100, "completion_tokens": shape.events, "total_tokens": 100 + shape.events}
    choices = [{"index": 0, "message": message, "finish_reason": reason}]
    return {**_HEAD, "object": "chat.completion", "choices": choices, "usage": usage}


def _anthropic_body(shape: Shape) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": "".join(shape.pieces())}]
    if shape.fragments:
        content.append({"type": "tool_use", "id": "toolu_bench1", "name": TOOL, "input": shape.call()})
    return {
        "id": "msg_bench",
        "type": "message",
        "role": "assistant",
        "model": "bench",
        "content": content,
        "stop_reason": "tool_use" if shape.fragments else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": shape.events},
    }
