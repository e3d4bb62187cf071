"""Which response answers which call, where Gemini's wire says it only by name and order.

Many clients send no ids (pi, google-genai, opencode, …). A call without one gets an id made of its
number and name, the same on every turn; a response without one answers the first call of its name
that waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from ....model.errors import BadRequest
from ....model.messages import Message, Part, ToolCall, ToolResult

Where = Callable[[int, int], str]
"""(message, which response of it) → the path of its id, put together only to complain."""


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    id: str
    name: str
    minted: bool


def paired(messages: Sequence[Message], where: Where, elsewhere: bool) -> tuple[Message, ...]:
    """`messages` with an id on every call, and on every response the id of the call it answers.

    `elsewhere`: earlier turns are in cached content, so their calls are not here.
    """
    calls = _Calls(messages, where, elsewhere)
    return tuple([calls.with_ids(message, index) for index, message in enumerate(messages)])


class _Calls:
    """The calls of a conversation so far, and those of the last model turn that still wait."""

    def __init__(self, messages: Sequence[Message], where: Where, elsewhere: bool) -> None:
        self._messages = messages
        self._where = where
        self._elsewhere = elsewhere
        self._taken: set[str] | None = None
        """The ids that no call without one may get. Few clients have such calls."""
        self._known: set[str] = set()
        self._count = 0
        self._by_model = False
        """Was the last message the model's?"""
        self._waiting: list[_Waiting] = []

    def with_ids(self, message: Message, index: int) -> Message:
        """The next message, with its ids."""
        by_model = message.role == "assistant"
        if by_model and not self._by_model:
            self._waiting = []
        self._by_model = by_model
        parts: list[Part] | None = None
        responses = 0
        for at, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                paired = self._call(part)
            elif isinstance(part, ToolResult):
                paired = self._result(part, index, responses)
                responses += 1
            else:
                continue
            if paired is not part:
                parts = parts or list(message.parts)
                parts[at] = paired
        return message if parts is None else msgspec.structs.replace(message, parts=tuple(parts))

    def _call(self, call: ToolCall) -> ToolCall:
        id = call.id or self._mint(call.name)
        self._count += 1
        self._known.add(id)
        self._waiting.append(_Waiting(id, call.name, not call.id))
        return call if call.id else msgspec.structs.replace(call, id=id)

    def _mint(self, name: str) -> str:
        """Legal for every protocol: word characters, and not longer than the lowest limit (40)."""
        if self._taken is None:
            parts = (part for message in self._messages for part in message.parts)
            self._taken = {part.id for part in parts if isinstance(part, ToolCall)}
        word = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:24]
        number = self._count
        while (id := f"call_{number}_{word}") in self._taken or id in self._known:
            number += 1
        self._taken.add(id)
        return id

    def _result(self, result: ToolResult, index: int, number: int) -> ToolResult:
        """A response with the id of the call it answers, and with that one's name if it says none itself."""
        id, name = result.call_id, result.name
        waiting = self._answered(id, name)
        if waiting is not None:
            self._waiting.remove(waiting)
            id, name = waiting.id, name or waiting.name
        elif not id:
            id = self._unpaired(name, index, number)
        elif id not in self._known and not self._elsewhere:
            raise BadRequest(f"no earlier tool call has the id {id!r}", self._where(index, number))
        if id == result.call_id and name == result.name:
            return result
        return msgspec.structs.replace(result, call_id=id, name=name)

    def _answered(self, id: str, name: str | None) -> _Waiting | None:
        for waiting in self._waiting:
            if waiting.id == id:
                return waiting
        if id in self._known:
            return None
        for waiting in self._waiting:
            # Where the response has an id, the client made one up for it, but had none for the call.
            if (not name or waiting.name == name) and (waiting.minted or not id):
                return waiting
        return None

    def _unpaired(self, name: str | None, index: int, number: int) -> str:
        if not self._elsewhere:
            called = f" of {name!r}" if name else ""
            raise BadRequest(f"no call{called} waits for this response", self._where(index, number))
        self._count += 1
        return self._mint(name or "unknown")
