"""Conversations as strict targets want them: turns that alternate, and every call with its result.

Readers use `Pairing` to refuse results that answer no call. Writers for Anthropic and Gemini use `turns`,
which merges neighbours of one role and puts tool results first, in the order of their calls. What is said
of a failed or a missing result is the same for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import msgspec

from ...model.errors import BadRequest
from ...model.messages import Media, Message, Part, Role, Text, ToolCall, ToolResult
from .notices import Notices

# Chat and Responses cannot say that a tool failed: the model must be told in words.
ERROR_MARK = "[error] "
FAILED_SILENTLY = "The tool failed without saying why."
PLACEHOLDER = "Continue."
"""What the user says first, if the conversation begins with the model."""


class Pairing:
    """Follows the calls and results of a conversation while it is read."""

    __slots__ = ("_calls", "_lenient")

    def __init__(self, *, history_elsewhere: bool = False) -> None:
        """`history_elsewhere`: earlier turns are kept by the server, so their calls are not here."""
        self._calls: set[str] = set()
        self._lenient = history_elsewhere

    def call(self, id: str) -> None:
        self._calls.add(id)

    def knows(self, id: str) -> bool:
        """Was there, or may there have been, such a call?"""
        return id in self._calls or self._lenient

    def refuse(self, id: str, path: str) -> NoReturn:
        refuse_stray(id, path)


def refuse_stray(id: str, path: str) -> NoReturn:
    """Complain about a result at `path` that answers no call."""
    raise BadRequest(f"no earlier tool call has the id {id!r}", path)


class Turn(msgspec.Struct):
    """Neighbouring messages of one role, as one."""

    role: Role
    parts: list[Part]


def turns(messages: Sequence[Message], notices: Notices) -> list[Turn]:
    """`messages` as alternating turns. A call that was never answered gets an answer that says so."""
    merged: list[Turn] = []
    last = None
    for message in messages:
        if last is not None and last.role == message.role:
            last.parts.extend(message.parts)
        else:
            last = Turn(message.role, list(message.parts))
            merged.append(last)
    result: list[Turn] = []
    for index, turn in enumerate(merged):
        result.append(turn)
        if turn.role != "assistant" or index + 1 == len(merged):
            continue
        calls = [part for part in turn.parts if isinstance(part, ToolCall)]
        if calls:
            result.extend(_answered(calls, merged, index, notices))
    return result


def _answered(calls: list[ToolCall], merged: list[Turn], index: int, notices: Notices) -> list[Turn]:
    """Put the results of `calls` in order at the head of the following user turn, making up none."""
    following = _next_user(merged, index)
    if following is None:
        return [Turn("user", [missing_result(call, notices) for call in calls])]
    results = {p.call_id: p for p in following.parts if isinstance(p, ToolResult)}
    ordered: list[Part] = [results.pop(call.id, None) or missing_result(call, notices) for call in calls]
    rest = [p for p in following.parts if not isinstance(p, ToolResult) or p.call_id in results]
    following.parts[:] = ordered + rest
    return []


def _next_user(merged: list[Turn], index: int) -> Turn | None:
    for turn in merged[index + 1 :]:
        if turn.role == "assistant":
            return None
        if turn.role == "user":
            return turn
    return None


def missing_result(call: ToolCall, notices: Notices) -> ToolResult:
    """An answer that says there is none: without one, every upstream refuses the whole conversation."""
    notices.say("missing-tool-result", call.id, f"the call {call.id!r} of {call.name!r} has no result")
    missing = Text("No result was given for this call.")
    return ToolResult(call_id=call.id, parts=(missing,), is_error=True, kind=call.kind)


def marked_parts(result: ToolResult) -> tuple[Text | Media, ...]:
    """The parts of a result, an error marked as such in its words."""
    if not result.is_error:
        return result.parts
    match result.parts:
        case (Text() as first, *rest):
            return (msgspec.structs.replace(first, text=ERROR_MARK + first.text), *rest)
        case parts:
            return (Text(ERROR_MARK + FAILED_SILENTLY), *parts)


def note_placeholder(notices: Notices) -> None:
    """A turn of the user was put before the conversation."""
    notices.say("placeholder-added", "messages", "a user must speak first")


def note_prefill(messages: Sequence[Message], notices: Notices) -> None:
    """A conversation that ends with the model's words means something else at every upstream."""
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant" or any(isinstance(p, ToolCall) for p in last.parts):
        return
    message = "the conversation ends with the model's words: it may go on with them, or begin anew"
    notices.say("prefill", f"messages[{len(messages) - 1}]", message)
