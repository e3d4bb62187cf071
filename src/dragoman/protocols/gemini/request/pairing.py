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
from ...turns import Pairing

Where = Callable[[int, int], str]
"""(message, which response of it) → the path of its id, put together only to complain."""


class _Waiting(msgspec.Struct, frozen=True):
    id: str
    name: str
    minted: bool


class _Calls:
    """The calls of a conversation so far, and those of the last model turn that still wait."""

    def __init__(self, messages: Sequence[Message], elsewhere: bool) -> None:
        self._taken = {p.id for m in messages for p in m.parts if isinstance(p, ToolCall)}
        self._known = Pairing(history_elsewhere=elsewhere)
        self._seen: set[str] = set()
        self._elsewhere = elsewhere
        self._count = 0
        self._waiting: list[_Waiting] = []

    def new_turn(self) -> None:
        self._waiting = []

    def call(self, call: ToolCall) -> ToolCall:
        minted = not call.id
        id = self._mint(call.name) if minted else call.id
        self._count += 1
        self._known.call(id)
        self._seen.add(id)
        self._waiting.append(_Waiting(id, call.name, minted))
        return msgspec.structs.replace(call, id=id) if minted else call

    def _mint(self, name: str) -> str:
        """Legal for every protocol: word characters, and not longer than the lowest limit (40)."""
        word = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:24]
        number = self._count
        while (id := f"call_{number}_{word}") in self._taken:
            number += 1
        self._taken.add(id)
        return id

    def result(self, result: ToolResult, path: Callable[[], str]) -> ToolResult:
        waiting = self._answered(result)
        if waiting is not None:
            self._waiting.remove(waiting)
            name = result.name or waiting.name
            return msgspec.structs.replace(result, call_id=waiting.id, name=name)
        if not result.call_id:
            return self._unpaired(result, path)
        if result.call_id not in self._seen:
            self._known.result(result.call_id, path())
        return result

    def _answered(self, result: ToolResult) -> _Waiting | None:
        own = [w for w in self._waiting if w.id == result.call_id]
        if own:
            return own[0]
        if result.call_id in self._seen:
            return None
        named = [w for w in self._waiting if not result.name or w.name == result.name]
        if result.call_id:
            # The client made up an id for the response, but had none for the call.
            named = [w for w in named if w.minted]
        return named[0] if named else None

    def _unpaired(self, result: ToolResult, path: Callable[[], str]) -> ToolResult:
        if not self._elsewhere:
            called = f" of {result.name!r}" if result.name else ""
            raise BadRequest(f"no call{called} waits for this response", path())
        self._count += 1
        return msgspec.structs.replace(result, call_id=self._mint(result.name or "unknown"))


def paired(messages: Sequence[Message], where: Where, elsewhere: bool) -> tuple[Message, ...]:
    """`messages` with an id on every call, and on every response the id of the call it answers.

    `elsewhere`: earlier turns are in cached content, so their calls are not here.
    """
    calls = _Calls(messages, elsewhere)
    result: list[Message] = []
    for index, message in enumerate(messages):
        if message.role == "assistant" and index and messages[index - 1].role != "assistant":
            calls.new_turn()
        result.append(_with_ids(message, index, calls, where))
    return tuple(result)


def _with_ids(message: Message, index: int, calls: _Calls, where: Where) -> Message:
    parts: list[Part] = []
    responses = 0
    for part in message.parts:
        if isinstance(part, ToolCall):
            part = calls.call(part)
        elif isinstance(part, ToolResult):
            number = responses
            part = calls.result(part, lambda number=number: where(index, number))
            responses += 1
        parts.append(part)
    if all(new is old for new, old in zip(parts, message.parts, strict=True)):
        return message
    return msgspec.structs.replace(message, parts=tuple(parts))
