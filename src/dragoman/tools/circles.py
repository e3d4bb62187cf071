"""What is done about an agent that goes in circles. The history itself says how often it went round.

By default it is only noticed. A note for the model, or an end, are asked for by number. The note is words
at the end of the last turn, so that every call keeps its result and every result its call.
"""

from __future__ import annotations

from ..errors import BadRequest
from ..messages import Message, Request, Text, ToolCall, ToolResult
from .loops import Repetition, Turn, canonical, repeated


def noticed(request: Request) -> Repetition | None:
    """The circle the conversation ends in, if it ends in one."""
    return repeated(history(request))


def guarded(request: Request, found: Repetition, *, note_after: int = 0, stop_after: int = 0) -> Request:
    """`request`, with a note where it has gone round too often; refused where it has gone on for too long."""
    tools = " and ".join(dict.fromkeys(name for name, _, _ in found.turns))
    if stop_after and found.count >= stop_after:
        message = (
            f"{tools} was called {found.count} times with the same arguments and the same result; "
            "stopped here (tools.loops.stop_after)"
        )
        raise BadRequest(message)
    if not note_after or found.count < note_after:
        return request
    note = (
        f"[{tools} has now been called {found.count} times with the same arguments and gave the same result "
        "each time. Calling it again will not change that: do something else, or say what is missing.]"
    )
    *before, last = request.messages
    noted = Message(last.role, (*last.parts, Text(note)), last.name)
    return request.changed(messages=(*before, noted))


def history(request: Request) -> list[Turn]:
    """The calls of a conversation that were answered, in the order of their answers."""
    calls: dict[str, ToolCall] = {}
    turns: list[Turn] = []
    for message in request.messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls[part.id] = part
            elif isinstance(part, ToolResult) and part.call_id in calls:
                call = calls[part.call_id]
                text = "\n".join(p.text or "" for p in part.parts)
                turns.append((call.name, canonical(call.arguments), text))
    return turns
