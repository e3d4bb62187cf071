"""Write a conversation as Gemini's `contents`. The signature of a call is on the same part as the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Refusal,
    Search,
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
from ..own import is_own
from .restore import restored, sign_first_call

IDS = call_ids.IdRule(call_ids.ANY.pattern, call_ids.ANY.max_length, optional=True)
_SIGNATURES = frozenset({"thoughtSignature", "thought_signature"})


class ContentWriter:
    """Writes messages as `contents`. Remembers calls, because their responses need the function's name."""

    def __init__(self, target: Target, names: ToolNames, notices: Notices) -> None:
        self._names = names
        self._notices = notices
        self._ids = target.ids or IDS
        self._target = target
        self._signs = target.takes.signs_calls
        self._called: dict[str, tuple[str, str]] = {}
        """For each call so far: its id for the upstream, and the name of its function."""

    def turns(self, messages: Sequence[Message]) -> list[Obj]:
        """Write alternating contents. All responses follow their calls in one content, in the same order.

        Gemini refuses a content with fewer responses than the content before it has calls (eino-ext#571).
        """
        found = turns(messages, self._notices)
        contents = [self._content(turn.role, turn.parts) for turn in found]
        if found[0].role != "assistant":
            return contents
        # Gemini refuses a call that follows neither a user's turn nor a response.
        note_placeholder(self._notices)
        return [{"role": "user", "parts": [{"text": PLACEHOLDER}]}, *contents]

    def one_by_one(self, messages: Sequence[Message]) -> list[Any]:
        """Write one content per message, for the conversation of a Gemini client."""
        contents: list[Any] = []
        for message in messages:
            if is_own(message.raw):
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
        """Media of results that the model does not take inside a response. It follows after all responses:
        between them, it would separate the responses of parallel calls."""
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
            elif not isinstance(part, Search):  # readers turn a search into a call and its result
                written.append(_other(part))
        written += shown
        if role != "assistant":
            return {"role": "user", "parts": written}
        sign_first_call(written, self._signs)
        return {"role": "model", "parts": written}

    def _remember(self, call: ToolCall) -> tuple[str, str]:
        """Remember id and name of a call: Gemini requires the function's name in the response, too."""
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
        """Write a result. Media that the model does not take in a response is added to `shown`."""
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
            text = FAILED_SILENTLY  # the model would read `{"error": ""}` as a success
        written: Obj = {
            "id": id,
            "name": name,
            # By Google's convention, `output` holds a result and `error` a failure.
            "response": {"error" if result.is_error else "output": text},
        }
        if media and not apart:
            written["parts"] = list(map(media_part, media))
        return {"functionResponse": written}


def _pointing(parts: Sequence[Text | Media]) -> list[Text]:
    """`parts` with a text that stands for each image or file."""
    return [p if isinstance(p, Text) else Text(f"[{p.kind}: after the results]") for p in parts]


def _put_thought(written: list[Obj], thought: Thinking) -> None:
    """Write a thought. A thought without text is the signature of the part before it.

    Gemini sends a late signature like that: on the last text, or on an extra part with empty text.
    """
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
    if is_own(media.raw):
        return {k: v for k, v in media.raw.value.items() if k not in _SIGNATURES}
    if media.url is not None:
        kind = {"mimeType": media.media_type} if media.media_type else {}
        return {"fileData": {**kind, "fileUri": media.url}}
    return {"inlineData": {"mimeType": media.media_type, "data": media.data or ""}}


def system_instruction(messages: Sequence[Message], notices: Notices) -> Obj | str | None:
    """Write the leading system prompts as one content with a part for each block."""
    if len(messages) == 1 and is_own(raw := messages[0].raw):
        return raw.value
    parts: list[Obj] = []
    for index, message in enumerate(messages):
        for part in message.parts:
            if isinstance(part, Text):
                parts += [{"text": part.text}] if part.text else []
            else:
                path = f"messages[{index}]"
                notices.warn("opaque-dropped", path, "Gemini accepts only text as system instruction")
    return {"parts": parts} if parts else None
