"""Asking the model again: its own call, and what is wrong with it, as the next turn of the conversation.

The client sees none of this but the time it takes: calls are held back until the whole turn is known to be
good, and the usage of all turns is added up.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..model.events import NO_USAGE, Event, Start, Usage, UsageSeen
from ..model.messages import Message, Notice, Part, Request, Text, ToolCall, ToolChoice, ToolResult
from ..protocols.common.collect import Answer

_FINE = "This call was not run, because another call of the same turn was not valid. Call it again."


class Rejected(msgspec.Struct, frozen=True):
    """A call of a turn that is asked for again. `problems` is empty where only its neighbours are bad."""

    call: ToolCall
    problems: tuple[str, ...]
    offered: bool = True
    """Is it a tool that the client declared?"""


class Turns:
    """Several turns with the upstream, one answer to the client: one start, the sum of the usage."""

    __slots__ = ("_again", "_earlier", "_said")

    def __init__(self) -> None:
        self._said = Answer()
        """All that the upstream said in this turn."""
        self._earlier = NO_USAGE
        """What the turns before this one cost."""
        self._again = False

    def joined(self, events: list[Event]) -> list[Event]:
        """The upstream's events, as those of the one answer."""
        self._said.extend(events)
        if not self._again:
            return events
        summed = [UsageSeen(self._earlier.plus(e.usage)) if type(e) is UsageSeen else e for e in events]
        return [event for event in summed if type(event) is not Start]

    def next(self, request: Request, rejected: Sequence[Rejected], usage: Usage) -> Request:
        """The request that asks for the rejected calls again, where all turns so far cost `usage`."""
        request = follow_up(request, self._said.parts, rejected)
        self._said, self._earlier, self._again = Answer(), usage, True
        return request


def follow_up(request: Request, said: Sequence[Part], rejected: Sequence[Rejected]) -> Request:
    """`request` with the model's turn and the answers to its calls appended."""
    calls = {item.call.id: item.call for item in rejected}
    parts = tuple(calls.get(p.id, p) if isinstance(p, ToolCall) else p for p in said)
    known = {p.id for p in parts if isinstance(p, ToolCall)}
    # Calls that were written as text stand in no block of the model's own.
    parts += tuple(call for id, call in calls.items() if id not in known)
    results = tuple(_result(item) for item in rejected)
    turn = (Message("assistant", parts), Message("user", results))
    return request.changed(messages=(*request.messages, *turn))


def forced(request: Request, rejected: Sequence[Rejected], *, by_schema: bool) -> tuple[Request, Notice]:
    """`request` so that the model must call again, and what the receipt says of it.

    Servers that decode by a schema (vLLM, SGLang, llama.cpp) hold a forced call to the schema of its tool.
    `by_schema`: it is such a server, so the tool is also marked `strict`, which some of them ask for.
    """
    wanted = {(item.call.name, item.call.namespace) for item in rejected}
    settings = request.settings
    allowed = settings.tool_choice.allowed if settings.tool_choice else None
    choice, what = ToolChoice("required", allowed=allowed), "a call"
    if len(wanted) == 1 and rejected[0].offered:
        name, namespace = wanted.pop()
        choice, what = ToolChoice("named", name, namespace), f"a call of {name}"
    tools, held = request.tools, ""
    if by_schema:
        named = {item.call.name for item in rejected}
        held = ", decoded by its schema"
        tools = tuple(
            msgspec.structs.replace(t, strict=True, raw=None)
            if t.kind == "function" and t.name in named
            else t
            for t in tools
        )
    request = request.changed(tools=tools, settings=msgspec.structs.replace(settings, tool_choice=choice))
    message = f"the upstream was asked again for {what}, forced by tool_choice{held}"
    return request, Notice("asked-again", "tool_choice", message)


def _result(item: Rejected) -> ToolResult:
    text = _FINE
    if item.problems:
        listed = "\n".join(f"- {problem}" for problem in item.problems)
        name = item.call.name
        wrong = (
            f"The arguments of {name} are not valid" if item.offered else f"The call of {name} is not valid"
        )
        again = "Call the tool again, corrected." if item.offered else "Call one of the tools that there are."
        text = f"{wrong}:\n{listed}\n{again}"
    return ToolResult(call_id=item.call.id, parts=(Text(text),), is_error=True, name=item.call.name)
