"""Anthropic's messages read in one go, where they are plain; the others one field at a time."""

from __future__ import annotations

from typing import Annotated

import msgspec

from ....messages import Message, Opaque, ToolCall, ToolResult
from ... import ids
from ...conversations import Cut
from ...fields import as_object
from ...history import History
from ...plain import Asked, Call, Plain, Result, Said, Words
from ...turns import Pairing
from .read_blocks import read_message

_Name = Annotated[str, msgspec.Meta(min_length=1)]


class _Words(Words, tag="text", frozen=True, forbid_unknown_fields=True, gc=False):
    """A `text` block."""


class _Call(Call, tag="tool_use", frozen=True, forbid_unknown_fields=True, gc=False):
    id: _Name
    name: _Name


class _Result(
    Result,
    tag="tool_result",
    rename={"call_id": "tool_use_id"},
    frozen=True,
    forbid_unknown_fields=True,
    gc=False,
):
    call_id: _Name
    content: str | list[_Words]


class _Said(Said, tag_field="role", tag="assistant", frozen=True, forbid_unknown_fields=True, gc=False):
    content: str | list[_Words | _Call]


class _Asked(Asked, tag_field="role", tag="user", frozen=True, forbid_unknown_fields=True, gc=False):
    content: str | list[_Words | _Result]


_decode = msgspec.json.Decoder(_Said | _Asked).decode


def read_history(cut: Cut, leading: tuple[Message, ...]) -> History:
    """The conversation of a request. Raises ValueError, RecursionError or BadRequest for what is wrong."""
    before = cut.before
    history = before.history.begun(cut.count, leading) if before else History(_read, leading)
    for at, data in enumerate(cut.items, cut.count):
        # Of a conversation that is known, nothing else of the request is to be held by a few messages.
        data = data.copy() if before else data
        entry = _plain(data, at, history.pairing.calls)
        if entry is None:
            entry = _read(msgspec.json.decode(data), at)
            check_pairs(entry, at, history.pairing)
        history.add(data, entry)
    history.ended()
    return history


def _plain(data: msgspec.Raw, at: int, calls: dict[str, int]) -> Plain | None:
    """A message that says nothing unusual; a result of no call of `calls` is one thing that is."""
    try:
        message = _decode(data)
    except msgspec.ValidationError:
        return None
    content = message.content
    if isinstance(content, str):
        return message
    if isinstance(message, Said):
        made = [part.id for part in content if isinstance(part, Call)]
        if any(map(ids.is_escaped, made)):
            return None
        for id in made:
            calls.setdefault(id, at)
        return message
    for part in content:
        if isinstance(part, Result) and (part.call_id not in calls or ids.is_escaped(part.call_id)):
            return None
    return message


def check_pairs(message: Message, at: int, pairing: Pairing) -> None:
    for index, part in enumerate(message.parts):
        if isinstance(part, ToolCall):
            pairing.call(part.id, at)
        elif isinstance(part, ToolResult):
            # In a user message every block is a part, so the positions are the client's.
            pairing.result(part.call_id, f"messages[{at}].content[{index}].tool_use_id")
        elif isinstance(part, Opaque):
            # Kinds of call yet unknown may be answered like any other.
            id = part.raw.value.get("id")
            if isinstance(id, str):
                pairing.call(id, at)


def _read(value: object, at: int) -> Message:
    where = f"messages[{at}]"
    return read_message(as_object(value, where), where)
