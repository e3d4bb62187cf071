"""Write text, images, documents and audio as the `content` of a Chat message."""

from __future__ import annotations

from typing import Any

from ....model.errors import BadRequest
from ....model.messages import Cache, Media, Raw, Text
from ...common import inline_media
from ...common.cache_breakpoints import openai_mark
from ...common.fields import Obj, is_object
from ..own import is_own
from .shared import Writing

_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}

Content = Any
"""A text, or a part that is already written: an object, or its JSON."""


def content_of(content: list[Content], writing: Writing, *, listed: bool = False) -> str | list[Any]:
    """Write `content`. One text is a string; for servers without arrays, several texts are one, too.

    `listed`: a Chat client sent an array.
    """
    if listed:
        return [_text_part(part, writing) if isinstance(part, Text) else part for part in content]
    if len(content) == 1:
        only = content[0]
        if isinstance(only, Text) and (only.cache is None or writing.compatible):
            return only.text
    parts = [_text_part(part, writing) if isinstance(part, Text) else part for part in content]
    # Some compatible servers accept only a string, unless there are images.
    if not parts or (writing.compatible and all(map(_is_plain, parts))):
        return "\n\n".join(part["text"] for part in parts)
    return parts[0]["text"] if len(parts) == 1 and _is_plain(parts[0]) else parts


def _text_part(text: Text, writing: Writing) -> Obj:
    given = writing.kept(text.extras)
    more = cache_mark(text.cache, writing) if given is None else given
    return {"type": "text", "text": text.text, **more}


def _is_plain(part: Content) -> bool:
    """Is this a text without a cache breakpoint?"""
    return is_object(part) and len(part) == 2 and "text" in part


def drop_citations(writing: Writing, message: int, at: int) -> None:
    """Add a notice that the citations of a text are dropped."""
    reason = "openai-chat does not accept citations"
    writing.notices.warn("citations-dropped", f"messages[{message}].parts[{at}]", reason)


def media_part(part: Media, writing: Writing, where: str) -> Any:
    """Write an image, document or audio. `where` is its neutral path."""
    if is_own(part.raw):
        return given_part(part.raw, writing)
    match part.kind:
        case "image":
            result = _image(part, where)
        case "document":
            result = _document(part, writing, where)
        case "audio":
            result = _audio(part, writing, where)
        case "video":
            raise BadRequest("openai-chat does not accept video", where)
    return {**result, **cache_mark(part.cache, writing)}


def given_part(raw: Raw, writing: Writing) -> Any:
    """A part as a Chat client sent it."""
    return raw.value if writing.own else raw.parsed


def cache_mark(cache: Cache | None, writing: Writing) -> Obj:
    return {} if writing.compatible else openai_mark(cache)


def _image(image: Media, where: str) -> Obj:
    source: Obj = {"url": _address(image, where)}
    if image.detail in inline_media.IMAGE_DETAILS:
        source["detail"] = image.detail
    return {"type": "image_url", "image_url": source}


def _document(document: Media, writing: Writing, where: str) -> Obj:
    if document.context:
        message = "a document's context cannot be sent to openai-chat"
        writing.notices.warn("document-details-dropped", where, message)
    words = inline_media.text_of(document, where)
    if words is not None:
        return {"type": "text", "text": inline_media.titled(document, words)}
    if document.data is None and document.url is not None:
        # OpenAI does not fetch documents. Fetching the address here would let a client reach the gateway's
        # network.
        raise BadRequest("openai-chat accepts documents only inline, not by URL", where)
    file = {"filename": inline_media.file_name(document), "file_data": _address(document, where)}
    return {"type": "file", "file": file}


def _audio(audio: Media, writing: Writing, where: str) -> Obj:
    if writing.target.takes.audio is False:
        raise BadRequest(f"{writing.target.model} does not accept audio", where)
    format = _AUDIO_FORMATS.get(audio.media_type)
    if format is None or audio.data is None:
        raise BadRequest("openai-chat accepts audio only as inline wav or mp3", where)
    return {"type": "input_audio", "input_audio": {"data": audio.data, "format": format}}


def _address(media: Media, where: str) -> str:
    address = inline_media.address(media)
    if address is None:
        raise inline_media.lone_file(media, where)
    return address
