"""A conversation in Gemini's shape: contents of parts, a call's signature on its own part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ....messages import (
    Media,
    Message,
    Opaque,
    Part,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    plain_text,
)
from ... import ids
from ...base import Target
from ...fields import Obj
from ...freeform import arguments_object
from ...names import ToolNames
from ...notices import Notices
from ...turns import FAILED_SILENTLY, turns
from .keys import is_from_gemini
from .restore import restored, signed

IDS = ids.IdRule(ids.ANY.pattern, ids.ANY.longest, optional=True)
_SIGNATURES = frozenset({"thoughtSignature", "thought_signature"})


class ContentWriter:
    """Writes the contents of one request."""

    def __init__(self, target: Target, names: ToolNames, notices: Notices) -> None:
        self._names = names
        self._notices = notices
        self._ids = target.ids or IDS
        self._target = target
        self._called: dict[str, str] = {}
        """The names of the functions that were called so far, by the ids of the calls."""

    def turns(self, messages: Sequence[Message]) -> list[Obj]:
        """Contents that alternate, each turn of calls followed by all their responses, in order."""
        return [self._content(turn.role, turn.parts) for turn in turns(messages, self._notices)]

    def one_by_one(self, messages: Sequence[Message]) -> list[Any]:
        """Contents as the client had them, for conversations that came over this very wire."""
        contents: list[Any] = []
        for message in messages:
            if is_from_gemini(message.raw):
                self._remember(message.parts)
                kept = restored(message.raw, self._target)
                contents += [] if kept is None else [kept]
            else:
                contents.append(self._content(message.role, message.parts))
        return contents

    def _content(self, role: str, parts: Sequence[Part]) -> Obj:
        self._remember(parts)
        written = self._parts(parts)
        if role == "assistant":
            return {"role": "model", "parts": signed(written, self._target)}
        return {"role": "user", "parts": written}

    def _remember(self, parts: Iterable[Part]) -> None:
        """A response must repeat the name of the function that was called."""
        for part in parts:
            if isinstance(part, ToolCall):
                self._called[part.id] = self._names.out(part.name, part.namespace)

    def _parts(self, parts: Sequence[Part]) -> list[Obj]:
        written: list[Obj] = []
        for part in parts:
            match part:
                case Thinking(text="", seal=seal) if seal is not None:
                    if not written or "thoughtSignature" in written[-1]:
                        written.append({"text": ""})
                    written[-1]["thoughtSignature"] = seal.data
                case Thinking():
                    written.append({"text": part.text, "thought": True} | _signature(part))
                case ToolCall():
                    written.append(self._call(part))
                case ToolResult():
                    written.append(self._response(part))
                case Media():
                    written.append(media_part(part))
                case Opaque():
                    written.append(dict(part.raw.value))
                case _:
                    written.append({"text": part.text})
        return written

    def _call(self, call: ToolCall) -> Obj:
        name = self._names.out(call.name, call.namespace)
        written = {
            "id": ids.for_upstream(call.id, self._ids),
            "name": name,
            "args": arguments_object(call, self._notices),
        }
        return {"functionCall": written} | _signature(call)

    def _response(self, result: ToolResult) -> Obj:
        name = self._called.get(result.call_id) or self._names.out(result.name or result.call_id)
        text = plain_text(result.parts)
        if result.is_error and not text:
            text = FAILED_SILENTLY  # an empty error is none
        written: Obj = {
            "id": ids.for_upstream(result.call_id, self._ids),
            "name": name,
            "response": {"error" if result.is_error else "output": text},
        }
        media = [media_part(p) for p in result.parts if isinstance(p, Media)]
        if media:
            written["parts"] = media
        return {"functionResponse": written}


def _signature(part: Thinking | ToolCall) -> Obj:
    return {} if part.seal is None else {"thoughtSignature": part.seal.data}


def media_part(media: Media) -> Obj:
    if is_from_gemini(media.raw):
        return {k: v for k, v in media.raw.value.items() if k not in _SIGNATURES}
    if media.url is not None:
        return {"fileData": {"mimeType": media.media_type, "fileUri": media.url}}
    return {"inlineData": {"mimeType": media.media_type, "data": media.data or ""}}


def system_instruction(messages: Sequence[Message], notices: Notices) -> Obj | str | None:
    """The system prompts at the beginning: one content, a part for each block."""
    if len(messages) == 1 and is_from_gemini(raw := messages[0].raw):
        return raw.value
    parts: list[Obj] = []
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, Text):
                parts += [{"text": part.text}] if part.text else []
            else:
                path = f"messages[{index}]"
                notices.say("opaque-dropped", path, "Gemini takes only text as system instruction")
    return {"parts": parts} if parts else None
