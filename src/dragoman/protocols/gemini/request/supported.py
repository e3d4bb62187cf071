"""Reduce a conversation to what Gemini supports: neutral messages in, neutral messages out.

This module decides what is moved, dropped or refused, while each part still has its position in the client's
conversation. `write_contents` then only writes Gemini's form.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from itertools import zip_longest

import msgspec

from ....model.errors import BadRequest
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
    leading_system,
    plain_text,
)
from ...base import Target
from ...common.inline_media import guessed_type
from ...common.notices import Notices
from ...common.turns import note_prefill
from ..own import goes_back, is_own, is_own_message


class ContentFilter:
    """Converts, drops or refuses the content of one request that Gemini does not support."""

    def __init__(self, target: Target, notices: Notices) -> None:
        self._target = target
        self._notices = notices

    def split(self, messages: Sequence[Message]) -> tuple[list[Message], list[Message]]:
        """Split the messages: the leading system prompts, and the conversation after them."""
        if not messages:
            raise BadRequest("there is no message", "messages")
        # Gemini requires `contents`: a request with only system prompts has none.
        leading = min(leading_system(messages), len(messages) - 1)
        conversation = [
            carried
            for index, message in enumerate(messages[leading:], leading)
            if (carried := message if is_own(message.raw) else self._message(message, index)) is not None
        ]
        if not conversation:
            raise BadRequest("nothing of the conversation can be sent to Gemini", "messages")
        if not is_own_message(messages[-1]):
            note_prefill(messages, self._notices)
        return list(messages[:leading]), conversation

    def _message(self, message: Message, index: int) -> Message | None:
        """One message without the parts that Gemini does not support. None: nothing of it is left."""
        if is_own(message.extras):
            filtered = (self._part(part, index, at) for at, part in enumerate(message.parts))
            left = tuple([part for part in filtered if part is not None])
            return msgspec.structs.replace(message, parts=left) if left else None
        if message.role in ("system", "developer"):
            return self._moved(message, index)
        if message.name:
            text = "Gemini's messages have no names"
            self._notices.warn("message-name-dropped", f"messages[{index}]", text)
        parts: list[Part] = []
        blank = False
        for at, part in enumerate(message.parts):
            kept = part
            if isinstance(part, Text):
                blank = blank or not part.text
                if part.citations:
                    path = _path(index, at)
                    self._notices.warn("citations-dropped", path, "Gemini does not accept citations")
            else:
                kept = self._part(part, index, at)
            if kept is not None:
                parts.append(kept)
        left = _without_blanks(parts) if blank else parts
        return Message(message.role, tuple(left)) if left else None

    def _moved(self, message: Message, index: int) -> Message | None:
        self._notices.warn(
            "system-moved",
            f"messages[{index}]",
            "Gemini has no system messages there: sent as marked user text",
        )
        # The tags keep the model from taking the text for the user's words. Moving it into
        # `systemInstruction` would change the order, and invalidate the prompt cache.
        text = plain_text(message.parts)
        return Message("user", (Text(f"<system>\n{text}\n</system>"),)) if text else None

    def _part(self, part: Part, index: int, at: int) -> Part | None:
        if isinstance(part, ToolResult):
            return self._result(part, index, at)
        if isinstance(part, ToolCall):
            foreign = part.seal is not None and not goes_back(part.seal, self._target)
            return msgspec.structs.replace(part, seal=None) if foreign else part
        if isinstance(part, Thinking):
            # The reasoning of another model is never sent, not even as text.
            as_it_came = part.seal is None and is_own(part.extras)
            return part if as_it_came or goes_back(part.seal, self._target) else None
        if isinstance(part, Media):
            return self._media(part, _path(index, at))
        if isinstance(part, Opaque):
            return self._opaque(part, _path(index, at))
        return Text(part.text) if isinstance(part, Refusal) else part

    def _result(self, result: ToolResult, index: int, at: int) -> ToolResult:
        if not any(isinstance(part, Media) for part in result.parts):
            return result
        parts = [
            self._media(part, f"{_path(index, at)}.parts[{i}]") if isinstance(part, Media) else part
            for i, part in enumerate(result.parts)
        ]
        return msgspec.structs.replace(result, parts=tuple(parts))

    def _opaque(self, part: Opaque, path: str) -> Opaque | None:
        if is_own(part.raw):
            return part
        kind = part.type or "part"
        self._notices.warn("opaque-dropped", path, f"Gemini does not support {kind} of {part.raw.protocol}")
        return None

    def _media(self, media: Media, path: str) -> Media:
        """`media` in a form that Gemini accepts: with a media type, inline or by URL."""
        if is_own(media.raw):
            return media
        if media.file_id is not None:
            raise BadRequest("Gemini has no files of other providers", f"{path}.file_id")
        if media.name or media.context:
            self._notices.warn(
                "document-details-dropped", path, "Gemini does not accept a title or context of a document"
            )
        if media.text is not None:
            data = base64.b64encode(media.text.encode("utf-8", "replace")).decode()
            return Media(kind=media.kind, media_type="text/plain", data=data)
        kind = media.media_type or guessed_type(media.url or "") or guessed_type(media.name or "")
        if not kind and media.kind == "document":
            kind = "application/pdf"  # OpenAI's file parts have no media type, and nearly all are PDF
        if not kind and media.url is None:
            raise BadRequest("Gemini requires the media type", f"{path}.media_type")
        # The address of a page or of an image service does not tell the type. Gemini asks its server.
        return Media(kind=media.kind, media_type=kind, data=media.data, url=media.url)


def _path(index: int, at: int) -> str:
    """The path of a part, computed only for errors."""
    return f"messages[{index}].parts[{at}]"


def _without_blanks(parts: list[Part]) -> list[Part]:
    """Remove empty text, which Gemini refuses, unless it carries a signature."""
    return [
        part
        for part, following in zip_longest(parts, parts[1:])
        if not (isinstance(part, Text) and not part.text and not _signs(following))
    ]


def _signs(part: Part | None) -> bool:
    return isinstance(part, Thinking) and not part.text
