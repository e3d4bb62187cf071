"""Plain messages for Chat, without a neutral message in between: the same as the long way would give."""

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
        self._ids: dict[str, str] = {}
        self._name = writing.names.out
        # What a turn with calls says of its thoughts where it has none.
        self._thoughts = reasoning.write((), writing.target, calls=True)

    def assistant(self, said: Said) -> tuple[Obj | None, list[Call]]:
        """What the model said, None if that is nothing, and its calls."""
        content = said.content
        calls: list[Call] = []
        if isinstance(content, str):
            words: list[Any] = [content] if content else []
        else:
            words = []
            for part in content:
                if part.kind == "words":
                    words.append(part.text)
                else:
                    calls.append(part)
        message: Obj = {"role": "assistant", "content": self._content(words) if words else None}
        if calls:
            message |= self._thoughts
            message["tool_calls"] = [self._call(call) for call in calls]
        return (message if words or calls else None), calls

    def answers(self, asked: Asked) -> list[tuple[str, Obj]]:
        """The results in a message of the user's, each with the id of its call."""
        if isinstance(asked.content, str):
            return []
        return [(part.call_id, self._answer(part)) for part in asked.content if part.kind == "result"]

    def question(self, asked: Asked) -> Obj | None:
        """What the user says beside results; None if there are only those."""
        content = asked.content
        if isinstance(content, str):
            return {"role": "user", "content": content}
        words = texts(content)
        return {"role": "user", "content": self._content(words)} if words or not content else None

    def _call(self, call: Call) -> Obj:
        function = {"name": self._name(call.name), "arguments": _encode(call.input).decode()}
        return {"id": self._id(call.id), "type": "function", "function": function}

    def _answer(self, result: Result) -> Obj:
        content = result.content
        if isinstance(content, str):
            text: Any = content
        else:
            text = content[0].text if len(content) == 1 else self._content(texts(content))
        return {"role": "tool", "tool_call_id": self._id(result.call_id), "content": text}

    def _id(self, id: str) -> str:
        """Each comes twice, in the call and in its result."""
        known = self._ids.pop(id, None)
        if known is None:
            known = self._ids[id] = for_upstream(id, self._rule)
        return known

    def _content(self, words: Sequence[str | msgspec.Raw]) -> Any:
        """Like `content_of`, of nothing but words."""
        if len(words) == 1:
            return words[0]
        if not words or self._compatible:
            return joined(words, "\n\n")
        return [{"type": "text", "text": text} for text in words]
