"""`dragoman demo --show`: answers that real models break in this way, and what the client gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from ...model.messages import Tool
from ...translation.translation import Options, Translation

SHOWN = ("content_block_start", "content_block_delta", "message_delta", "error")


class Scene(msgspec.Struct, frozen=True):
    """One broken answer."""

    title: str
    deltas: tuple[dict[str, Any], ...]
    finish: str | None = "tool_calls"


def _call(index: int, id: str, name: str, *fragments: str) -> tuple[dict[str, Any], ...]:
    first = {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
    rest = [{"index": index, "function": {"arguments": fragment}} for fragment in fragments]
    return tuple({"tool_calls": [piece]} for piece in (first, *rest))


TOOLS = (
    Tool(
        name="Bash",
        parameters={
            "type": "object",
            "properties": {"command": {"type": "string"}, "timeout": {"type": "integer"}},
            "required": ["command"],
        },
    ),
    Tool(
        name="Read",
        parameters={
            "type": "object",
            "properties": {"file_path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["file_path"],
        },
    ),
)

SCENES = (
    Scene(
        "A misnamed parameter and a number sent as text, in fragments",
        _call(0, "call_1", "Bash", '{"pro', 'mpt": "ls -la', ' src", "timeout": "30', '"}'),
    ),
    Scene(
        "Two calls whose fragments interleave; one is named in the wrong case",
        (
            *_call(0, "call_1", "Bash", '{"command": "'),
            *_call(1, "call_2", "read", '{"file_path": "'),
            {"tool_calls": [{"index": 0, "function": {"arguments": 'make test"}'}}]},
            {"tool_calls": [{"index": 1, "function": {"arguments": 'README.md"}'}}]},
        ),
    ),
    Scene(
        "A call that the model wrote as text",
        (
            {"content": "I will look.\n<tool_"},
            {"content": 'call>{"name": "Read", "arguments": {"file_path": "a.py"}}</tool_call>'},
        ),
        "stop",
    ),
    Scene(
        "A stream that is cut in the middle of a dangerous command",
        _call(0, "call_1", "Bash", '{"command": "rm -rf ./bui'),
        None,
    ),
)


def upstream_bytes(scene: Scene) -> list[bytes]:
    """The scene as an OpenAI Chat stream."""
    head = {"id": "chatcmpl-demo", "object": "chat.completion.chunk", "created": 0, "model": "demo"}
    frames = [head | {"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in scene.deltas]
    lines = [b"data: " + msgspec.json.encode(frame) + b"\n\n" for frame in frames]
    if scene.finish is not None:
        last: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": scene.finish}
        frame = msgspec.json.encode(head | {"choices": [last]})
        lines += [b"data: " + frame + b"\n\n", b"data: [DONE]\n\n"]
    return lines


def lines() -> Iterator[str]:
    yield "Each answer below comes from an OpenAI Chat upstream and goes to an Anthropic client.\n"
    for number, scene in enumerate(SCENES, 1):
        yield from _scene(number, scene)
    yield "Try it on an answer of your own:"
    yield "  dragoman translate --from openai-chat --to anthropic --explain < answer.txt"


def _scene(number: int, scene: Scene) -> Iterator[str]:
    yield click.style(f"{number}. {scene.title}", bold=True)
    for delta in scene.deltas:
        yield click.style(f"   upstream  {msgspec.json.encode(delta).decode()}", fg="yellow")
    exchange, payloads = play(scene)
    for payload in payloads:
        yield click.style(f"   client    {payload}", fg="green")
    for receipt in exchange.receipts:
        for fix in receipt.fixes:
            yield f"   mended    {fix.rule} at {fix.path or '/'}: {fix.before} -> {fix.after}"
    yield ""


def play(scene: Scene) -> tuple[Translation, list[str]]:
    """Run the scene. Returns the finished exchange and the data of the client's events to show."""
    exchange = Translation("openai-chat", "anthropic", tools=TOOLS, options=Options(id="demo", mode="whole"))
    data = b"".join([*map(exchange.feed, upstream_bytes(scene)), exchange.close()])
    frames = [frame.partition("\ndata: ") for frame in data.decode().split("\n\n")]
    return exchange, [payload for event, _, payload in frames if event.removeprefix("event: ") in SHOWN]
