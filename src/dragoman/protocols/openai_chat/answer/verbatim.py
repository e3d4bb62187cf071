"""Check whether a Chat upstream's chunks may pass unchanged to a Chat client.

They may while they keep the rules that OpenAI's SDK relies on: one id, model and creation time; the role once
(the SDK concatenates it: `assistantassistant`); dense tool indexes (it raises at a gap); id, name and type
only in the first fragment of a call; one finish reason that is true, and no delta after it. The first chunk
that breaks a rule ends the pass-through.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...common.call_ids import WORDS
from . import wire

_TEXT = frozenset({str, type(None), msgspec.UnsetType})
_FINISHES = frozenset({"stop", "length", "tool_calls", "content_filter"})


class VerbatimCheck:
    """Checks the chunks of one answer."""

    __slots__ = ("_choices", "_head", "_is_whole", "_usage")

    def __init__(self) -> None:
        self._head: tuple[Any, ...] | None = None
        self._choices: dict[int, ChoiceCheck] = {}
        self._usage = False
        self._is_whole = False

    def passes(self, chunk: wire.ChatChunk) -> bool:
        head = (chunk.id, chunk.object, chunk.created, chunk.model)
        if head != self._head:
            if chunk.object == "chat.completion":
                return self._whole(chunk)
            if self._head is not None or not _named(chunk) or chunk.object != "chat.completion.chunk":
                return False
            self._head = head
        choices = chunk.choices
        if not (choices or self._choices):
            return False  # the first chunk must hold the role
        # Usage must be the last chunk: OpenAI's SDK overwrites it with the null of a later one.
        if self._usage or choices is None or (chunk.usage and not self._last_usage(chunk)):
            return False
        for choice in choices:
            check = self._choices.get(choice.index) or self._begun(choice.index)  # pyright: ignore[reportArgumentType]
            if check is None or not check.passes(choice):
                return False
        return True

    def closed(self, done: bool) -> bool:
        """Did the answer end correctly? `done`: the upstream sent `[DONE]`."""
        if self._is_whole:
            return True
        return done and bool(self._choices) and all(c.finished for c in self._choices.values())

    def _last_usage(self, chunk: wire.ChatChunk) -> bool:
        self._usage = True
        return self.closed(True) and not chunk.choices and adds_up(chunk.usage)

    def _begun(self, number: int | None) -> ChoiceCheck | None:
        """Start a new choice; None if its number is not the next one."""
        if number is None or number != len(self._choices):
            return None
        check = self._choices[number] = ChoiceCheck()
        return check

    def _whole(self, chunk: wire.ChatChunk) -> bool:
        self._is_whole = True
        if not (_named(chunk) and chunk.choices) or (chunk.usage and not adds_up(chunk.usage)):
            return False
        numbers = [choice.index for choice in chunk.choices]
        if numbers != list(range(len(numbers))):
            return False
        return all(ChoiceCheck().passes_whole(choice) for choice in chunk.choices)


class ChoiceCheck:
    """Checks one choice. Nearly every answer has only one."""

    __slots__ = ("_calls", "_role", "finished")

    def __init__(self) -> None:
        self.finished = False
        self._role: str | None = "assistant"
        """The role that the next delta must have: `assistant` in the first delta, then None."""
        self._calls: list[str] = []

    def passes(self, choice: wire.Choice) -> bool:
        delta, reason = choice.delta, choice.finish_reason
        if delta is None or self.finished or reason is msgspec.UNSET or not self._fields(delta):
            return False
        if delta.tool_calls is not None and not self._calls_pass(delta.tool_calls):
            return False
        if reason is None:
            return True
        self.finished = True
        return not (delta.content or delta.tool_calls) and self._truthful(reason)

    def passes_whole(self, choice: wire.Choice) -> bool:
        message = choice.message
        if message is None or message.content is msgspec.UNSET or not self._fields(message):
            return False
        for number, call in enumerate(message.tool_calls or ()):
            call.index = number if call.index is None else call.index
        if message.tool_calls is not None and not self._calls_pass(message.tool_calls):
            return False
        return self._truthful(choice.finish_reason)

    def _truthful(self, reason: object) -> bool:
        # Ollama, Gemini's Chat endpoint and even OpenAI with a forced call end with `stop` after calls
        # (ollama#7963, litellm#35663, vllm#25054).
        # Agents that trust the reason would not run them.
        return reason in _FINISHES and (reason == "tool_calls") <= bool(self._calls) <= (reason != "stop")

    def _fields(self, delta: wire.ChatDelta) -> bool:
        if delta.role != self._role or delta.function_call is not None:
            return False
        self._role = None
        thought, other = delta.reasoning_content, delta.reasoning
        # Text in both fields would be shown twice by clients that read both.
        if (thought and other) or type(thought) not in _TEXT or type(other) not in _TEXT:
            return False
        return type(delta.content) in _TEXT

    def _calls_pass(self, calls: list[wire.CallDelta]) -> bool:
        for call in calls:
            if not self._call(call):
                return False
        return bool(calls)

    def _call(self, call: wire.CallDelta) -> bool:
        number = call.index
        # A custom call in a stream makes the stream helper of OpenAI's SDK fail. The encoder decides about
        # its form.
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
        self._calls.append(call.id)
        return True


def _named(chunk: wire.ChatChunk) -> bool:
    return bool(chunk.id and chunk.model) and type(chunk.created) is int and chunk.created >= 0


def adds_up(usage: wire.ChatUsage | None) -> bool:
    """Are the counts complete and consistent?"""
    if usage is None:
        return False
    prompt, completion = usage.prompt_tokens, usage.completion_tokens
    if prompt is None or completion is None or prompt < 0 or completion < 0:
        return False
    return usage.total_tokens == prompt + completion
