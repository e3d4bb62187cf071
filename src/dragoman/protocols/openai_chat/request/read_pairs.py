"""What only earlier messages of a Chat conversation can tell: which call a result answers, and its kind."""

from __future__ import annotations

from typing import TypeGuard

import msgspec

from ....messages import Message, Part, ToolCall, ToolResult
from ...fields import join, reject
from ...turns import Pairing

_PAIRED = frozenset({ToolCall, ToolResult})


def is_paired(message: Message) -> bool:
    """Has it parts that belong to others? All else is what it is wherever it stands."""
    return not _PAIRED.isdisjoint(map(type, message.parts))


def is_freeform(part: Part) -> TypeGuard[ToolCall]:
    return isinstance(part, ToolCall) and part.kind == "custom"


class Conversation:
    """Follows the messages of one."""

    def __init__(self, pairing: Pairing | None = None, freeform: set[str] | None = None) -> None:
        """`freeform`: the calls so far that were given text of any kind."""
        self._pairing = pairing or Pairing()
        self._freeform = freeform or set()
        self._legacy: dict[str, str] = {}
        self._legacy_calls = 0

    def add(self, message: Message, where: str, at: int = 0) -> Message:
        """The message, at that place of the list."""
        if not is_paired(message):
            return message
        parts = tuple(self._part(part, message, where, at) for part in message.parts)
        return msgspec.structs.replace(message, parts=parts)

    def _part(self, part: Part, message: Message, where: str, at: int) -> Part:
        # Only the deprecated `function_call` and its answer are read without a raw form.
        legacy = message.raw is None
        if isinstance(part, ToolCall):
            return self._call(part, legacy, at)
        if isinstance(part, ToolResult):
            return self._result(part, where, legacy)
        return part

    def _call(self, call: ToolCall, legacy: bool, at: int) -> ToolCall:
        if legacy and not call.id:
            self._legacy_calls += 1
            call = msgspec.structs.replace(call, id=f"call_function_{self._legacy_calls}")
            self._legacy[call.name] = call.id
        if call.kind == "custom":
            self._freeform.add(call.id)
        self._pairing.call(call.id, at)
        return call

    def _result(self, result: ToolResult, where: str, legacy: bool) -> ToolResult:
        if legacy:
            id = self._legacy.get(result.name or "")
            if id is None:
                reject(f"no earlier function call was to {result.name!r}", where, "name")
            return msgspec.structs.replace(result, call_id=id)
        self._pairing.result(result.call_id, join(where, "tool_call_id"))
        if result.call_id in self._freeform:
            return msgspec.structs.replace(result, kind="custom")
        return result
