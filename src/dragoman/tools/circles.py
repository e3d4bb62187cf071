"""What is done about an agent that goes in circles. The history itself says how often it went round.

By default it is only noticed. A note for the model, or an end, are asked for by number. The note is words
at the end of the last turn, so that every call keeps its result and every result its call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import msgspec

from ..errors import BadRequest
from ..messages import Message, Part, Request, Text, ToolCall, ToolResult
from ..protocols.history import History
from ..protocols.plain import Call, Result, Words, joined, texts
from .loops import Repetition, Turn, canonical, repeated

_encode = msgspec.json.Encoder().encode

# Usually the last few calls tell that there is no circle.
_LATELY = 16


def noticed(request: Request) -> Repetition | None:
    """The circle the conversation ends in, if it ends in one."""
    if len(request.messages) < 2:
        return None
    for start in (max(0, len(request.messages) - _LATELY), 0):
        history = Answers(request.messages, start)
        found = repeated(history) if history.may_repeat() else None
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


class Answers(Sequence[Turn]):
    """The calls of a conversation that were answered, in the order of their answers.

    Usually the last few tell that there is no circle, so each is put into words only when it is asked for.
    """

    def __init__(self, messages: Sequence[Message], start: int = 0) -> None:
        calls: dict[str, ToolCall | Call] = {}
        self._answered: list[tuple[ToolCall | Call, ToolResult | Result]] = []
        for index in range(start, len(messages)):
            for part in _parts(messages, index):
                if isinstance(part, (ToolCall, Call)):
                    calls[part.id] = part
                elif isinstance(part, (ToolResult, Result)) and part.call_id in calls:
                    self._answered.append((calls[part.call_id], part))

    def may_repeat(self) -> bool:
        """Did the last tool give the same words as the one before, or the one before that?"""
        last, *before = [(call.name, _words(result)) for call, result in self._answered[:-4:-1]] or [None]
        return last in before

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


def _parts(messages: Sequence[Message], index: int) -> Sequence[Part | Words | Call | Result]:
    plain = messages.plain(index) if isinstance(messages, History) else None
    if plain is None:
        return messages[index].parts
    return () if isinstance(plain.content, str) else plain.content


def _turn(call: ToolCall | Call, result: ToolResult | Result) -> Turn:
    arguments = call.arguments if isinstance(call, ToolCall) else _encode(call.input).decode()
    return call.name, canonical(arguments), _words(result)


def _words(result: ToolResult | Result) -> str:
    if isinstance(result, Result):
        return joined(texts(result.content), "\n")
    return "\n".join(part.text or "" for part in result.parts)
