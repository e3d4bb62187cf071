"""Responses of open models have reasoning as content, not as a summary: it passes and can be continued."""

import json
from typing import Any

import pytest
from support.exchanges import exchange, run, sliced

from dragoman.conform import laws, neutral

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"days": {"type": "integer"}}}}]
THOUGHT = "I add the days."
LEAK = '<tool_call>{"name": "f", "arguments": {"days": 3}}</tool_call>'
PLACE = {"item_id": "rs_1", "output_index": 0, "content_index": 0}


def response(status: str, output: list[Any]) -> dict[str, Any]:
    return {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": output,
    }


def stream(thought: str, *, parts: bool, call: bool) -> bytes:
    content = {"type": "reasoning_text", "text": thought}
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "content": [content]}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": response("in_progress", [])},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"content": []}},
        *(
            [{"type": "response.content_part.added", **PLACE, "part": content | {"text": ""}}]
            if parts
            else []
        ),
        *({"type": "response.reasoning_text.delta", **PLACE, "delta": piece} for piece in thought.split("|")),
        {"type": "response.reasoning_text.done", **PLACE, "text": thought.replace("|", "")},
        *([{"type": "response.content_part.done", **PLACE, "part": content}] if parts else []),
        {"type": "response.output_item.done", "output_index": 0, "item": item},
    ]
    output: list[Any] = [item]
    if call:
        fc = {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "c1",
            "name": "f",
            "arguments": '{"days":"3"}',
        }
        place = {"item_id": "fc_1", "output_index": 1}
        done = fc | {"status": "completed"}
        begun = fc | {"arguments": "", "status": "in_progress"}
        arguments = "response.function_call_arguments"
        events += [
            {"type": "response.output_item.added", "output_index": 1, "item": begun},
            {"type": f"{arguments}.delta", **place, "delta": fc["arguments"]},
            {"type": f"{arguments}.done", **place, "name": "f", "arguments": fc["arguments"]},
            {"type": "response.output_item.done", "output_index": 1, "item": done},
        ]
        output.append(done)
    events.append({"type": "response.completed", "response": response("completed", output)})
    text = json.dumps(events).replace(json.dumps(thought)[1:-1], json.dumps(thought.replace("|", ""))[1:-1])
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(json.loads(text))]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in numbered)


def said(data: bytes, size: int) -> tuple[bytes, neutral.Neutral]:
    got = run(exchange("openai-responses", "openai-responses", TOOLS), sliced(data, size))
    assert laws.check("openai-responses", got, stream=True) == []
    return got, neutral.reduce("openai-responses", got, stream=True)


def payloads(data: bytes) -> list[Any]:
    return [json.loads(frame.partition(b"data: ")[2]) for frame in data.split(b"\n\n") if frame]


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("parts", [True, False])
def test_reasoning_as_content_passes_as_it_is(parts: bool, size: int) -> None:
    data = stream(THOUGHT, parts=parts, call=False)
    assert payloads(said(data, size)[0]) == payloads(data)


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("parts", [True, False])
def test_a_mended_call_after_it(parts: bool, size: int) -> None:
    got, answer = said(stream(THOUGHT, parts=parts, call=True), size)
    assert answer["thinking"] == THOUGHT
    assert [call["arguments"] for call in answer["tool_calls"]] == [{"days": 3}]
    assert b"summary_text" not in got


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("parts", [True, False])
def test_a_call_that_leaked_into_it(parts: bool, size: int) -> None:
    """What remains of the reasoning stays content."""
    got, answer = said(stream(f"{THOUGHT}|{LEAK}", parts=parts, call=False), size)
    assert answer["thinking"] == THOUGHT
    assert [call["arguments"] for call in answer["tool_calls"]] == [{"days": 3}]
    assert (b"content_part.done" in got) == parts
    assert b"summary_text" not in got
