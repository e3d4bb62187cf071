"""May a Chat upstream's chunk go to a Chat client as it is?

Yes, while it obeys what strict clients rely on (protocols.md 1B.7): one id, model and time; the role
once; dense tool indexes; id, name and type in a call's first fragment only; one finish reason that tells
the truth, and no delta after it. The first chunk that does not ends the verbatim passage for good.
"""

from __future__ import annotations

from typing import Any

from ..ids import WORDS
from . import types

_FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter"})


class Watch:
    """Follows one answer."""

    def __init__(self) -> None:
        self._head: tuple[Any, ...] | None = None
        self._calls: set[str] = set()
        self._role = False
        self._finished = False
        self._usage = False

    def passes(self, chunk: types.Chunk) -> bool:
        if chunk.object == "chat.completion":
            return self._whole(chunk)
        head = (chunk.id, chunk.object, chunk.created, chunk.model)
        if head != self._head:
            if self._head is not None or not (chunk.id and chunk.model and type(chunk.created) is int):
                return False
            if chunk.object != "chat.completion.chunk":
                return False
            self._head = head
        if self._usage or chunk.choices is None or (chunk.usage and not self._last_usage(chunk)):
            return False
        return all(self._choice(choice) for choice in chunk.choices)

    def closed(self, done: bool) -> bool:
        """Was the end as it should be?"""
        return self._finished and done

    def _last_usage(self, chunk: types.Chunk) -> bool:
        self._usage = True
        return self._finished and not chunk.choices

    def _choice(self, choice: types.Choice) -> bool:
        if choice.index != 0:
            return choice.index is not None
        delta = choice.delta
        if delta is None or self._finished or delta.function_call is not None:
            return False
        if not self._fields(delta):
            return False
        if delta.tool_calls is not None and not (
            delta.tool_calls and all(self._call(call) for call in delta.tool_calls)
        ):
            return False
        reason = choice.finish_reason
        if reason is not None:
            self._finished = True
            empty = not (delta.content or delta.tool_calls)
            return empty and reason in _FINISHES and (reason != "stop" or not self._calls)
        return True

    def _fields(self, delta: types.Delta) -> bool:
        if delta.role is not None:
            if self._role or delta.role != "assistant":
                return False
            self._role = True
        if delta.reasoning_content and delta.reasoning:
            return False
        return self._role and (delta.content is None or isinstance(delta.content, str))

    def _call(self, call: types.Call) -> bool:
        number = call.index
        if type(number) is not int or not 0 <= number <= len(self._calls) or call.custom:
            return False
        function = call.function
        if function is None or not isinstance(function.arguments, str):
            return False
        if number < len(self._calls):
            return call.id is None and call.type is None and function.name is None
        if not (call.id and WORDS.legal(call.id) and call.type == "function" and function.name):
            return False
        if call.id in self._calls:
            return False
        self._calls.add(call.id)
        return True

    def _whole(self, chunk: types.Chunk) -> bool:
        choices = chunk.choices
        if not (chunk.id and chunk.model and type(chunk.created) is int and choices):
            return False
        message = choices[0].message
        if (
            message is None
            or message.role != "assistant"
            or not (message.tool_calls is None or message.tool_calls)
        ):
            return False
        for number, call in enumerate(message.tool_calls or ()):
            call.index = number if call.index is None else call.index
            if not self._call(call):
                return False
        reason = choices[0].finish_reason
        return reason in _FINISHES and (reason != "stop" or not self._calls)
