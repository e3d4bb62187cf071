"""Match function responses to calls: Gemini requires only the name and the order.

Many clients send no ids (pi, google-genai, opencode, …). A call without an id gets one from its number and
name, the same in every turn. A response without an id belongs to the first open call of its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from ....model.errors import BadRequest
from ....model.messages import Message, Part, ToolCall, ToolResult

Where = Callable[[int, int], str]
"""(message index, number of its response) → the path of the response's id, computed only for errors."""


class _Waiting(msgspec.Struct, frozen=True, gc=False):
    id: str
    name: str
    minted: bool


def paired(messages: Sequence[Message], where: Where, elsewhere: bool) -> tuple[Message, ...]:
    """Give every call an id, and every response the id of its call.

    `elsewhere`: earlier turns are in cached content, so their calls are not in the request.
    """
    calls = _CallIndex(messages, where, elsewhere)
    return tuple([calls.with_ids(message, index) for index, message in enumerate(messages)])


class _CallIndex:
    """The calls of a conversation so far, and the open calls of the last model turn."""

    def __init__(self, messages: Sequence[Message], where: Where, elsewhere: bool) -> None:
        self._messages = messages
        self._where = where
        self._elsewhere = elsewhere
        self._taken: set[str] | None = None
        """The ids that are in use. None until the first call without an id: few clients have such calls."""
        self._known: set[str] = set()
        self._count = 0
        self._by_model = False
        """Is the last message from the model?"""
        self._waiting: list[_Waiting] = []

    def with_ids(self, message: Message, index: int) -> Message:
        """The next message, with ids."""
        by_model = message.role == "assistant"
        if by_model and not self._by_model:
            # Gemini's responses answer the model turn before them. Consecutive model contents are one turn.
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
        """Generate an id that is legal in every protocol: word characters, at most 40 of them."""
        if self._taken is None:
            parts = (part for message in self._messages for part in message.parts)
            self._taken = {part.id for part in parts if isinstance(part, ToolCall)}
        # The number comes from the position, so the id is the same in every later request of the
        # conversation. A random id would change the prompt and invalidate the upstream's cache.
        word = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:24]
        number = self._count
        while (id := f"call_{number}_{word}") in self._taken or id in self._known:
            number += 1
        self._taken.add(id)
        return id

    def _result(self, result: ToolResult, index: int, number: int) -> ToolResult:
        """Give a response the id of its call, and the call's name if it has none."""
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
            # A response with an id and a call without one: the client generated the id of the response.
            if (not name or waiting.name == name) and (waiting.minted or not id):
                return waiting
        return None

    def _unpaired(self, name: str | None, index: int, number: int) -> str:
        if not self._elsewhere:
            called = f" of {name!r}" if name else ""
            raise BadRequest(f"there is no open call{called} for this response", self._where(index, number))
        self._count += 1
        return self._mint(name or "unknown")
