"""Conversations as strict targets want them: turns that alternate, and every call with its result.

Readers use `Pairing` to refuse results that answer no call. Writers for Anthropic and Gemini use `turns`,
which merges neighbours of one role and puts tool results first, in the order of their calls.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..errors import BadRequest
from ..messages import Message, Part, Role, Text, ToolCall, ToolResult
from .notices import Notices


class Pairing:
    """Follows the calls and results of a conversation while it is read."""

    def __init__(self, *, history_elsewhere: bool = False) -> None:
        """`history_elsewhere`: earlier turns are kept by the server, so their calls are not here."""
        self._calls: set[str] = set()
        self._lenient = history_elsewhere

    def call(self, id: str) -> None:
        self._calls.add(id)

    def result(self, id: str, path: str) -> None:
        if id not in self._calls and not self._lenient:
            raise BadRequest(f"no earlier tool call has the id {id!r}", path)


class Turn(msgspec.Struct):
    """Neighbouring messages of one role, as one."""

    role: Role
    parts: list[Part]


def turns(messages: Sequence[Message], notices: Notices) -> list[Turn]:
    """`messages` as alternating turns. A call that was never answered gets an answer that says so."""
    merged: list[Turn] = []
    for message in messages:
        if merged and merged[-1].role == message.role:
            merged[-1].parts.extend(message.parts)
        else:
            merged.append(Turn(message.role, list(message.parts)))
    result: list[Turn] = []
    for index, turn in enumerate(merged):
        result.append(turn)
        calls = [p for p in turn.parts if isinstance(p, ToolCall)] if turn.role == "assistant" else []
        if calls and index + 1 < len(merged):
            result.extend(_answered(calls, merged, index, notices))
    return result


def _answered(calls: list[ToolCall], merged: list[Turn], index: int, notices: Notices) -> list[Turn]:
    """Put the results of `calls` in order at the head of the following user turn, making up none."""
    following = _next_user(merged, index)
    if following is None:
        return [Turn("user", [_missing(call, notices) for call in calls])]
    results = {p.call_id: p for p in following.parts if isinstance(p, ToolResult)}
    ordered: list[Part] = [results.pop(call.id, None) or _missing(call, notices) for call in calls]
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


def _missing(call: ToolCall, notices: Notices) -> ToolResult:
    notices.say("missing-tool-result", call.id, f"the call {call.id!r} of {call.name!r} has no result")
    return ToolResult(call_id=call.id, parts=(Text("No result was given for this call."),), is_error=True)
