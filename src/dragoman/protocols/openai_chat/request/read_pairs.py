"""Match the results of a Chat conversation to earlier calls: their ids and their kind."""

from __future__ import annotations

import msgspec

from ....model.messages import Message, Part, ToolCall, ToolResult
from ...common.fields import join, reject
from ...common.turns import refuse_stray

LEGACY = "call_function"
"""The id of the deprecated `function_call` and of its result, which have none, until they are numbered."""
_PAIRED = frozenset({ToolCall, ToolResult})


class ChatPairing:
    """Processes the messages of one conversation in order."""

    def __init__(self) -> None:
        self._calls: set[str] = set()
        self._freeform: set[str] = set()
        """The ids of freeform calls so far."""
        self._legacy: dict[str, str] = {}
        """The id of the last deprecated `function_call`, by the function's name."""
        self._legacy_calls = 0

    def add(self, message: Message, where: str) -> Message:
        """Process the next message, which has the path `where`."""
        if _PAIRED.isdisjoint(map(type, message.parts)):
            return message
        parts = tuple([self._part(part, where) for part in message.parts])
        if all(new is old for new, old in zip(parts, message.parts, strict=True)):
            return message
        return msgspec.structs.replace(message, parts=parts)

    def _part(self, part: Part, where: str) -> Part:
        if isinstance(part, ToolCall):
            return self._call(part)
        if isinstance(part, ToolResult):
            return self._result(part, where)
        return part

    def _call(self, call: ToolCall) -> ToolCall:
        if call.id == LEGACY:
            self._legacy_calls += 1
            call = msgspec.structs.replace(call, id=f"{LEGACY}_{self._legacy_calls}")
            # `function_call` allows one call per turn, so the function's name identifies it.
            self._legacy[call.name] = call.id
        if call.kind == "custom":
            self._freeform.add(call.id)
        self._calls.add(call.id)
        return call

    def _result(self, result: ToolResult, where: str) -> ToolResult:
        if result.call_id == LEGACY:
            id = self._legacy.get(result.name or "")
            if id is None:
                reject(f"no earlier function call was to {result.name!r}", where, "name")
            return msgspec.structs.replace(result, call_id=id)
        if result.call_id not in self._calls:
            refuse_stray(result.call_id, join(where, "tool_call_id"))
        if result.call_id in self._freeform:
            return msgspec.structs.replace(result, kind="custom")
        return result
