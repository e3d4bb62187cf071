"""Warn, add a note, or stop if an agent is in a loop. The history shows how often the agent repeated itself.

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
    if _ends_with_new_result(request.messages):
        return None
    return repeated(_Turns(_answered_calls(request.messages)))


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


def _ends_with_new_result(messages: Sequence[Message]) -> bool:
    """Does the last result differ from the two before it? Then there is no loop, and no call is compared.

    Reads the last few messages only, unless one of these results has no call.
    """
    results: list[ToolResult] = []
    uncalled: set[str] = set()
    for message in reversed(messages):
        for part in reversed(message.parts):
            # `type() is`, not `isinstance`: the metaclass of msgspec structs makes that several times slower.
            if type(part) is ToolCall:
                uncalled.discard(part.id)
            elif type(part) is ToolResult and len(results) < 3:
                results.append(part)
                uncalled.add(part.call_id)
        if len(results) == 3 and not uncalled:
            break
    if not results:
        return True
    last, *others = map(_text, results)
    return not uncalled and last not in others


def _answered_calls(messages: Sequence[Message]) -> list[_Answered]:
    """The calls of a conversation that have a result, in the order of the results."""
    calls: dict[str, ToolCall] = {}
    answered: list[_Answered] = []
    for message in messages:
        for part in message.parts:
            if type(part) is ToolCall:
                calls[part.id] = part
            elif type(part) is ToolResult and part.call_id in calls:
                answered.append((calls[part.call_id], part))
    return answered


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
