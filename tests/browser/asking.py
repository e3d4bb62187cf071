"""Requests that fill the inspector's list, and answers for the upstream."""

import json
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from support.gateways import Gateway
from support.plain_http import Got, post
from support.scripted_upstream import ScriptedUpstream

BASH = {
    "name": "Bash",
    "description": "Run a command.",
    "input_schema": {
        "type": "object",
        "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
        "required": ["command"],
    },
}
WRITE = {
    "name": "Write",
    "description": "Write a file.",
    "input_schema": {
        "type": "object",
        "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["file_path", "content"],
    },
}
MENDED = ('{"pro', 'mpt": "ls -la src"', ', "timeout": "3', '0"}')


def config(upstream: ScriptedUpstream, server: str = "") -> str:
    return f"""
        [server]
        retries = 0
        {server}
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{upstream.url}"
        credential = "none"
        [[routes]]
        match = "*"
        to = "up/*"
    """


def ask(served: Gateway, model: str = "qwen", **more: Any) -> Got:
    body = {
        "model": model,
        "max_tokens": 300,
        "top_k": 5,
        "stop_sequences": ["END"],
        "stream": True,
        "tools": [BASH, WRITE],
        "messages": [{"role": "user", "content": "List the files"}],
    }
    return post(f"{served.url}/v1/messages", body | more, user_agent="claude-cli/2.1.0 (external, cli)")


def asked(served: Gateway, model: str = "qwen", **more: Any) -> str:
    """Run a successful exchange. Returns its id."""
    got = ask(served, model, **more)
    assert got.status == 200, got.body
    return got.headers["x-dragoman-exchange"]


def _chat_tools() -> list[dict[str, Any]]:
    named = ((tool["name"], tool["input_schema"]) for tool in (BASH, WRITE))
    return [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in named]


_CHAT = {"model": "qwen", "messages": [{"role": "user", "content": "List the files"}], "tools": _chat_tools()}
# A request of every client protocol: its path, its path for a stream, and its body.
CLIENTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "openai-chat": ("/v1/chat/completions", "/v1/chat/completions", _CHAT),
    "cursor": ("/cursor/v2/chat/completions", "/cursor/v2/chat/completions", _CHAT),
    "openai-responses": (
        "/v1/responses",
        "/v1/responses",
        {
            "model": "qwen",
            "input": "List the files",
            "tools": [{"type": "function", **tool["function"]} for tool in _chat_tools()],
        },
    ),
    "gemini": (
        "/v1beta/models/qwen:generateContent",
        "/v1beta/models/qwen:streamGenerateContent",
        {
            "contents": [{"role": "user", "parts": [{"text": "List the files"}]}],
            "tools": [{"functionDeclarations": [tool["function"] for tool in _chat_tools()]}],
        },
    ),
}


def asked_as(served: Gateway, client: str, *, stream: bool) -> str:
    """Run an exchange with a client of another protocol. Returns its id."""
    path, streamed, body = CLIENTS[client]
    wish: dict[str, Any] = {} if client == "gemini" else {"stream": stream}
    if stream and body is _CHAT:
        wish["stream_options"] = {"include_usage": True}
    got = post(served.url + (streamed if stream else path), body | wish)
    assert got.status == 200, got.body
    return got.headers["x-dragoman-exchange"]


def calls(name: str, fragments: Iterable[str], text: str = "I will look.") -> list[bytes]:
    """An answer with one call."""
    head = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": text},
        {"tool_calls": [{"index": 0, **head}]},
    ]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in fragments]
    usage = {"prompt_tokens": 1234, "completion_tokens": 56}
    return [*map(chunk, deltas), chunk({}, "tool_calls", usage=usage), b"data: [DONE]\n\n"]


def says(text: str) -> list[bytes]:
    return [chunk({"role": "assistant", "content": text}), chunk({}, "stop"), b"data: [DONE]\n\n"]


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: %s\n\n" % json.dumps({"id": "c", "model": "m", "choices": [choice], **more}).encode()


def held(frames: Iterable[bytes], gate: threading.Event, at: int) -> Iterator[bytes]:
    """`frames`; those from `at` on wait for the gate. The upstream runs in its own thread."""
    for number, frame in enumerate(frames):
        if number == at:
            assert gate.wait(30)
        yield frame
