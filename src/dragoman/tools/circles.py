"""What is done about an agent that goes in circles. The history itself says how often it went round.

By default it is only noticed. A note for the model, or an end, are asked for by number. The note is words
at the end of the last turn, so that every call keeps its result and every result its call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from ..errors import BadRequest
from ..messages import Message, Request, Text, ToolCall, ToolResult
from .loops import Repetition, Turn, canonical, repeated

# Usually the last few calls tell that there is no circle.
_LATELY = 16


def noticed(request: Request) -> Repetition | None:
    """The circle the conversation ends in, if it ends in one."""
    for messages in (request.messages[-_LATELY:], request.messages):
        history = History(messages)
        found = repeated(history)
        if found is None or found.count * len(found.turns) + len(found.turns) < len(history):
            return found  # it begins within what was looked at
    return found


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


class History(Sequence[Turn]):
    """The calls of a conversation that were answered, in the order of their answers.

    Usually the last two tell that there is no circle, so each is put into words only when it is asked for.
    """

    def __init__(self, messages: Sequence[Message]) -> None:
        calls: dict[str, ToolCall] = {}
        self._answered: list[tuple[ToolCall, ToolResult]] = []
        for message in messages:
            for part in message.parts:
                if isinstance(part, ToolCall):
                    calls[part.id] = part
                elif isinstance(part, ToolResult) and part.call_id in calls:
                    self._answered.append((calls[part.call_id], part))

    def __len__(self) -> int:
        return len(self._answered)

    @overload
    def __getitem__(self, index: int) -> Turn: ...
    @overload
    def __getitem__(self, index: slice) -> list[Turn]: ...
    def __getitem__(self, index: int | slice) -> Turn | list[Turn]:
        if isinstance(index, slice):
            return [_turn(*answered) for answered in self._answered[index]]
        return _turn(*self._answered[index])


def _turn(call: ToolCall, result: ToolResult) -> Turn:
    text = "\n".join(part.text or "" for part in result.parts)
    return call.name, canonical(call.arguments), text
