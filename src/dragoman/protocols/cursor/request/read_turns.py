"""One turn of a conversation, whoever's shape it and its parts are in, as a neutral message."""

from __future__ import annotations

from itertools import groupby

import msgspec

from ....model.messages import Media, Message, Part, Role, Text, Thinking, ToolCall, ToolResult
from ...anthropic.request.read_blocks import read_blocks
from ...common.fields import Obj, is_array, objects, reject
from ...common.typed_json import as_json
from ...openai_chat.request.read_messages import read_message
from ...openai_chat.request.read_parts import read_part as read_chat_part
from ...openai_responses.request.read_items import read_item
from ...openai_responses.request.read_parts import read_part as read_responses_part
from .shapes import ANTHROPIC, RESPONSES, part_shape


def read_turn(turn: Obj, where: str) -> Message:
    """A message of Chat's, with anybody's parts in it, or an item of Responses'."""
    if "role" not in turn:
        return read_item(as_json(turn), where)
    if not is_array(turn.get("content")):
        return read_message(as_json(turn), where)
    # All that stands beside the content is Chat's: calls, reasoning, which call a result answers.
    message = read_message(as_json({**turn, "content": ""}), where)
    parts = _parts(objects(turn, "content", where), message.role)
    if turn["role"] == "tool":
        return _with_result(message, parts, where)
    return msgspec.structs.replace(message, parts=_joined(message.parts, parts))


def _parts(content: list[tuple[str, Obj]], role: Role) -> list[Part]:
    parts: list[Part] = []
    for shape, run in groupby(content, lambda placed: part_shape(placed[1])):
        if shape == ANTHROPIC:
            placed = list(run)
            blocks = [as_json(block) for _, block in placed]
            parts += read_blocks(blocks, [where for where, _ in placed], role)
        elif shape == RESPONSES:
            parts += [read_responses_part(as_json(part), where) for where, part in run]
        else:
            parts += [read_chat_part(as_json(part), where) for where, part in run]
    return parts


def _with_result(message: Message, parts: list[Part], where: str) -> Message:
    """A tool's answer; one that is wrapped in a block of Anthropic's as well is unwrapped."""
    said: list[Text | Media] = []
    failed = False
    for part in parts:
        if isinstance(part, ToolResult):
            said += part.parts
            failed = failed or part.is_error
        elif isinstance(part, (Text, Media)):
            said.append(part)
        else:
            reject("holds what cannot stand in a tool's answer", where, "content")
    (result,) = message.parts
    result = msgspec.structs.replace(result, parts=tuple(said), is_error=failed)
    return msgspec.structs.replace(message, parts=(result,))


def _joined(beside: tuple[Part, ...], content: list[Part]) -> tuple[Part, ...]:
    """Thoughts come first, then what was said, then the calls; one that is written down twice is one."""
    thoughts = [part for part in beside if isinstance(part, Thinking)]
    inside = {part.id for part in content if isinstance(part, ToolCall)}
    rest = [
        part
        for part in beside
        if not isinstance(part, Thinking) and not (isinstance(part, ToolCall) and part.id in inside)
    ]
    return (*thoughts, *content, *rest)


def plain(message: Message) -> Message:
    """A message that belongs to no wire, so that every writer writes it anew."""
    parts = tuple(
        msgspec.structs.replace(part, raw=None) if isinstance(part, (ToolCall, ToolResult)) else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts, raw=None)
