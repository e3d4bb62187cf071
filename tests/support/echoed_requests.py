"""The next request of a client that echoes an answer unchanged, with a result for each call.

One small function per protocol, as in plain agent loops.
"""

import json
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]


def _anthropic(answer: Json) -> Json:
    calls = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": id, "content": "ok"} for id in calls]
    return {
        "max_tokens": 1000,
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": [*results, {"type": "text", "text": "Go on"}]},
        ],
    }


def _chat(answer: Json) -> Json:
    message = answer["choices"][0]["message"]
    calls = message.get("tool_calls") or ()
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    user = {"role": "user", "content": "Hi"}
    return {"messages": [user, message, *results, {"role": "user", "content": "Go on"}]}


def _responses(answer: Json) -> Json:
    outputs = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
    results = [
        {"type": outputs[item["type"]], "call_id": item["call_id"], "output": "ok"}
        for item in answer["output"]
        if item["type"] in outputs
    ]
    user = {"role": "user", "content": "Hi"}
    return {"input": [user, *answer["output"], *results, {"role": "user", "content": "Go on"}]}


def _gemini(answer: Json) -> Json:
    content = answer["candidates"][0]["content"]
    calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
    results = [
        {"functionResponse": {"id": call["id"], "name": call["name"], "response": {"output": "ok"}}}
        for call in calls
    ]
    return {
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            content,
            {"role": "user", "parts": [*results, {"text": "Go on"}]},
        ]
    }


_ECHOES: dict[str, Callable[[Json], Json]] = {
    "anthropic": _anthropic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}


def echo(client: str, answer: bytes) -> bytes:
    """The body of the client's next request."""
    return json.dumps({"model": "asked-for", **_ECHOES[client](json.loads(answer))}).encode()
