"""A conversation in Gemini's shape: contents of parts, a call's signature on its own part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    plain_text,
)
from ...base import Target
from ...common import call_ids
from ...common.fields import Obj
from ...common.freeform import arguments_object
from ...common.notices import Notices
from ...common.tool_names import ToolNames
from ...common.turns import FAILED_SILENTLY, PLACEHOLDER, note_placeholder, turns
from .keys import is_from_gemini
from .restore import restored, sign_first_call

IDS = call_ids.IdRule(call_ids.ANY.pattern, call_ids.ANY.longest, optional=True)
_SIGNATURES = frozenset({"thoughtSignature", "thought_signature"})


class ContentWriter:
    """Writes the contents of one request."""

    def __init__(self, target: Target, names: ToolNames, notices: Notices) -> None:
        self._names = names
        self._notices = notices
        self._ids = target.ids or IDS
        self._target = target
        self._signs = target.takes.signs_calls
        self._called: dict[str, tuple[str, str]] = {}
        """The ids that the upstream gets for the calls so far, and the names of their functions."""

    def turns(self, messages: Sequence[Message]) -> list[Obj]:
        """Contents that alternate, each turn of calls followed by all their responses, in order."""
        found = turns(messages, self._notices)
        contents = [self._content(turn.role, turn.parts) for turn in found]
        if found[0].role != "assistant":
            return contents
        # Gemini refuses a call that follows neither a user's turn nor a response.
        note_placeholder(self._notices)
        return [{"role": "user", "parts": [{"text": PLACEHOLDER}]}, *contents]

    def one_by_one(self, messages: Sequence[Message]) -> list[Any]:
        """Contents as the client had them, for conversations that came over this very wire."""
        contents: list[Any] = []
        for message in messages:
            if is_from_gemini(message.raw):
                for part in message.parts:
                    if isinstance(part, ToolCall):
                        self._remember(part)
                kept = restored(message.raw, self._target)
                contents += [] if kept is None else [kept]
            else:
                contents.append(self._content(message.role, message.parts))
        return contents

    def _content(self, role: str, parts: Sequence[Part]) -> Obj:
        written: list[Obj] = []
        shown: list[Obj] = []
        """What stands in results, but cannot stand in their responses: it follows behind all of them."""
        for part in parts:
            if isinstance(part, ToolResult):
                written.append(self._response(part, shown))
                continue
            written += shown
            shown = []
            if isinstance(part, Text):
                written.append({"text": part.text})
            elif isinstance(part, ToolCall):
                written.append(self._call(part))
            elif isinstance(part, Thinking):
                _put_thought(written, part)
            else:
                written.append(_other(part))
        written += shown
        if role != "assistant":
            return {"role": "user", "parts": written}
        sign_first_call(written, self._signs)
        return {"role": "model", "parts": written}

    def _remember(self, call: ToolCall) -> tuple[str, str]:
        """A response must repeat the name of the function that was called."""
        id, name = call_ids.for_upstream(call.id, self._ids), self._names.out(call.name, call.namespace)
        self._called[call.id] = id, name
        return id, name

    def _call(self, call: ToolCall) -> Obj:
        id, name = self._remember(call)
        written: Obj = {"id": id, "name": name, "args": arguments_object(call, self._notices)}
        if call.seal is None:
            return {"functionCall": written}
        return {"functionCall": written, "thoughtSignature": call.seal.data}

    def _response(self, result: ToolResult, shown: list[Obj]) -> Obj:
        """A result. Media that may not stand in it is put into `shown`."""
        id, name = self._called.get(result.call_id) or (
            call_ids.for_upstream(result.call_id, self._ids),
            self._names.out(result.name or result.call_id),
        )
        media = [part for part in result.parts if isinstance(part, Media)]
        apart = bool(media) and self._target.takes.media_results is False
        if apart:
            shown += [{"text": f"From the result of {name}:"}, *map(media_part, media)]
        text = plain_text(_pointing(result.parts) if apart else result.parts)
        if result.is_error and not text:
            text = FAILED_SILENTLY  # an empty error is none
        written: Obj = {
            "id": id,
            "name": name,
            "response": {"error" if result.is_error else "output": text},
        }
        if media and not apart:
            written["parts"] = list(map(media_part, media))
        return {"functionResponse": written}


def _pointing(parts: Sequence[Text | Media]) -> list[Text]:
    """`parts` with words in place of media."""
    return [p if isinstance(p, Text) else Text(f"[{p.kind}: after the results]") for p in parts]


def _put_thought(written: list[Obj], thought: Thinking) -> None:
    """A thought; or, where it has no text, the signature of the part before it."""
    seal = thought.seal
    if thought.text or seal is None:
        signature = {} if seal is None else {"thoughtSignature": seal.data}
        written.append({"text": thought.text, "thought": True, **signature})
        return
    if not written or "thoughtSignature" in written[-1]:
        written.append({"text": ""})
    written[-1]["thoughtSignature"] = seal.data


def _other(part: Media | Opaque | Refusal) -> Obj:
    if isinstance(part, Media):
        return media_part(part)
    return dict(part.raw.value) if isinstance(part, Opaque) else {"text": part.text}


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
