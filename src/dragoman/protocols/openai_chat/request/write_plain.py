"""Plain messages for Chat, without a neutral message in between: the same as the long way would give.

All of a long history goes through here the first time it comes, so each message is looked at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ...fields import Obj
from ...ids import for_upstream
from ...plain import Asked, Call, Result, Said, joined, texts
from . import reasoning
from .shared import Writing

_encode = msgspec.json.Encoder().encode


class PlainWriter:
    """Writes the plain messages of one conversation; nothing that has to be said can happen to them."""

    def __init__(self, writing: Writing) -> None:
        self._compatible = writing.compatible
        self._rule = writing.ids
        # No longer ones, where that is all the upstream asks of an id.
        self._longest = writing.ids.longest if writing.ids.free else 0
        self._out = writing.names.out
        self._names: dict[str, str] = {}
        # What a turn with calls says of its thoughts where it has none.
        self._thoughts = reasoning.write((), writing.target, calls=True)

    def assistant(self, said: Said) -> tuple[Obj | None, dict[str, Call]]:
        """What the model said, None if that is nothing, and its calls by their ids."""
        content: Any = said.content
        if content.__class__ is str:
            return ({"role": "assistant", "content": content} if content else None), {}
        words: list[msgspec.Raw] = []
        calls: dict[str, Call] = {}
        written: list[Obj] = []
        for part in content:
            if part.kind == "words":
                words.append(part.text)
                continue
            calls[part.id] = part
            function = {
                "name": self._names.get(part.name) or self._name(part.name),
                "arguments": _encode(part.input).decode(),
            }
            written.append({"id": self._id(part.id), "type": "function", "function": function})
        message: Obj = {"role": "assistant", "content": self._content(words) if words else None}
        if written:
            message |= self._thoughts
            message["tool_calls"] = written
        return (message if words or written else None), calls

    def answer(self, result: Result) -> Obj:
        content: Any = result.content
        if content.__class__ is not str:
            content = content[0].text if len(content) == 1 else self._content(texts(content))
        return {"role": "tool", "tool_call_id": self._id(result.call_id), "content": content}

    def question(self, asked: Asked) -> Obj | None:
        """What the user says beside results; None if there are only those."""
        content = asked.content
        if isinstance(content, str):
            return {"role": "user", "content": content}
        words = texts(content)
        return {"role": "user", "content": self._content(words)} if words or not content else None

    def _name(self, name: str) -> str:
        known = self._names[name] = self._out(name)
        return known

    def _id(self, id: str) -> str:
        return id if len(id) <= self._longest else for_upstream(id, self._rule)

    def _content(self, words: Sequence[str | msgspec.Raw]) -> Any:
        """Like `content_of`, of nothing but words."""
        if len(words) == 1:
            return words[0]
        if not words or self._compatible:
            return joined(words, "\n\n")
        return [{"type": "text", "text": text} for text in words]
