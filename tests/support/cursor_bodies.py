"""One conversation in every shape that Cursor writes, and in mixtures of them.

The user asks, the model reads a file and patches it, both are answered, the user asks again. Each turn, each
tool and the choice among them has a spelling per protocol; `body` puts a request together from any of them.
"""

import copy
from collections.abc import Mapping
from typing import Any

from dragoman.conform.shape import Json, compact

PATCH = "*** Begin Patch\n*** End Patch"
GRAMMAR = "start: begin end"
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
READ = {"name": "Read", "description": "Reads a file."}
APPLY = {"name": "ApplyPatch", "description": "Edits files."}
ARGUMENTS = {"path": "src/a.py"}

SYSTEM: dict[str, list[Json]] = {
    "chat": [{"role": "system", "content": "Be brief."}],
    "chat-parts": [{"role": "system", "content": [{"type": "text", "text": "Be brief."}]}],
    "responses": [{"role": "system", "content": [{"type": "input_text", "text": "Be brief."}]}],
}
ASKED: dict[str, list[Json]] = {
    "chat": [{"role": "user", "content": "Mend it."}],
    "text-parts": [{"role": "user", "content": [{"type": "text", "text": "Mend it."}]}],
    "responses": [{"role": "user", "content": [{"type": "input_text", "text": "Mend it."}]}],
    "item": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Mend it."}]}],
}
CALLED: dict[str, list[Json]] = {
    "chat": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "Read", "arguments": compact(ARGUMENTS)},
                }
            ],
        }
    ],
    "chat-empty": [
        {
            "role": "assistant",
            "content": [],
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "Read", "arguments": compact(ARGUMENTS)},
                }
            ],
        }
    ],
    "anthropic": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "Read", "input": ARGUMENTS}],
        }
    ],
    "responses": [
        {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": compact(ARGUMENTS)}
    ],
    "twice": [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "c1", "name": "Read", "input": ARGUMENTS}],
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "Read", "arguments": compact(ARGUMENTS)},
                }
            ],
        }
    ],
}
ANSWERED: dict[str, list[Json]] = {
    "chat": [{"role": "tool", "tool_call_id": "c1", "content": "x = 1"}],
    "chat-parts": [{"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x = 1"}]}],
    "anthropic": [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x = 1"}]}
    ],
    "wrapped": [
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "x = 1"}],
                }
            ],
        }
    ],
    "responses": [{"type": "function_call_output", "call_id": "c1", "output": "x = 1"}],
}
PATCHED: dict[str, list[Json]] = {
    "chat": [
        {
            "role": "assistant",
            "content": "So:",
            "tool_calls": [{"id": "c2", "type": "custom", "custom": {"name": "ApplyPatch", "input": PATCH}}],
        }
    ],
    "responses": [
        {"role": "assistant", "content": [{"type": "output_text", "text": "So:"}]},
        {"type": "custom_tool_call", "call_id": "c2", "name": "ApplyPatch", "input": PATCH},
    ],
}
DONE: dict[str, list[Json]] = {
    "chat": [{"role": "tool", "tool_call_id": "c2", "content": "Done."}],
    "responses": [{"type": "custom_tool_call_output", "call_id": "c2", "output": "Done."}],
}
AGAIN: dict[str, list[Json]] = {
    "chat": [{"role": "user", "content": "More."}],
    "anthropic": [{"role": "user", "content": [{"type": "text", "text": "More."}]}],
    "responses": [{"role": "user", "content": [{"type": "input_text", "text": "More."}]}],
}
TURNS: dict[str, dict[str, list[Json]]] = {
    "system": SYSTEM,
    "asked": ASKED,
    "called": CALLED,
    "answered": ANSWERED,
    "patched": PATCHED,
    "done": DONE,
    "again": AGAIN,
}

_FLAT = {"type": "grammar", "syntax": "lark", "definition": GRAMMAR}
_NESTED = {"type": "grammar", "grammar": {"syntax": "lark", "definition": GRAMMAR}}
READ_TOOL: dict[str, Json] = {
    "nested": {"type": "function", "function": {**READ, "parameters": SCHEMA}},
    "flat": {"type": "function", **READ, "parameters": SCHEMA},
    "bare": {**READ, "input_schema": SCHEMA},
    "anthropic": {"type": "custom", **READ, "input_schema": SCHEMA},
    "untyped": {**READ, "parameters": SCHEMA},
    "untyped-nested": {"function": {**READ, "parameters": SCHEMA}},
    "gemini": {"functionDeclarations": [{**READ, "parametersJsonSchema": SCHEMA}]},
}
APPLY_TOOL: dict[str, Json] = {
    "nested": {"type": "custom", "custom": {**APPLY, "format": _NESTED}},
    "flat": {"type": "custom", **APPLY, "format": _FLAT},
    "flat-nested-grammar": {"type": "custom", **APPLY, "format": _NESTED},
    "nested-flat-grammar": {"type": "custom", "custom": {**APPLY, "format": _FLAT}},
}
CHOICES: dict[str, Any] = {
    "chat": {"type": "function", "function": {"name": "Read"}},
    "responses": {"type": "function", "name": "Read"},
    "anthropic": {"type": "tool", "name": "Read"},
    "untyped": {"function": {"name": "Read"}},
    "bare": {"name": "Read"},
    "word": "Read",
}

# The spellings of Cursor's modes and models (protocols.md 5.1).
SHAPES: dict[str, Json] = {
    "chat": {},
    "ask-mode": {"apply": "flat"},
    "gpt-agent": {
        "key": "input",
        **dict.fromkeys(("asked", "called", "answered", "patched", "done", "again", "system"), "responses"),
        "read": "flat",
        "apply": "flat",
        "choice": "responses",
    },
    "claude": {
        "asked": "text-parts",
        "called": "anthropic",
        "answered": "anthropic",
        "again": "anthropic",
        "read": "bare",
        "apply": "flat",
        "choice": "anthropic",
    },
    "empty-content": {"called": "chat-empty"},
    "chat-in-input": {"key": "input", "apply": "flat"},
    "items-in-messages": {"called": "responses", "answered": "responses", "asked": "item"},
}


def body(chosen: Mapping[str, str] = {}, **more: Any) -> Json:
    """A request in the given spellings. The default is Chat's."""
    turns = [turn for name, spelt in TURNS.items() for turn in spelt[chosen.get(name, "chat")]]
    value = {
        "model": "m",
        chosen.get("key", "messages"): turns,
        "tools": [READ_TOOL[chosen.get("read", "nested")], APPLY_TOOL[chosen.get("apply", "nested")]],
        "tool_choice": CHOICES[chosen.get("choice", "chat")],
        "stream": True,
        "stream_options": {"include_usage": True},
        **more,
    }
    return copy.deepcopy(value)
