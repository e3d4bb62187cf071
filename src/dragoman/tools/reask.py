"""Asks the model again (`invalid = "reask"`): the next turn shows its call and the problems of the call.

The client notices only the time: calls are held back until all calls of the turn are valid, and the usage of
all turns is added up.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.events import NO_USAGE, Event, Start, Usage, UsageSeen
from ..model.messages import Message, Notice, Part, Request, Text, ToolCall, ToolChoice, ToolResult
from ..protocols.common.collect import Answer

_NOT_RUN = "This call was not run, because another call of the same turn was not valid. Call it again."


Answered = tuple[ToolCall, ToolResult]
"""A call of the model, and its result."""


class Rejected(msgspec.Struct, frozen=True):
    """A call of a turn that is asked for again. `problems` is empty if only other calls are invalid."""

    call: ToolCall
    problems: tuple[str, ...]
    offered: bool = True
    """Whether the client declared the tool."""


class TurnJoiner:
    """Joins several turns with the upstream into one answer: one start, the sum of the usage."""

    __slots__ = ("_again", "_answer", "_earlier")

    def __init__(self) -> None:
        self._answer = Answer()
        """The upstream's answer in this turn."""
        self._earlier = NO_USAGE
        """The usage of the earlier turns."""
        self._again = False

    def joined(self, events: list[Event]) -> list[Event]:
        """The upstream's events, as events of the joined answer."""
        self._answer.extend(events)
        if not self._again:
            return events
        return [self._summed(e) if type(e) is UsageSeen else e for e in events if type(e) is not Start]

    def _summed(self, event: UsageSeen) -> UsageSeen:
        return msgspec.structs.replace(event, usage=self._earlier.plus(event.usage))

    def next(self, request: Request, answers: Sequence[Answered], usage: Usage) -> Request:
        """The request that continues after this turn. `usage`: of all turns so far."""
        request = follow_up(request, self._answer.parts, answers)
        self._answer, self._earlier, self._again = Answer(), usage, True
        return request


def follow_up(request: Request, turn: Sequence[Part], answers: Sequence[Answered]) -> Request:
    """`request` with the model's turn and the results of its calls appended."""
    calls = {call.id: call for call, _ in answers}
    parts: list[Part] = []
    for part in turn:
        found = _as_answered(part, calls) if isinstance(part, ToolCall) else None
        if found is not None:
            del calls[found.id]
        parts.append(found or part)
    # A call that was written as text has no block in the model's turn.
    parts += calls.values()
    results = tuple(result for _, result in answers)
    appended = (Message("assistant", tuple(parts)), Message("user", results))
    return request.changed(messages=(*request.messages, *appended))


def _as_answered(part: ToolCall, calls: dict[str, ToolCall]) -> ToolCall | None:
    """The call of `calls` that `part` is. Gemini 2 gives no ids: then the arguments tell."""
    if part.id:
        return calls.get(part.id)
    return next((call for call in calls.values() if call.arguments == part.arguments), None)


def forced(
    request: Request, rejected: Sequence[Rejected], *, by_schema: bool, by_name: bool = True
) -> tuple[Request, Notice]:
    """`request` with a `tool_choice` that forces the call, and the notice for the receipt.

    `by_schema`: the server decodes a forced call by the schema of its tool, as vLLM, SGLang and llama.cpp do.
    The tool is then also marked `strict`: vLLM and llama.cpp do not need that, but SGLang leaves the schema
    out of the grammar without it.

    `by_name`: the server takes a `tool_choice` that names a tool. llama.cpp does not: it reads anything but a
    word as `auto`, without an error (llama.cpp#26535). It gets `required`, which allows any tool.
    """
    wanted = {(item.call.name, item.call.namespace) for item in rejected}
    settings = request.settings
    allowed = settings.tool_choice.allowed if settings.tool_choice else None
    choice, what = ToolChoice("required", allowed=allowed), "a call"
    if by_name and len(wanted) == 1 and rejected[0].offered:
        name, namespace = wanted.pop()
        choice, what = ToolChoice("named", name, namespace), f"a call of {name}"
    tools, decoding = request.tools, ""
    if by_schema:
        named = {item.call.name for item in rejected}
        any_tool = not all(item.offered for item in rejected)  # instead of one that there is not
        decoding = ", decoded by its schema"
        tools = tuple(
            msgspec.structs.replace(t, strict=True, raw=None)
            if t.kind == "function" and (any_tool or t.name in named)
            else t
            for t in tools
        )
    request = request.changed(tools=tools, settings=msgspec.structs.replace(settings, tool_choice=choice))
    message = f"the upstream was asked again for {what}, forced by tool_choice{decoding}"
    return request, Notice("asked-again", "tool_choice", message)


def answered(item: Rejected) -> Answered:
    """The call, and the result that tells the model what is wrong."""
    text = _NOT_RUN
    if item.problems:
        listed = "\n".join(f"- {problem}" for problem in item.problems)
        name = item.call.name
        wrong = (
            f"The arguments of {name} are not valid" if item.offered else f"The call of {name} is not valid"
        )
        again = "Call the tool again, corrected." if item.offered else "Call one of the tools that there are."
        text = f"{wrong}:\n{listed}\n{again}"
    call = item.call
    return call, ToolResult(call_id=call.id, parts=(Text(text),), is_error=True, name=call.name)
