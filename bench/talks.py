"""Long conversations of several kinds of clients: each kind may have its own performance cliff."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from .marks import SIGNATURE, Tally
from .shapes import TOOL

TOOLS = 60
TURNS = 125
"""With `TOOLS` tools, a conversation of 440 KB."""
_WORDS = (
    "the error",
    "points there.\n\nSo",
    "we look",
    "at the",
    "module",
    "next,",
    "since",
    'it "returns"',
    "nothing",
)

Obj = dict[str, Any]
AGENT = ("model", "messages", "system", "tools", "metadata", "max_tokens", "thinking", "stream")
"""The members of Claude Code's requests, in its order."""


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """How an Anthropic client writes a conversation into a request."""

    title: str
    turn: Callable[[Tally, int, int], list[Obj]]
    """The messages of a turn, by the seed of the conversation and the number of the turn."""
    turns: int = TURNS
    order: tuple[str, ...] = ("model", "max_tokens", "system", "tools", "messages", "stream")
    """The members of the request."""
    strings: bool = False
    """Contents are strings. Otherwise they are parts, and the cache mark on the last one moves on."""
    write: Callable[[Obj], bytes] = msgspec.json.encode


def text(words: str) -> Obj:
    return {"type": "text", "text": words}


def _id(seed: int, turn: int, letter: str = "") -> str:
    return f"toolu_{seed:08d}{turn:04d}{letter}"


def _use(id: str, name: str, input: Obj) -> Obj:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


def _prose(seed: int, turn: int, count: int) -> str:
    """Text that differs in every turn and conversation, with quotes and line breaks."""
    start = seed * 7919 + turn * 104729
    return f"{start}: " + " ".join(_WORDS[(start + number * number) % len(_WORDS)] for number in range(count))


def _call(tally: Tally, seed: int, turn: int) -> list[Obj]:
    """A call and its result, as parts."""
    said = f"{seed} {tally.mark()} I look at module {turn} next, since the error points there."
    content = f"# {seed}\n" + "value = compute(1, 2)\n" * 25
    lines = "".join(f'{turn}-{line}: def function_{line}(a): return "{seed}"\n' for line in range(50))
    input = {"file_path": f"src/module_{turn}.py", "content": content}
    return _called(tally, _id(seed, turn), said, input, lines)


def _called(tally: Tally, id: str, said: str, input: Obj, lines: str) -> list[Obj]:
    call = _use(id, TOOL, input)
    content = [text(f"{tally.mark()}\n{lines}{tally.told()}")]
    result = {"type": "tool_result", "tool_use_id": id, "content": content}
    return [{"role": "assistant", "content": [text(said), call]}, {"role": "user", "content": [result]}]


def _agent(tally: Tally, seed: int, turn: int) -> list[Obj]:
    """Reasoning, one or two calls, results as strings or parts, some errors, reminders, system messages."""
    thought = {"type": "thinking", "thinking": f"{tally.thought()} {_prose(seed, turn, 40)}"}
    said: list[Obj] = [{**thought, "signature": SIGNATURE + f"{seed:04d}{turn:04d}" * 40}]
    answered: list[Obj] = []
    if turn % 4:
        said.append(text(f"{tally.mark()} {_prose(seed, turn, 20)}"))
    if turn % 2:
        said.append(_use(_id(seed, turn, "a"), "tool_1", _plan(tally, turn)))
        done = f"{tally.mark()} The list was changed."
        answered.append({"tool_use_id": _id(seed, turn, "a"), "type": "tool_result", "content": done})
    said.append(_use(_id(seed, turn), TOOL, _edits(tally, seed, turn)))
    answered.append(_result(tally, seed, turn))
    if turn % 3 == 0:
        words = f"Nothing is left on the list. {tally.mark()} {tally.told()}"
        answered.append(text(f"<system-reminder>\n{words}\n</system-reminder>"))
    turns: list[Obj] = [{"role": "assistant", "content": said}, {"role": "user", "content": answered}]
    if turn % 3:
        words = f"{tally.mark()} {100 - turn} % of the context are left. {tally.told()}"
        turns.append({"role": "system", "content": words})
    return turns


