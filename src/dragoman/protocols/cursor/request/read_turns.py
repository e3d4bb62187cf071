"""Read one turn of a conversation. It and its parts may have the form of any protocol."""

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
    """Read a Chat message with parts of any protocol, or a Responses item."""
    if "role" not in turn:
        return read_item(as_json(turn), where)
    if not is_array(turn.get("content")):
        return read_message(as_json(turn), where)
    # All members besides `content` have Chat's form: calls, reasoning, the call id of a result.
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
    """Read a tool result. It may also be wrapped in an Anthropic block."""
    content: list[Text | Media] = []
    failed = False
    for part in parts:
        if isinstance(part, ToolResult):
            content += part.parts
            failed = failed or part.is_error
        elif isinstance(part, (Text, Media)):
            content.append(part)
        else:
            reject("has a part that is not allowed in a tool's result", where, "content")
    (result,) = message.parts
    result = msgspec.structs.replace(result, parts=tuple(content), is_error=failed)
    return msgspec.structs.replace(message, parts=(result,))


def _joined(beside: tuple[Part, ...], content: list[Part]) -> tuple[Part, ...]:
    """Join the parts: thoughts, then text, then calls. A call that occurs in two forms counts once."""
    thoughts = [part for part in beside if isinstance(part, Thinking)]
    inside = {part.id for part in content if isinstance(part, ToolCall)}
    rest = [
        part
        for part in beside
        if not isinstance(part, Thinking) and not (isinstance(part, ToolCall) and part.id in inside)
    ]
    return (*thoughts, *content, *rest)


def plain(message: Message) -> Message:
    """A copy without `raw` and `extras`, so that every writer writes it from its neutral form."""
    parts = tuple(
        msgspec.structs.replace(part, raw=None) if isinstance(part, (ToolCall, ToolResult)) else part
        for part in message.parts
    )
    return msgspec.structs.replace(message, parts=parts, raw=None, extras=None)
