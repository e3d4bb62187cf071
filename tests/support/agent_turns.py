"""A client's handling of a streamed or whole answer: assemble it, and send it back with a result.

One small assembler per protocol, as in plain agent loops. `Capture.manner` states how clients differ.
"""

import json
from collections.abc import Callable
from typing import Any

from .captures import Capture

Json = dict[str, Any]

RESULT = "total 0"
GEMINI_RESULTS: dict[str, Callable[[str], Json]] = {
    "result as result": lambda name: {"result": RESULT},
    "result as return value": lambda name: {"return_value": RESULT},
    "result as name and content": lambda name: {"name": name, "content": RESULT},
}


def frames(body: bytes) -> list[Json]:
    """The JSON of every frame."""
    lines = (line.removeprefix("data: ") for line in body.decode().split("\n") if line.startswith("data: {"))
    return [json.loads(line) for line in lines]


def next_body(capture: Capture, body: Json, answer: bytes) -> Json:
    """The client's next request, after `answer` to `body`."""
    return _TURNS[capture.protocol](capture, body, answer)


# Anthropic


def _blocks(capture: Capture, answer: bytes) -> list[Json]:
    if not capture.stream:
        return json.loads(answer)["content"]
    blocks: dict[int, Json] = {}
    inputs: dict[int, str] = {}
    for event in frames(answer):
        if event["type"] == "content_block_start":
            blocks[event["index"]] = event["content_block"]
        elif event["type"] == "content_block_delta":
            _grow(blocks[event["index"]], event["delta"], inputs, event["index"])
    for index, text in inputs.items():
        blocks[index]["input"] = json.loads(text or "{}")
    return [blocks[index] for index in sorted(blocks)]


def _grow(block: Json, delta: Json, inputs: dict[int, str], index: int) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = delta["signature"]
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + delta["partial_json"]


def _anthropic(capture: Capture, body: Json, answer: bytes) -> Json:
    blocks = _blocks(capture, answer)
    if "no reasoning" in capture.manner:
        blocks = [block for block in blocks if "thinking" not in block["type"]]
    mark = {"cache_control": {"type": "ephemeral"}}
    if "marked call" in capture.manner:
        blocks = [{**block, **mark} if block["type"] == "tool_use" else block for block in blocks]
    said = RESULT
    if "reminder in result" in capture.manner:
        said += "\n\n<system-reminder>\nBe brief.\n</system-reminder>"
    content = [{"type": "text", "text": said}] if "result in parts" in capture.manner else said
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": content, "is_error": False}
        | (mark if "marked result" in capture.manner else {})
        for block in blocks
        if block["type"] == "tool_use"
    ]
    turns = [{"role": "assistant", "content": blocks}, {"role": "user", "content": results}]
    messages = body["messages"]
    if "system after result" in capture.manner:
        # A list in the first request is a string in the second.
        messages = [_as_text(message) for message in messages]
        turns.append({"role": "system", "content": "The user opened a.py."})
    return {**body, "messages": [*messages, *turns]}


def _as_text(message: Json) -> Json:
    if message["role"] != "system":
        return message
    return {**message, "content": message["content"][0]["text"]}


# Chat


def _message(capture: Capture, answer: bytes) -> Json:
    if not capture.stream:
        return json.loads(answer)["choices"][0]["message"]
    message: Json = {"role": "assistant", "content": None}
    calls: dict[int, Json] = {}
    for chunk in frames(answer):
        for choice in chunk["choices"]:
            for call in choice["delta"].pop("tool_calls", None) or ():
                _add_call(calls, call)
            for key, value in choice["delta"].items():
                message[key] = message[key] + value if isinstance(message.get(key), str | list) else value
    message["role"] = "assistant"
    return {**message, "tool_calls": [calls[index] for index in sorted(calls)]}


def _add_call(calls: dict[int, Json], delta: Json) -> None:
    call = calls.setdefault(delta["index"], {"function": {"name": "", "arguments": ""}})
    call |= {key: delta[key] for key in ("id", "type", "index") if key in delta}
    for key, value in delta.get("function", {}).items():
        call["function"][key] += value or ""


def _chat(capture: Capture, body: Json, answer: bytes) -> Json:
    message = _message(capture, answer)
    for call in message["tool_calls"]:
        if "helper's call" in capture.manner:
            call["function"]["parsed_arguments"] = json.loads(call["function"]["arguments"])
        else:
            call.pop("index", None)
    content = [{"type": "text", "text": RESULT}] if "result in parts" in capture.manner else RESULT
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": content} for call in message["tool_calls"]
    ]
    return {**body, "messages": [*body["messages"], message, *results]}


# Responses

_OUTPUTS = {
    "function_call": ("function_call_output", "fco"),
    "custom_tool_call": ("custom_tool_call_output", "ctco"),
}


def _items(capture: Capture, answer: bytes) -> list[Json]:
    if not capture.stream:
        return json.loads(answer)["output"]
    return [event["item"] for event in frames(answer) if event["type"] == "response.output_item.done"]


def _echoed(capture: Capture, item: Json) -> Json:
    if "no item ids" in capture.manner and item["type"] != "message":
        item = {key: value for key, value in item.items() if key not in ("id", "status")}
    if "empty reasoning content" in capture.manner and item["type"] == "reasoning":
        item = {**item, "content": None}
    return item


def _responses(capture: Capture, body: Json, answer: bytes) -> Json:
    items = _items(capture, answer)
    if "no reasoning" in capture.manner:
        items = [item for item in items if item["type"] != "reasoning"]
    results = [_output(capture, item) for item in items if item["type"] in _OUTPUTS]
    before = body["input"]
    if isinstance(before, str):
        before = [{"role": "user", "content": before}]
    return {**body, "input": [*before, *(_echoed(capture, item) for item in items), *results]}


def _output(capture: Capture, call: Json) -> Json:
    kind, prefix = _OUTPUTS[call["type"]]
    output: Json = {"type": kind, "call_id": call["call_id"]}
    if "ids" in capture.manner:
        output["id"] = f"{prefix}_1"
    parts = [{"type": "input_text", "text": RESULT}]
    return {**output, "output": parts if "result in parts" in capture.manner else RESULT}


# Gemini


def _parts(capture: Capture, answer: bytes) -> list[Json]:
    chunks = frames(answer) if capture.stream else [json.loads(answer)]
    candidates = (candidate for chunk in chunks for candidate in chunk.get("candidates", ()))
    return [part for candidate in candidates for part in candidate.get("content", {}).get("parts", ())]


def _gemini(capture: Capture, body: Json, answer: bytes) -> Json:
    parts = _parts(capture, answer)
    if "no thoughts" in capture.manner:
        parts = [part for part in parts if not part.get("thought")]
    response = next((r for manner, r in GEMINI_RESULTS.items() if manner in capture.manner), None)
    results: list[Json] = []
    for number, part in enumerate(part for part in parts if "functionCall" in part):
        call = part["functionCall"]
        if "no call ids" in capture.manner:
            call.pop("id", None)
        elif "makes ids" in capture.manner:
            call["id"] = call.get("id") or f"made-up-{number}"
        named = {key: call[key] for key in ("id", "name") if key in call}
        said = response(call["name"]) if response else {"output": RESULT}
        results.append({"functionResponse": {**named, "response": said}})
    turns = [{"role": "model", "parts": parts}, {"role": "user", "parts": results}]
    return {**body, "contents": [*body["contents"], *turns]}


_TURNS: dict[str, Callable[[Capture, Json, bytes], Json]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}
