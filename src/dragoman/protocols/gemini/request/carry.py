"""What of a conversation Gemini can carry: neutral messages in, neutral messages to write out.

Everything that is moved, dropped or refused is decided here, while each part still has its place in
the client's conversation; `write_contents` then only gives it Gemini's shape.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from ....errors import BadRequest
from ....messages import (
    Media,
    Message,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    leading_system,
    plain_text,
)
from ...base import Target
from ...notices import Notices
from ...turns import note_prefill
from .keys import is_from_gemini
from .read_media import guessed_type
from .restore import is_own


def leading_prompts(messages: Sequence[Message]) -> int:
    """How many messages at the beginning are system prompts that stand apart."""
    if not messages:
        raise BadRequest("there is no message", "messages")
    # Gemini answers contents only: system prompts alone are no conversation.
    return min(leading_system(messages), len(messages) - 1)


def refuse_nothing(conversation: Sequence[object]) -> None:
    """There must be something to answer."""
    if not conversation:
        raise BadRequest("nothing of the conversation can be sent to Gemini", "messages")


class Carrier:
    """Prepares the messages of one request."""

    def __init__(self, target: Target, notices: Notices) -> None:
        self._target = target
        self._notices = notices

    def split(self, messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
        """The system prompts at the beginning, and the conversation after them."""
        leading = leading_prompts(messages)
        conversation = self.messages(messages, range(leading, len(messages)))
        refuse_nothing(conversation)
        if not is_from_gemini(messages[-1].raw):
            note_prefill(messages, self._notices)
        return list(messages[:leading]), conversation

    def messages(self, messages: Sequence[Message], places: range) -> list[Message]:
        """Those at `places` of which anything is left."""
        carried = (self.message(messages[index], index) for index in places)
        return [message for message in carried if message.parts]

    def message(self, message: Message, index: int) -> Message:
        """One message of the conversation, without what cannot go with it."""
        path = f"messages[{index}]"
        if message.role in ("system", "developer"):
            return self._moved(message, path)
        if message.name:
            self._notices.say("message-name-dropped", path, "Gemini's messages have no names")
        parts = [self._part(p, f"{path}.parts[{i}]") for i, p in enumerate(message.parts)]
        kept = [p for p in parts if p is not None]
        return Message(message.role, tuple(_without_empty(kept)), raw=message.raw)

    def _moved(self, message: Message, path: str) -> Message:
        self._notices.say(
            "system-moved", path, "Gemini has no system messages there: sent as marked user text"
        )
        text = plain_text(message.parts)
        parts = (Text(f"<system>\n{text}\n</system>"),) if text else ()
        return Message("user", parts)

    def _part(self, part: Part, path: str) -> Part | None:
        match part:
            case Text():
                return self._text(part, path)
            case Refusal(text=text):
                return Text(text)
            case Media():
                return self.media(part, path)
            case Thinking(seal=seal):
                # Foreign reasoning is never fed back, not even as visible text.
                return part if is_own(seal, self._target) else None
            case ToolCall(seal=seal):
                own = is_own(seal, self._target)
                return part if own or seal is None else msgspec.structs.replace(part, seal=None)
            case ToolResult():
                return self._result(part, path)
            case Opaque():
                return self._opaque(part, path)

    def _text(self, part: Text, path: str) -> Text:
        if part.citations:
            self._notices.say("citations-dropped", path, "Gemini takes no citations back")
        return part

    def _result(self, result: ToolResult, path: str) -> ToolResult:
        parts = [
            self.media(p, f"{path}.parts[{i}]") if isinstance(p, Media) else p
            for i, p in enumerate(result.parts)
        ]
        return msgspec.structs.replace(result, parts=tuple(parts))

    def _opaque(self, part: Opaque, path: str) -> Opaque | None:
        if is_from_gemini(part.raw):
            return part
        kind = part.type or "part"
        self._notices.say("opaque-dropped", path, f"{kind} of {part.raw.protocol} means nothing to Gemini")
        return None

    def media(self, media: Media, path: str) -> Media:
        """`media` as Gemini takes it: with its type, and inline or by an address."""
        if is_from_gemini(media.raw):
            return media
        if media.file_id is not None:
            raise BadRequest("Gemini has no files of other providers", f"{path}.file_id")
        if media.name or media.context:
            self._notices.say(
                "document-details-dropped", path, "Gemini takes no title or context of a document"
            )
        if media.text is not None:
            data = base64.b64encode(media.text.encode("utf-8", "replace")).decode()
            return Media(kind=media.kind, media_type="text/plain", data=data)
        kind = media.media_type or guessed_type(media.url or "")
        if not kind:
            raise BadRequest("Gemini must be told the media type", f"{path}.media_type")
        return Media(kind=media.kind, media_type=kind, data=media.data, url=media.url)


def _without_empty(parts: list[Part]) -> list[Part]:
    """Gemini refuses empty text, unless it is there to carry a signature."""
    return [
        part
        for part, following in zip_longest(parts, parts[1:])
        if not (isinstance(part, Text) and not part.text and not _signs(following))
    ]


def _signs(part: Part | None) -> bool:
    return isinstance(part, Thinking) and not part.text
