"""What Dragoman does about an agent in a loop. The history shows how often the agent repeated itself.

By default a loop only gives a notice. The config may ask for a note to the model, or for an error, after a
number of repetitions. The note is text at the end of the last turn, so every call keeps its result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from ..model.errors import BadRequest
from ..model.messages import Message, Request, Text, ToolCall, ToolResult
from .loop_detection import Repetition, Turn, canonical, repeated

_Answered = tuple[ToolCall, ToolResult]


def find_loop(request: Request) -> Repetition | None:
    """The loop at the end of the conversation, or None."""
    answered = _answered_calls(request.messages)
    *others, last = answered[-3:] or [None]
    # Fast path: if the last result is new, there is no loop, and no arguments need decoding.
    if last is None or not any(_may_be_same(last, other) for other in others if other is not None):
        return None
    return repeated(_Turns(answered))


def apply_policy(request: Request, found: Repetition, *, note_after: int = 0, stop_after: int = 0) -> Request:
    """`request`, with a note after `note_after` repetitions. Raises `BadRequest` after `stop_after`."""
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


def _answered_calls(messages: Sequence[Message]) -> list[_Answered]:
    """The calls of a conversation that have a result, in the order of the results."""
    calls: dict[str, ToolCall] = {}
    answered: list[_Answered] = []
    for message in messages:
        for part in message.parts:
            # `type() is`, not `isinstance`: the metaclass of msgspec structs makes that several times slower.
            if type(part) is ToolCall:
                calls[part.id] = part
            elif type(part) is ToolResult and part.call_id in calls:
                answered.append((calls[part.call_id], part))
    return answered


def _may_be_same(one: _Answered, other: _Answered) -> bool:
    """Whether names and results are equal."""
    return one[0].name == other[0].name and _text(one[1]) == _text(other[1])


def _text(result: ToolResult) -> str:
    return "\n".join(part.text or "" for part in result.parts)


class _Turns(Sequence[Turn]):
    """Answered calls as turns that can be compared. A turn is built on access: usually a few are enough."""

    def __init__(self, answered: Sequence[_Answered]) -> None:
        self._answered = answered

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
    return call.name, canonical(call.arguments), _text(result)
