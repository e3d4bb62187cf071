"""Which response answers which call, where Gemini's wire says it only by name and order.

Many clients send no ids (pi, google-genai, opencode, …). A call without one gets an id made of its
number and name, the same on every turn; a response without one answers the first call of its name
that waits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from ....errors import BadRequest
from ....messages import Message, Part, ToolCall, ToolResult

Where = Callable[[int, int], str]
"""(message, which response of it) → the path of its id, put together only to complain."""


class _Waiting(msgspec.Struct, frozen=True):
    id: str
    name: str
    minted: bool


class Calls:
    """The calls of a conversation so far, and those of the last model turn that still wait."""

    def __init__(self, taken: set[str], *, elsewhere: bool) -> None:
        """`taken`: ids that no call without one may get."""
        self._known: set[str] = set()
        self._taken = taken
        self._elsewhere = elsewhere
        self._count = 0
        self._by_model = False
        """Was the last message the model's?"""
        self._waiting: list[_Waiting] = []

    def message(self, *, by_model: bool) -> None:
        """The next message begins."""
        if by_model and not self._by_model:
            self._waiting = []
        self._by_model = by_model

    def call(self, id: str, name: str) -> str:
        """The id of a call, whether or not it came with one."""
        minted = not id
        if minted:
            id = self._mint(name)
        self._count += 1
        self._known.add(id)
        self._waiting.append(_Waiting(id, name, minted))
        return id

    def _mint(self, name: str) -> str:
        """Legal for every protocol: word characters, and not longer than the lowest limit (40)."""
        word = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:24]
        number = self._count
        while (id := f"call_{number}_{word}") in self._taken or id in self._known:
            number += 1
        self._taken.add(id)
        return id

    def result(self, id: str, name: str | None, path: Callable[[], str]) -> tuple[str, str | None]:
        """Which call a response answers, and that one's name, if it says none itself."""
        waiting = self._answered(id, name)
        if waiting is not None:
            self._waiting.remove(waiting)
            return waiting.id, name or waiting.name
        if not id:
            return self._unpaired(name, path), name
        if id not in self._known and not self._elsewhere:
            raise BadRequest(f"no earlier tool call has the id {id!r}", path())
        return id, name

    def _answered(self, id: str, name: str | None) -> _Waiting | None:
        own = [w for w in self._waiting if w.id == id]
        if own:
            return own[0]
        if id in self._known:
            return None
        named = [w for w in self._waiting if not name or w.name == name]
        if id:
            # The client made up an id for the response, but had none for the call.
            named = [w for w in named if w.minted]
        return named[0] if named else None

    def _unpaired(self, name: str | None, path: Callable[[], str]) -> str:
        if not self._elsewhere:
            called = f" of {name!r}" if name else ""
            raise BadRequest(f"no call{called} waits for this response", path())
        self._count += 1
        return self._mint(name or "unknown")


def paired(messages: Sequence[Message], where: Where, elsewhere: bool) -> tuple[Message, ...]:
    """`messages` with an id on every call, and on every response the id of the call it answers.

    `elsewhere`: earlier turns are in cached content, so their calls are not here.
    """
    taken = {part.id for message in messages for part in message.parts if isinstance(part, ToolCall)}
    calls = Calls(taken, elsewhere=elsewhere)
    return tuple([_with_ids(message, index, calls, where) for index, message in enumerate(messages)])


def _with_ids(message: Message, index: int, calls: Calls, where: Where) -> Message:
    """The next message, with its ids."""
    calls.message(by_model=message.role == "assistant")
    parts: list[Part] = []
    responses = 0
    for part in message.parts:
        if isinstance(part, ToolCall):
            id = calls.call(part.id, part.name)
            part = part if id == part.id else msgspec.structs.replace(part, id=id)
        elif isinstance(part, ToolResult):
            number = responses
            id, name = calls.result(part.call_id, part.name, lambda number=number: where(index, number))
            if (id, name) != (part.call_id, part.name):
                part = msgspec.structs.replace(part, call_id=id, name=name)
            responses += 1
        parts.append(part)
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return msgspec.structs.replace(message, parts=tuple(parts))
