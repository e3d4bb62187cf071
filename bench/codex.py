"""A long conversation of Codex: a Responses request in which every item has an id, without `instructions`."""

from __future__ import annotations

from typing import Any

import msgspec

from .marks import MARK, SIGNATURE, Tally

Obj = dict[str, Any]
_FUNCTIONS = 12
_AGENTS = 3
_TOOLS = _FUNCTIONS + _AGENTS + 1
"""Those that Chat can be offered: functions, those of a namespace, and the one that takes a patch."""
_ID = "01a1e075-{:08d}"


def request(seed: int, turns: int, tools: int, model: str) -> bytes:
    """The whole request. `tools` is the seed of the tool list."""
    tally = Tally(_TOOLS)
    session = _ID.format(seed)
    prompt = (
        f"You are a coding agent running in the Codex CLI. {tally.mark()} " + "Work in small steps. " * 150
    )
    where = "<environment_context>\n  <cwd>/w</cwd>\n  <shell>bash</shell>\n</environment_context>"
    said = [
        _message("developer", prompt, f"{seed}a"),
        _message("user", where, f"{seed}b"),
        _message("user", f"{seed} {tally.mark()} begin.", f"{seed}c"),
    ]
    for turn in range(turns):
        said += _turn(tally, seed, turn)
    asked = {
        "model": model,
        "input": said,
        "tools": _tool_list(tools),
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": session,
        "text": {"verbosity": "low"},
        "client_metadata": {"thread_id": session, "x-codex-turn-metadata": f'{{"session_id":"{session}"}}'},
    }
    return msgspec.json.encode(asked)


def _message(role: str, text: str, id: str) -> Obj:
    kind = "output_text" if role == "assistant" else "input_text"
    return {
        "type": "message",
        "id": f"msg_{id}",
        "role": role,
        "content": [{"type": kind, "text": text}],
    }


def _turn(tally: Tally, seed: int, turn: int) -> list[Obj]:
    """Reasoning, usually some text, a command or a patch, and its output."""
    id = f"{seed:08d}{turn:04d}"
    items: list[Obj] = [
        {
            "type": "reasoning",
            "id": f"rs_{id}",
            "summary": [{"type": "summary_text", "text": f"**Looking at module {turn}** {tally.thought()}"}],
            "content": None,
            "encrypted_content": SIGNATURE + id * 60,
        }
    ]
    if turn % 4:
        words = f"{tally.mark()} I look at module {turn} next, since the error of {seed} points there."
        items.append(_message("assistant", words, id))
    return [*items, *(_patch(tally, id, turn) if turn % 5 == 4 else _commands(tally, id, turn))]


def _commands(tally: Tally, id: str, turn: int) -> list[Obj]:
    """One command, or two at once."""
    calls: list[Obj] = []
    outputs: list[Obj] = []
    for letter in "ab" if turn % 3 == 1 else "a":
        command = f"sed -n '1,200p' src/module_{turn}{letter}.py # {tally.mark()}"
        arguments = {"cmd": command, "workdir": "/w", "yield_time_ms": 1000, "max_output_tokens": 6000}
        calls.append(
            {
                "type": "function_call",
                "id": f"fc_{id}{letter}",
                "name": "exec_command",
                "arguments": msgspec.json.encode(arguments).decode(),
                "call_id": f"call_{id}{letter}",
            }
        )
        lines = "".join(f'{line:6}: def function_{turn}(a): return "{id}"\n' for line in range(28))
        head = f"Chunk ID: {id}\nWall time: 0.05 seconds\nProcess exited with code 0\nOutput:\n"
        outputs.append(
            {
                "type": "function_call_output",
                "id": f"fco_{id}{letter}",
                "call_id": f"call_{id}{letter}",
                "output": f"{head}{tally.mark()}\n{lines}{tally.told()}",
            }
        )
    return [*calls, *outputs]


def _patch(tally: Tally, id: str, turn: int) -> list[Obj]:
    lines = f'-value = "{id}"\n+value = compute(1, 2)\n' * 30
    patch = f"*** Begin Patch\n*** Update File: src/module_{turn}.py\n@@ {tally.mark()}\n{lines}*** End Patch"
    call = {"type": "custom_tool_call", "id": f"ctc_{id}", "name": "apply_patch", "input": patch}
    done = f"Success. Updated src/module_{turn}.py {tally.mark()} {tally.told()}"
    output = {"type": "custom_tool_call_output", "id": f"ctco_{id}", "output": done}
    return [{**call, "call_id": f"call_{id}"}, {**output, "call_id": f"call_{id}"}]


def _tool_list(seed: int) -> list[Obj]:
    functions = [
        _function(seed, f"tool_{number}" if number else "exec_command") for number in range(_FUNCTIONS)
    ]
    grammar = "start: begin_patch hunk+ end_patch\n" + "hunk: add_hunk | delete_hunk | update_hunk\n" * 10
    return [
        *functions,
        {
            "type": "namespace",
            "name": "multi_agent_v1",
            "description": "Tools for spawning and managing sub-agents.",
            "tools": [_function(seed, f"agent_{number}") for number in range(_AGENTS)],
        },
        {
            "type": "custom",
            "name": "apply_patch",
            "description": f"{MARK} Edit files with a patch.",
            "format": {"type": "grammar", "syntax": "lark", "definition": grammar},
        },
        {"type": "web_search", "external_web_access": True},
    ]


def _function(seed: int, name: str) -> Obj:
    members = {
        f"option_{member}": {"type": "string", "description": f"{seed}: what option {member} means. " * 2}
        for member in range(6)
    }
    return {
        "type": "function",
        "name": name,
        "description": f"{MARK} {name}. " + "How to use it. " * 20,
        "strict": False,
        "parameters": {
            "type": "object",
            "properties": {"cmd": {"type": "string"}, **members},
            "required": ["cmd"],
            "additionalProperties": False,
        },
    }
