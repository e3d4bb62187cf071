"""Reasoning is the same streamed or in a body, and is sent once."""

import json
from typing import Any

import msgspec
import pytest
from support.exchanges import exchange, run

from dragoman.conform import neutral

CLIENTS = ["anthropic", "openai-chat", "gemini"]


def sse(*values: dict[str, Any]) -> bytes:
    lines = [f"event: {v['type']}\n".encode() if "type" in v else b"" for v in values]
    return b"".join(
        line + b"data: " + msgspec.json.encode(v) + b"\n\n" for line, v in zip(lines, values, strict=True)
    )


def thinking(upstream: str, client: str, data: bytes) -> str:
    return neutral.reduce(client, run(exchange(upstream, client), [data]), stream=True)["thinking"]


def response(*parts: str) -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": part} for part in parts]
    item = {"type": "reasoning", "id": "rs_1", "summary": summary}
    return {"id": "resp_1", "object": "response", "model": "m", "status": "completed", "output": [item]}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("client", CLIENTS)
def test_parts_of_a_summary_are_separated(client: str, first: int) -> None:
    parts = ["Look.", "", "Compare."]
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "resp_1", "model": "m"}},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {"type": "reasoning", "id": "rs_1"},
        },
    ]
    for number, part in enumerate(parts, first):
        delta = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": number}
        events += [{**delta, "delta": piece} for piece in (part[:2], part[2:])]
    events.append({"type": "response.completed", "response": response(*parts)})
    assert thinking("openai-responses", client, sse(*events)) == "Look.\n\nCompare."
    body = msgspec.json.encode(response(*parts))
    assert thinking("openai-responses", client, body) == "Look.\n\nCompare."


@pytest.mark.parametrize("client", CLIENTS)
def test_parts_of_reasoning_details_are_separated(client: str) -> None:
    def detail(index: int, summary: str) -> dict[str, Any]:
        return {"type": "reasoning.summary", "index": index, "summary": summary}

    deltas = [[detail(0, "Lo")], [detail(0, "ok.")], [detail(1, "Compare.")]]
    chunks: list[dict[str, Any]] = [{"delta": {"reasoning_details": one}} for one in deltas]
    chunks.append({"delta": {"content": "Hi"}, "finish_reason": "stop"})
    streamed = sse(*({"id": "c", "choices": [{"index": 0, **chunk}]} for chunk in chunks))
    if client == "openai-chat":  # it gets the details as they came
        got = run(exchange("openai-chat", client), [streamed])
        chunks = [json.loads(frame[6:]) for frame in got.split(b"\n\n") if frame[6:7] == b"{"]
        given = [choice["delta"].get("reasoning_details") for chunk in chunks for choice in chunk["choices"]]
        assert [details for details in given if details] == deltas
        return
    assert thinking("openai-chat", client, streamed) == "Look.\n\nCompare."
    message = {"content": "Hi", "reasoning_details": [detail(0, "Look."), detail(1, "Compare.")]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = msgspec.json.encode({"id": "c", "object": "chat.completion", "choices": [choice]})
    assert thinking("openai-chat", client, body) == "Look.\n\nCompare."


def chunked(*contents: str, field: str = "") -> bytes:
    deltas = [{"reasoning_content": field}] if field else []
    deltas += [{"content": content} for content in contents]
    chunks: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    return sse(*({"id": "c", "choices": [chunk]} for chunk in chunks)) + b"data: [DONE]\n\n"


def test_reasoning_in_tags_is_one_block() -> None:
    data = chunked("<think>Lo", "ok. Com", "pare.</think>", "Hi")
    assert run(exchange("openai-chat", "anthropic"), [data]).count(b'"content_block":{"type":"thinking"') == 1


def test_reasoning_in_tags_that_only_begins_like_the_field_is_kept() -> None:
    data = chunked("<think>Look. ", "And compare.</think>", "Hi", field="Look. Then")
    assert thinking("openai-chat", "anthropic", data) == "Look. ThenLook. And compare."
