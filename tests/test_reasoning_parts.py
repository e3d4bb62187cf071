"""Several parts of reasoning keep their boundaries, streamed and not."""

import json
from typing import Any

import pytest
from support.exchanges import exchange, run, sliced
from support.wires import ANTHROPIC, CHAT, RESPONSES

from dragoman.conform import laws, neutral

PARTS = ["First,\n\nlook.", "Then answer.", "Done."]
WHOLE = "\n\n".join(PARTS)
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"days": {"type": "integer"}}}}]
SUMMARY = [{"type": "summary_text", "text": text} for text in PARTS]
REASONING = {"id": "rs_1", "type": "reasoning", "summary": SUMMARY, "encrypted_content": "gAAA"}
CALL = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "f",
    "arguments": '{"days":"3"}',
}


def response(status: str, output: list[Any]) -> dict[str, Any]:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": output,
    }


def sse(*events: dict[str, Any]) -> bytes:
    numbered = [{**event, "sequence_number": number} for number, event in enumerate(events)]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in numbered)


def summary_events(index: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for number, text in enumerate(PARTS):
        where = {"item_id": "rs_1", "output_index": index, "summary_index": number}
        empty = {"type": "summary_text", "text": ""}
        events += [
            {"type": "response.reasoning_summary_part.added", **where, "part": empty},
            {"type": "response.reasoning_summary_text.delta", **where, "delta": text[:3]},
            {"type": "response.reasoning_summary_text.delta", **where, "delta": text[3:]},
            {"type": "response.reasoning_summary_text.done", **where, "text": text},
            {"type": "response.reasoning_summary_part.done", **where, "part": SUMMARY[number]},
        ]
    return events


def item_events(index: int, item: dict[str, Any], inner: list[dict[str, Any]]) -> list[dict[str, Any]]:
    begun = {**item, "summary": []} if item["type"] == "reasoning" else {**item, "arguments": ""}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        *inner,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def call_events(index: int) -> list[dict[str, Any]]:
    where = {"item_id": "fc_1", "output_index": index}
    arguments = CALL["arguments"]
    inner = [
        {"type": "response.function_call_arguments.delta", **where, "delta": arguments},
        {"type": "response.function_call_arguments.done", **where, "name": "f", "arguments": arguments},
    ]
    return item_events(index, CALL, inner)


def answer(*, call_first: bool, deltas: bool) -> bytes:
    """An answer whose call must be mended, so that everything after it is written anew."""
    reasoning = 1 if call_first else 0
    thought = item_events(reasoning, REASONING, summary_events(reasoning) if deltas else [])
    call = call_events(1 - reasoning)
    created = {"type": "response.created", "response": response("in_progress", [])}
    output = [CALL, REASONING] if call_first else [REASONING, CALL]
    completed = {"type": "response.completed", "response": response("completed", output)}
    return sse(created, *(call + thought if call_first else thought + call), completed)


def body() -> bytes:
    return json.dumps(response("completed", [REASONING, CALL])).encode()


def told(client: str, given: bytes, chunk: int, *, stream: bool) -> bytes:
    it = exchange(RESPONSES, client, TOOLS, stream=stream)
    got = run(it, sliced(given, chunk))
    assert laws.check(client, got, stream=stream) == []
    assert b'\\"3\\"' not in got
    return got


def last_response(got: bytes) -> dict[str, Any]:
    if got[:1] == b"{":
        return json.loads(got)
    data = [line[6:] for line in got.splitlines() if line.startswith(b"data: ")]
    return json.loads(data[-1])["response"]


GIVEN = {
    "call first": answer(call_first=True, deltas=True),
    "call first, no deltas": answer(call_first=True, deltas=False),
    "call last": answer(call_first=False, deltas=True),
    "call last, no deltas": answer(call_first=False, deltas=False),
    "body": body(),
}
EVERY = pytest.mark.parametrize("name", GIVEN)
CHUNKS = pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
STREAMED = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@EVERY
@CHUNKS
@STREAMED
def test_a_responses_client_gets_the_parts_of_a_summary(name: str, chunk: int, stream: bool) -> None:
    output = last_response(told(RESPONSES, GIVEN[name], chunk, stream=stream))["output"]
    assert [item["summary"] for item in output if item["type"] == "reasoning"] == [SUMMARY]


@CHUNKS
def test_the_events_of_a_summary_agree_with_its_item(chunk: int) -> None:
    got = told(RESPONSES, GIVEN["call first"], chunk, stream=True)
    events = [json.loads(line[6:]) for line in got.splitlines() if line.startswith(b"data: ")]
    texts = {
        e["summary_index"]: e["text"] for e in events if e["type"] == "response.reasoning_summary_text.done"
    }
    deltas = ["", "", ""]
    for e in events:
        if e["type"] == "response.reasoning_summary_text.delta":
            deltas[e["summary_index"]] += e["delta"]
    assert [texts[number] for number in range(3)] == deltas == PARTS


@EVERY
@CHUNKS
@STREAMED
def test_a_chat_client_gets_blank_lines_between_them(name: str, chunk: int, stream: bool) -> None:
    assert reasoning_of(told(CHAT, GIVEN[name], chunk, stream=stream)) == WHOLE


def reasoning_of(got: bytes) -> str:
    if got[:1] == b"{":
        return json.loads(got)["choices"][0]["message"]["reasoning_content"]
    data = [line[6:] for line in got.splitlines() if line.startswith(b"data: {")]
    deltas = [choice["delta"] for line in data for choice in json.loads(line)["choices"]]
    return "".join(delta.get("reasoning_content", "") for delta in deltas)


def thinking_blocks(*texts: str) -> bytes:
    """An Anthropic answer with these thinking blocks, one of them without text."""
    events: list[dict[str, Any]] = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            },
        }
    ]
    for index, text in enumerate(texts):
        block = {"type": "thinking", "thinking": "", "signature": ""}
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        deltas = (
            {"type": "thinking_delta", "thinking": text},
            {"type": "signature_delta", "signature": f"c2ln{index}"},
        )
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    index = len(texts)
    events += [
        {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": "So."}},
        {"type": "content_block_stop", "index": index},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 9},
        },
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


@CHUNKS
@STREAMED
@pytest.mark.parametrize("texts", [("One.", "Two."), ("", "One.", "", "Two."), ("One.", "Two.", "")])
def test_thinking_blocks_do_not_run_together_in_chat(
    texts: tuple[str, ...], chunk: int, stream: bool
) -> None:
    it = exchange(ANTHROPIC, CHAT, stream=stream)
    assert reasoning_of(run(it, sliced(thinking_blocks(*texts), chunk))) == "One.\n\nTwo."


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text", "thinking"])
@pytest.mark.parametrize("client", [ANTHROPIC, RESPONSES])
def test_the_names_of_the_reasoning_field(client: str, field: str) -> None:
    """DeepSeek, OpenRouter, GitHub Copilot, and servers that name it like Ollama's own protocol."""
    deltas = [{field: "I add "}, {field: "both."}, {"content": "7"}]
    chunks: list[Any] = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in deltas
    ]
    end: Any = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    body = b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in [*chunks, end])
    said = neutral.reduce(client, run(exchange(CHAT, client), sliced(body, 7)), stream=True)
    assert (said["thinking"], said["text"], said["stop"]) == ("I add both.", "7", "end_turn")
