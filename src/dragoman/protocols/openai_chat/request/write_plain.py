"""Plain messages for Chat, without a neutral message in between: the same as the long way would give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...fields import Obj
from ...ids import for_upstream
from ...plain import Asked, Call, Result, Said, joined, texts
from .shared import Writing

_encode = msgspec.json.Encoder().encode


def plain_assistant(said: Said, writing: Writing, thoughts: Obj) -> tuple[Obj | None, list[Call]]:
    """What the model said, None if that is nothing, and its calls, which go with `thoughts`."""
    content = said.content
    words = texts(content)
    calls = [] if isinstance(content, str) else [part for part in content if isinstance(part, Call)]
    if not calls:
        return ({"role": "assistant", "content": _content(words, writing)} if words else None), calls
    message: Obj = {"role": "assistant", "content": _content(words, writing) if words else None, **thoughts}
    message["tool_calls"] = [
        {
            "id": for_upstream(call.id, writing.ids),
            "type": "function",
            "function": {"name": writing.names.out(call.name), "arguments": _encode(call.input).decode()},
        }
        for call in calls
    ]
    return message, calls


def plain_answers(asked: Asked, writing: Writing) -> list[tuple[str, Obj]]:
    """The results in a message of the user's, each with the id of its call."""
    if isinstance(asked.content, str):
        return []
    return [
        (
            part.call_id,
            {
                "role": "tool",
                "tool_call_id": for_upstream(part.call_id, writing.ids),
                "content": _content(texts(part.content), writing),
            },
        )
        for part in asked.content
        if isinstance(part, Result)
    ]


def plain_question(asked: Asked, writing: Writing) -> Obj | None:
    """What the user says beside results; None if there are only those."""
    content = asked.content
    if isinstance(content, str):
        return {"role": "user", "content": content}
    words = texts(content)
    return {"role": "user", "content": _content(words, writing)} if words or not content else None


def _content(words: Sequence[str | msgspec.Raw], writing: Writing) -> Any:
    """Like `content_of`, of nothing but words."""
    if len(words) == 1:
        return words[0]
    if not words or writing.compatible:
        return joined(words, "\n\n")
    return [{"type": "text", "text": text} for text in words]
