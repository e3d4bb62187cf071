"""What of a conversation Anthropic can take; the rest is dropped with a notice, or refused."""

from __future__ import annotations

import base64
import binascii

import msgspec

from ....errors import BadRequest
from ....messages import (
    Media,
    Message,
    Opaque,
    Part,
    Raw,
    Refusal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ...base import Target
from ...notices import Notices
from ..decoder import NAME
from .restore import goes_back

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_TEXTUAL = frozenset({"application/json", "application/xml", "application/yaml"})
_PDF = "application/pdf"


def is_own(raw: Raw | None) -> bool:
    return raw is not None and raw.protocol == NAME


class Carry:
    """Goes through a conversation's messages. What it lets pass, the block writer can write."""

    def __init__(self, target: Target, notices: Notices) -> None:
        self._target = target
        self._notices = notices

    def message(self, message: Message, index: int) -> Message:
        """One message without what cannot go with it; perhaps without any parts."""
        path = f"messages[{index}]"
        if message.name:
            self._notices.say("message-name-dropped", path, "Anthropic's messages have no names")
        if message.role in ("system", "developer"):
            return Message("system", tuple(self._system(message, path)))
        parts = (self._part(part, f"{path}.parts[{i}]", message.role) for i, part in enumerate(message.parts))
        return Message(message.role, tuple(p for p in parts if p is not None))

    def _system(self, message: Message, path: str) -> list[Part]:
        kept: list[Part] = []
        for part in message.parts:
            if isinstance(part, Text) and part.text.strip():
                kept.append(self._uncited(part, path))
            elif isinstance(part, Opaque) and is_own(part.raw):
                kept.append(part)
            elif not isinstance(part, Text):
                self._notices.say("opaque-dropped", path, "a system prompt can only be text")
        return kept

    def _part(self, part: Part, path: str, role: str) -> Part | None:
        match part:
            case Text() | Refusal():
                # Anthropic refuses blocks without words, though it may write some itself.
                return self._words(part, path) if part.text.strip() else None
            case Media():
                return self._media(part, path, role)
            case Thinking(_, seal):
                return part if goes_back(seal, self._target) else None
            case ToolCall():
                return part
            case ToolResult():
                return self._result(part, path)
            case Opaque():
                return self._opaque(part, path)

    def _words(self, part: Text | Refusal, path: str) -> Text:
        return self._uncited(part, path) if isinstance(part, Text) else Text(part.text)

    def _uncited(self, text: Text, path: str) -> Text:
        """A citation of Anthropic's is bound to its own search; others cannot be made into one."""
        own = tuple(citation for citation in text.citations if is_own(citation.raw))
        if own == text.citations:
            return text
        self._notices.say("citations-dropped", path, "sources found elsewhere cannot be cited")
        return msgspec.structs.replace(text, citations=own)

    def _media(self, media: Media, path: str, role: str) -> Media | None:
        if role == "assistant" and not is_own(media.raw):
            message = f"a {media.kind} made by a model cannot be sent back"
            self._notices.say("assistant-media-dropped", path, message)
            return None
        return sendable(media, path)

    def _result(self, result: ToolResult, path: str) -> ToolResult:
        if is_own(result.raw):
            return result
        parts: list[Text | Media] = []
        for index, part in enumerate(result.parts):
            if isinstance(part, Media):
                parts.append(sendable(part, f"{path}.parts[{index}]"))
            elif part.text.strip():
                parts.append(self._uncited(part, path))
        return msgspec.structs.replace(result, parts=tuple(parts))

    def _opaque(self, part: Opaque, path: str) -> Opaque | None:
        if is_own(part.raw):
            return part
        kind = part.type or "a part"
        message = f"{kind} of {part.raw.protocol} has no counterpart"
        self._notices.say("opaque-dropped", path, message)
        return None


def sendable(media: Media, path: str) -> Media:
    """`media` in a form Anthropic has a source for, or a refusal."""
    if is_own(media.raw):
        return media
    if media.kind not in ("image", "document"):
        raise BadRequest(f"Anthropic takes no {media.kind}", path)
    if media.data is None and media.text is None and media.url is None:
        # Also what is known by a file id: that is its provider's alone.
        raise BadRequest("a file of another provider cannot be sent to Anthropic", path)
    if media.url is not None and not media.url.startswith(("https://", "http://")):
        raise BadRequest(f"Anthropic cannot fetch {media.url[:60]!r}", path)
    if media.data is None:
        return media
    return _image(media, path) if media.kind == "image" else _document(media, media.data, path)


def _image(media: Media, path: str) -> Media:
    # `image/jpg` is no media type, but it is what many write.
    type = media.media_type.lower().replace("image/jpg", "image/jpeg")
    if type not in _IMAGES:
        known = ", ".join(sorted(_IMAGES))
        raise BadRequest(f"Anthropic takes {known}, not {media.media_type or 'unknown'}", path)
    return msgspec.structs.replace(media, media_type=type)


def _document(media: Media, data: str, path: str) -> Media:
    type = media.media_type.lower().partition(";")[0].strip()
    if type == _PDF:
        return msgspec.structs.replace(media, media_type=_PDF)
    if type.startswith("text/") or type in _TEXTUAL:
        try:
            text = base64.b64decode(data).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise BadRequest(f"the {type} document is not base64 of UTF-8 text", path) from None
        return msgspec.structs.replace(media, data=None, text=text)
    raise BadRequest(f"Anthropic takes {_PDF} and text, not {media.media_type or 'unknown'}", path)
