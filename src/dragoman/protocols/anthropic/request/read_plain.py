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


_QUOTE = ord('"')
_decode = msgspec.json.Decoder(_Said | _Asked).decode


def read_history(cut: Cut, leading: tuple[Message, ...]) -> History:
    """The conversation of a request. Raises ValueError, RecursionError or BadRequest for what is wrong."""
    before = cut.before
    history = before.history.begun(cut.count, leading) if before else History(_read, leading)
    plain: list[Plain | None] = []
    unusual: dict[int, Message] = {}
    for at, item in enumerate(cut.items, cut.count):
        message = _plain(item, at, history.pairing.calls)
        plain.append(message)
        if message is None:
            unusual[at] = _read(msgspec.json.decode(item), at)
            check_pairs(unusual[at], at, history.pairing)
    history.add(cut.items, plain, unusual)
    return history


def _plain(item: msgspec.Raw, at: int, calls: dict[str, int]) -> Plain | None:
    """A message that says nothing unusual; a result of no call of `calls` is one thing that is."""
    try:
        message = _decode(item)
    except msgspec.ValidationError:
        return None
    content = message.content
    if content.__class__ is str:
        return message
    for part in content:
        if part.kind == "words":
            plain = memoryview(part.text)[0] == _QUOTE
        elif part.kind == "call":
            calls.setdefault(part.id, at)
            plain = not part.id.startswith(ids.OURS)
        else:
            plain = part.call_id in calls and _answers(part)
        if not plain:
            return None
    return message


def _answers(result: Result) -> bool:
    """Is its id one that the client did not get from us in another form, and does it hold texts?"""
    if result.call_id.startswith(ids.OURS):
        return False
    return isinstance(result.content, str) or all(map(_is_text, result.content))


def _is_text(words: Words) -> bool:
    return memoryview(words.text)[0] == _QUOTE


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