def _plan(tally: Tally, turn: int) -> Obj:
    tasks = [
        {"content": f"Look at module {number}", "done": number < turn, "depth": 1, "parent": None}
        for number in range(turn, turn + 5)
    ]
    return {"todos": tasks, "why": tally.mark(), "tags": [], "limits": {}}


def _edits(tally: Tally, seed: int, turn: int) -> Obj:
    edits = [
        {
            "old_string": f'value_{number} = "{seed}"\n',
            "new_string": "value = compute(1, 2)\n" * 6,
            "share": number / 4,
            "replace_all": number == 2,
        }
        for number in range(3)
    ]
    return {
        "file_path": f"src/module_{turn}.py",
        "why": tally.mark(),
        "edits": edits,
        "limit": 2000,
        "offset": None,
    }


def _result(tally: Tally, seed: int, turn: int) -> Obj:
    failed = turn % 7 == 3
    count = 2 if failed else 22
    lines = "".join(f'{line:6}→def function_{turn}(a): return "{seed}"\n' for line in range(count))
    content = f"{tally.mark()}\n{lines}{tally.told()}"
    result: Obj = {"tool_use_id": _id(seed, turn), "type": "tool_result"}
    result["content"] = content if turn % 5 else [text(content)]
    if failed or turn % 2:
        result["is_error"] = failed
    return result


def _talked(tally: Tally, seed: int, turn: int) -> list[Obj]:
    """Only text, as strings."""
    said = f"{tally.mark()} {_prose(seed, turn, 115)}"
    asked = f"{tally.mark()} {_prose(seed, turn + 1, 180)} {tally.told()}"
    return [{"role": "assistant", "content": said}, {"role": "user", "content": asked}]


def _foreign(tally: Tally, seed: int, turn: int) -> list[Obj]:
    """As `_call`, with text that is not ASCII."""
    said = f"{seed} {tally.mark()} Größe prüfen: {_prose(seed, turn, 20)} — 次のモジュール {turn}"
    content = f"# {seed} {tally.mark()}\n" + "wert = größe(1, 2)  # 値\n" * 15
    lines = "".join(f'{turn}-{line}: función_{line}(a): return "{seed} ✓ 😀"\n' for line in range(25))
    input = {"file_path": f"src/größe_{turn}.py", "content": content}
    return _called(tally, _id(seed, turn), said, input, lines)


def _brief(tally: Tally, seed: int, turn: int) -> list[Obj]:
    """A tiny call and a tiny result."""
    input = {"file_path": f"{seed}_{turn}.py", "content": tally.mark()}
    call = _use(_id(seed, turn), TOOL, input)
    content = f"{tally.mark()} {_prose(seed, turn, 5)} {tally.told()}"
    result = {"type": "tool_result", "tool_use_id": _id(seed, turn), "content": content}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def _spaced(asked: Obj) -> bytes:
    """As Python's `json` writes it: with spaces, and with escapes for non-ASCII characters."""
    return json.dumps(asked).encode()


PLAIN, CODEX = "calls", "codex"
"""The kind that S5 itself is of, and the one that is no Anthropic request (`codex.py`)."""
KINDS = {
    PLAIN: Kind(title="a call and its result in every turn", turn=_call),
    "agent": Kind(title="as Claude Code sends it", turn=_agent, order=AGENT),
    "prose": Kind(title="words alone, no tool is used", turn=_talked, strings=True),
    "spaced": Kind(title="as json.dumps spells it", turn=_foreign, write=_spaced),
    "short": Kind(
        title="2,000 short messages",
        turn=_brief,
        turns=1000,
        order=("model", "messages", "system", "tools", "max_tokens", "stream"),
        strings=True,
    ),
}
ALL = (*KINDS, CODEX)
