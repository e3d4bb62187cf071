"""Reduce a conversation to what Converse supports: other content is dropped with a notice, or refused."""

from __future__ import annotations

from collections.abc import Sequence

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
    ToolResult,
    leading_system,
    plain_text,
)
from ...base import Target
from ...common import inline_media
from ...common.notices import Notices
from ...common.turns import note_prefill
from ..own import goes_back

_OFFICE = "application/vnd.openxmlformats-officedocument."
FORMATS: dict[str, dict[str, str]] = {
    "image": {
        "image/png": "png",
        "image/jpeg": "jpeg",
        "image/jpg": "jpeg",
        "image/gif": "gif",
        "image/webp": "webp",
    },
    "document": {
        "application/pdf": "pdf",
        "text/csv": "csv",
        "text/html": "html",
        "application/msword": "doc",
        "application/vnd.ms-excel": "xls",
        f"{_OFFICE}wordprocessingml.document": "docx",
        f"{_OFFICE}spreadsheetml.sheet": "xlsx",
    },
    "video": {"video/mp4": "mp4", "video/quicktime": "mov", "video/webm": "webm", "video/mpeg": "mpeg"},
    "audio": {
        "audio/mp3": "mp3",
        "audio/mpeg": "mp3",
        "audio/wav": "wav",
        "audio/ogg": "ogg",
        "audio/flac": "flac",
    },
}
"""Converse's name for each media type that it takes (the API's `ImageBlock`, `DocumentBlock`, …)."""


class ContentFilter:
    """Converts, drops or refuses content that Converse does not support. `ContentWriter` writes the rest."""

    def __init__(self, target: Target, notices: Notices) -> None:
        self._target = target
        self._notices = notices

    def split(self, messages: Sequence[Message]) -> tuple[list[Text], list[Message]]:
        """Split the messages: the texts of the leading system prompts, and the conversation after them."""
        leading = leading_system(messages)
        system = [
            part
            for index, message in enumerate(messages[:leading])
            for part in message.parts
            if self._is_text(part, f"messages[{index}]")
        ]
        carried = [self._message(message, leading + at) for at, message in enumerate(messages[leading:])]
        note_prefill(messages, self._notices)
        return [part for part in system if isinstance(part, Text)], [m for m in carried if m.parts]

    def _is_text(self, part: Part, path: str) -> bool:
        if not isinstance(part, Text):
            self._notices.warn("opaque-dropped", path, "a system prompt can only be text")
            return False
        return not _is_blank(part.text)

    def _message(self, message: Message, index: int) -> Message:
        if message.name:
            text = "Converse's messages have no names"
            self._notices.warn("message-name-dropped", f"messages[{index}]", text)
        if message.role in ("system", "developer"):
            return self._moved(message, index)
        kept = [
            self._part(part, f"messages[{index}].parts[{at}]", message.role)
            for at, part in enumerate(message.parts)
        ]
        return Message(message.role, tuple(part for part in kept if part is not None))

    def _moved(self, message: Message, index: int) -> Message:
        # Converse has only the roles `user` and `assistant`, and one system prompt before the conversation.
        # The tags keep the model from taking the text for the user's words.
        text = "Converse has no system messages there: sent as marked user text"
        self._notices.warn("system-moved", f"messages[{index}]", text)
        words = plain_text(message.parts)
        return Message("user", (Text(f"<system>\n{words}\n</system>"),) if words else ())

    def _part(self, part: Part, path: str, role: str) -> Part | None:
        if isinstance(part, Text):
            # "The text field in the ContentBlock object … is blank": a 400, although Converse's own answers
            # may contain blank text (botocore#3525).
            return None if _is_blank(part.text) else self._uncited(part, path)
        if isinstance(part, Thinking):
            return part if goes_back(part.seal, self._target) else None
        if isinstance(part, ToolResult):
            return self._result(part, path)
        # Converse takes images and documents from the user only.
        if isinstance(part, Media) and role == "assistant":
            message = f"a {part.kind} made by a model cannot be sent back"
            self._notices.warn("assistant-media-dropped", path, message)
            return None
        if isinstance(part, Media):
            return self._media(part, path)
        if isinstance(part, Opaque):
            message = f"{part.type or 'a part'} of {part.raw.protocol} has no counterpart"
            self._notices.warn("opaque-dropped", path, message)
            return None
        if isinstance(part, Refusal):
            return None if _is_blank(part.text) else Text(part.text)
        return part

    def _uncited(self, text: Text, path: str) -> Text:
        if not text.citations:
            return text
        self._notices.warn("citations-dropped", path, "citations of another provider cannot be sent")
        return msgspec.structs.replace(text, citations=())

    def _result(self, result: ToolResult, path: str) -> ToolResult:
        parts: list[Text | Media] = []
        for at, part in enumerate(result.parts):
            if isinstance(part, Media):
                parts.append(self._media(part, f"{path}.parts[{at}]"))
            elif not _is_blank(part.text):
                parts.append(self._uncited(part, path))
        return msgspec.structs.replace(result, parts=tuple(parts))

    def _media(self, media: Media, path: str) -> Text | Media:
        """`media` in a form that Converse has a source for: inline, or in S3."""
        if media.kind == "document" and media.media_type not in FORMATS["document"]:
            text = inline_media.text_of(media, path)
            if text is not None:
                return Text(inline_media.titled(media, text), cache=media.cache)
        if media.data is None and not (media.url or "").startswith("s3://"):
            raise BadRequest(
                f"Bedrock fetches a URL only from S3: send the content of the {media.kind}",
                path,
            )
        kind = (
            (media.media_type or inline_media.guessed_type(media.url or "")).lower().partition(";")[0].strip()
        )
        if kind not in FORMATS[media.kind]:
            known = ", ".join(sorted(set(FORMATS[media.kind])))
            raise BadRequest(f"Converse takes {known}, not {media.media_type or 'unknown'}", path)
        return msgspec.structs.replace(media, media_type=kind)


def _is_blank(text: str) -> bool:
    return not text or text.isspace()
