"""What the clients ask: a short question with one tool, or a long conversation as a coding agent sends it."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from .answers import CHAT
from .shapes import TOOL, Shape

_WRITE_SCHEMA = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["file_path", "content"],
}
TOOLS = 60
TURNS = 125
"""With `TOOLS` tools, a conversation of 440 KB."""
MARK = "#mark"
"""Stands in every part of a conversation, and every turn says how often so far: a lost part is noticed."""
_MARKS = re.compile(rb"(\d+) marks so far")


class Talk(msgspec.Struct, frozen=True):
    """A long conversation. Another seed is another conversation; one more turn is the same one, gone on."""

    seed: int
    turns: int = TURNS
    tools: int = 0
    """The seed of the tool list."""


def lost(request: bytes) -> str:
    """What a request lacks of the conversation that it holds, if it holds one."""
    said = _MARKS.findall(request)
    found = request.count(MARK.encode())
    return f"{found} of {int(said[-1])} marks" if said and found != int(said[-1]) else ""


def question(protocol: str, shape: Shape, *, streamed: bool) -> bytes:
    """A short question that offers one tool."""
    messages = [{"role": "user", "content": "Write the file, please."}]
    asked: dict[str, Any] = {"model": shape.model, "max_tokens": 4096, "messages": messages}
    if protocol == CHAT:
        function = {"name": TOOL, "description": "Write a file.", "parameters": _WRITE_SCHEMA}
        asked["tools"] = [{"type": "function", "function": function}]
        if streamed:
            asked["stream_options"] = {"include_usage": True}
    else:
        asked["tools"] = [{"name": TOOL, "description": "Write a file.", "input_schema": _WRITE_SCHEMA}]
    if streamed:
        asked["stream"] = True
    return msgspec.json.encode(asked)


def conversation(talk: Talk, shape: Shape) -> bytes:
    """An agent's request (Anthropic): system, tools, and a history of tool calls with their results."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": [_text(f"{talk.seed} {MARK} begin.")]}]
    for turn in range(talk.turns):
        messages += _turn(talk.seed, turn)
    messages[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}  # it moves on with every turn
    system = f"You are a careful engineer. {MARK} " + "Say what is, do what was asked. " * 100
    return msgspec.json.encode(
        {
            "model": shape.model,
            "max_tokens": 8192,
            "system": [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}],
            "tools": [_tool(talk.tools, number) for number in range(TOOLS)],
            "messages": messages,
            "stream": True,
        }
    )


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _turn(seed: int, turn: int) -> list[dict[str, Any]]:
    id = f"toolu_{seed:08d}{turn:04d}"
    path = {"file_path": f"src/module_{turn}.py", "content": f"# {seed}\n" + "value = compute(1, 2)\n" * 25}
    said = _text(f"{seed} {MARK} I look at module {turn} next, since the error points there.")
    call = {"type": "tool_use", "id": id, "name": TOOL, "input": path}
    lines = "".join(f'{turn}-{line}: def function_{line}(a): return "{seed}"\n' for line in range(50))
    marks = TOOLS + 2 + 2 * (turn + 1)
    result = {
        "type": "tool_result",
        "tool_use_id": id,
        "content": [_text(f"{MARK}\n{lines}{marks} marks so far")],
    }
    return [{"role": "assistant", "content": [said, call]}, {"role": "user", "content": [result]}]


def _tool(seed: int, number: int) -> dict[str, Any]:
    name = TOOL if number == 0 else f"tool_{number}"
    members = {
        f"option_{member}": {"type": "string", "description": f"{seed}: what option {member} means. " * 2}
        for member in range(6)
    }
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {**_WRITE_SCHEMA["properties"], **members},
        "required": ["file_path", "content"],
    }
    return {
        "name": name,
        "description": f"{MARK} Tool {number}. " + "How to use it. " * 20,
        "input_schema": schema,
    }
