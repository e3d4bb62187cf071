"""Asking the model again: its own call, and what is wrong with it, as the next turn of the conversation.

The client sees none of this but the time it takes: calls are held back until the whole turn is known to be
good, and the usage of all turns is added up.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..messages import Message, Part, Request, Text, ToolCall, ToolResult

_FINE = "This call was not run, because another call of the same turn was not valid. Call it again."


class Rejected(msgspec.Struct, frozen=True):
    """A call of a turn that is asked for again. `problems` is empty where only its neighbours are bad."""

    call: ToolCall
    problems: tuple[str, ...]


def follow_up(request: Request, said: Sequence[Part], rejected: Sequence[Rejected]) -> Request:
    """`request` with the model's turn and the answers to its calls appended."""
    calls = {item.call.id: item.call for item in rejected}
    parts = tuple(calls.get(p.id, p) if isinstance(p, ToolCall) else p for p in said)
    known = {p.id for p in parts if isinstance(p, ToolCall)}
    # Calls that were written as text stand in no block of the model's own.
    parts += tuple(call for id, call in calls.items() if id not in known)
    results = tuple(_result(item) for item in rejected)
    turn = (Message("assistant", parts), Message("user", results))
    return request.changed(messages=(*request.messages, *turn))


def _result(item: Rejected) -> ToolResult:
    text = _FINE
    if item.problems:
        listed = "\n".join(f"- {problem}" for problem in item.problems)
        text = f"The arguments of {item.call.name} are not valid:\n{listed}\nCall the tool again, corrected."
    return ToolResult(call_id=item.call.id, parts=(Text(text),), is_error=True, name=item.call.name)
