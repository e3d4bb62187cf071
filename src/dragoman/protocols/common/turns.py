"""Conversations for strict upstreams: alternating turns, and a result for every call.

Readers use `refuse_stray` for results without a call. The writers for Anthropic and Gemini use `turns`. It
merges consecutive messages of one role and puts tool results first, in the order of their calls. All writers
use the same texts for failed and missing results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import msgspec

from ...model.errors import BadRequest
from ...model.messages import Media, Message, Part, Role, Text, ToolCall, ToolResult
from .notices import Notices

# Chat and Responses have no field for a failed tool: the text has to say it.
ERROR_MARK = "[error] "
FAILED_SILENTLY = "The tool failed without saying why."
PLACEHOLDER = "Continue."
"""The text of a user message at the beginning, if the conversation begins with the model."""


def refuse_stray(id: str, path: str) -> NoReturn:
    """Refuse the request: the result at `path` belongs to no call."""
    raise BadRequest(f"no earlier tool call has the id {id!r}", path)


class MergedTurn(msgspec.Struct):
    """Consecutive messages of one role, merged."""

    role: Role
    parts: list[Part]


def turns(messages: Sequence[Message], notices: Notices) -> list[MergedTurn]:
    """Merge `messages` into alternating turns. A call without a result gets a result that says so."""
    merged: list[MergedTurn] = []
    last = None
    for message in messages:
        if last is not None and last.role == message.role:
            last.parts.extend(message.parts)
        else:
            last = MergedTurn(message.role, list(message.parts))
            merged.append(last)
    result: list[MergedTurn] = []
    for index, turn in enumerate(merged):
        result.append(turn)
        if turn.role != "assistant" or index + 1 == len(merged):
            continue
        calls = [part for part in turn.parts if isinstance(part, ToolCall)]
        if calls:
            result.extend(_answered(calls, merged, index, notices))
    return result


def _answered(
    calls: list[ToolCall], merged: list[MergedTurn], index: int, notices: Notices
) -> list[MergedTurn]:
    """Move the results of `calls` to the front of the next user turn, in the order of the calls.

    If there is no user turn before the next assistant turn, return one with missing results.
    """
    following = _next_user(merged, index)
    if following is None:
        return [MergedTurn("user", [missing_result(call, notices) for call in calls])]
    results = {p.call_id: p for p in following.parts if isinstance(p, ToolResult)}
    ordered: list[Part] = [results.pop(call.id, None) or missing_result(call, notices) for call in calls]
    rest = [p for p in following.parts if not isinstance(p, ToolResult) or p.call_id in results]
    following.parts[:] = ordered + rest
    return []


def _next_user(merged: list[MergedTurn], index: int) -> MergedTurn | None:
    for turn in merged[index + 1 :]:
        if turn.role == "assistant":
            return None
        if turn.role == "user":
            return turn
    return None


def missing_result(call: ToolCall, notices: Notices) -> ToolResult:
    """A result that says there is none. Without one, every upstream refuses the conversation."""
    notices.warn("missing-tool-result", call.id, f"the call {call.id!r} of {call.name!r} has no result")
    missing = Text("No result was given for this call.")
    return ToolResult(call_id=call.id, parts=(missing,), is_error=True, kind=call.kind)


def begins_answer(found: Sequence[MergedTurn]) -> bool:
    """Do the turns end with the beginning of an answer (a prefill)? Calls at the end wait for results."""
    last = found[-1] if found else None
    return last is not None and last.role == "assistant" and not has_calls(last)


def has_calls(turn: MergedTurn) -> bool:
    return any(isinstance(part, ToolCall) for part in turn.parts)


def marked_parts(result: ToolResult) -> tuple[Text | Media, ...]:
    """The parts of a result. The text of an error starts with a mark."""
    if not result.is_error:
        return result.parts
    match result.parts:
        case (Text() as first, *rest):
            return (msgspec.structs.replace(first, text=ERROR_MARK + first.text), *rest)
        case parts:
            return (Text(ERROR_MARK + FAILED_SILENTLY), *parts)


def note_placeholder(notices: Notices) -> None:
    """Add a notice that a user message was put before the conversation."""
    notices.warn("placeholder-added", "messages", "the conversation must begin with a user message")


def note_prefill(messages: Sequence[Message], notices: Notices) -> None:
    """Add a notice if the conversation ends with an assistant message (a prefill).

    Anthropic's older models continue the text, newer ones refuse it, OpenAI starts a new turn.
    """
    last = messages[-1] if messages else None
    if last is None or last.role != "assistant" or any(isinstance(p, ToolCall) for p in last.parts):
        return
    message = (
        "the conversation ends with an assistant message: the model may continue it, or start a new answer"
    )
    notices.warn("prefill", f"messages[{len(messages) - 1}]", message)
