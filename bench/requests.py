"""Requests of the clients: a short question with one tool, or a long conversation."""

from __future__ import annotations

from typing import Any

import msgspec

from . import codex
from .answers import ANTHROPIC, CHAT, RESPONSES
from .marks import MARK, Tally
from .shapes import TOOL, Shape
from .talks import CODEX, KINDS, PLAIN, TOOLS, TURNS, Obj, text

WRITE_SCHEMA = {
    "type": "object",
    "properties": {"file_path": {"type": "string"}, "content": {"type": "string"}},
    "required": ["file_path", "content"],
}


class Talk(msgspec.Struct, frozen=True):
    """A long conversation. Another seed gives another conversation; more turns continue the same one."""

    seed: int
    turns: int = TURNS
    tools: int = 0
    """The seed of the tool list."""
    kind: str = PLAIN

    @property
    def client(self) -> str:
        """The protocol that its client speaks."""
        return RESPONSES if self.kind == CODEX else ANTHROPIC

    def gone_on(self, turns: int = 1) -> Talk:
        return msgspec.structs.replace(self, turns=self.turns + turns)


def question(protocol: str, shape: Shape, *, streamed: bool) -> bytes:
    """A short question that offers one tool."""
    tool = {"name": TOOL, "description": "Write a file."}
    content = "Write the file, please."
    asked: Obj = {"model": shape.model}
    if protocol == RESPONSES:
        said = [{"type": "input_text", "text": content}]
        asked["input"] = [{"type": "message", "role": "user", "content": said}]
        asked["tools"] = [{"type": "function", **tool, "parameters": WRITE_SCHEMA, "strict": False}]
    else:
        asked |= {"max_tokens": 4096, "messages": [{"role": "user", "content": content}]}
    if protocol == CHAT:
        asked["tools"] = [{"type": "function", "function": {**tool, "parameters": WRITE_SCHEMA}}]
        if streamed:
            asked["stream_options"] = {"include_usage": True}
    elif protocol == ANTHROPIC:
        asked["tools"] = [{**tool, "input_schema": WRITE_SCHEMA}]
    if streamed:
        asked["stream"] = True
    return msgspec.json.encode(asked)


def conversation(talk: Talk, shape: Shape) -> bytes:
    """A client's request: system, tools, and a history."""
    if talk.kind == CODEX:
        return codex.request(talk.seed, talk.turns, talk.tools, shape.model)
    kind = KINDS[talk.kind]
    tally = Tally(TOOLS + 1)  # and in the system prompt
    begin = f"{talk.seed} {tally.mark()} begin."
    messages: list[Obj] = [{"role": "user", "content": begin if kind.strings else [text(begin)]}]
    for turn in range(talk.turns):
        messages += kind.turn(tally, talk.seed, turn)
    system = f"You are a careful engineer. {MARK} " + "Say what is, do what was asked. " * 100
    if not kind.strings:
        _mark_for_cache(messages[-1])
    members: Obj = {
        "model": shape.model,
        "max_tokens": 8192,
        "system": system if kind.strings else [{**text(system), "cache_control": {"type": "ephemeral"}}],
        "tools": [_tool(talk.tools, number) for number in range(TOOLS)],
        "messages": messages,
        "metadata": {"user_id": f'{{"device_id":"{talk.tools:064x}","session_id":"{talk.seed}"}}'},
        "thinking": {"type": "enabled", "budget_tokens": 4096},
        "stream": True,
    }
    return kind.write({name: members[name] for name in kind.order})


def _mark_for_cache(message: Obj) -> None:
    """Turn string content into a part, because only a part can have a cache mark."""
    if isinstance(message["content"], str):
        message["content"] = [text(message["content"])]
    message["content"][-1]["cache_control"] = {"type": "ephemeral"}


def _tool(seed: int, number: int) -> dict[str, Any]:
    name = TOOL if number == 0 else f"tool_{number}"
    members = {
        f"option_{member}": {"type": "string", "description": f"{seed}: what option {member} means. " * 2}
        for member in range(6)
    }
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {**WRITE_SCHEMA["properties"], **members},
        "required": ["file_path", "content"],
    }
    return {
        "name": name,
        "description": f"{MARK} Tool {number}. " + "How to use it. " * 20,
        "input_schema": schema,
    }
