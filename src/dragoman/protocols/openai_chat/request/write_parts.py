"""Words, pictures, documents and sounds as parts of a Chat message's `content`."""

from __future__ import annotations

from ....errors import BadRequest
from ....messages import Cache, Media, Text
from ...fields import Obj
from .shared import Writing, is_own

_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}
_DETAILS = ("auto", "low", "high", "original")
# A breakpoint lives at least this long; half an hour is the default and need not be said.
_LIFETIMES = {"1h": "12h", "12h": "12h"}


def content_of(parts: list[Obj], writing: Writing) -> str | list[Obj]:
    """One text is a string, as everybody writes it; so are several for servers without arrays."""
    plain = all(part.keys() == {"type", "text"} for part in parts)
    if plain and (len(parts) <= 1 or writing.compatible):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def media_part(part: Media, writing: Writing, where: str) -> Obj:
    """`where` names the part in neutral words."""
    if part.raw is not None and is_own(part.raw):
        return part.raw.value
    match part.kind:
        case "image":
            result = _image(part, where)
        case "document":
            result = _document(part, writing, where)
        case "audio":
            result = _audio(part, where)
        case "video":
            raise BadRequest("openai-chat takes no video", where)
    return {**result, **cache_mark(part.cache, writing)}


def text_part(text: Text, writing: Writing, where: str) -> Obj:
    if text.citations:
        writing.notices.say(
            "citations-dropped", where, "openai-chat has no citations in the messages it is sent"
        )
    return {"type": "text", "text": text.text, **cache_mark(text.cache, writing)}


def cache_mark(cache: Cache | None, writing: Writing) -> Obj:
    if cache is None or writing.compatible:
        return {}
    lifetime = _LIFETIMES.get(cache.ttl or "")
    mark: Obj = {"mode": "explicit"}
    return {"prompt_cache_breakpoint": mark | ({"ttl": lifetime} if lifetime else {})}


def _image(image: Media, where: str) -> Obj:
    source: Obj = {"url": _address(image, "image/png", where)}
    if image.detail in _DETAILS:
        source["detail"] = image.detail
    return {"type": "image_url", "image_url": source}


def _document(document: Media, writing: Writing, where: str) -> Obj:
    if document.context:
        message = "a document's context cannot be sent to openai-chat"
        writing.notices.say("document-details-dropped", where, message)
    if document.text is not None:
        words = "\n\n".join(filter(None, (document.name, document.text)))
        return {"type": "text", "text": words}
    if document.data is None and document.url is not None:
        raise BadRequest("openai-chat takes documents inline only, not by address", where)
    # Inline files are refused without a name.
    name = document.name or "document.pdf"
    data = _address(document, "application/pdf", where)
    return {"type": "file", "file": {"filename": name, "file_data": data}}


def _audio(audio: Media, where: str) -> Obj:
    sort = _AUDIO_FORMATS.get(audio.media_type)
    if sort is None or audio.data is None:
        raise BadRequest("openai-chat takes sound only as inline wav or mp3", where)
    return {"type": "input_audio", "input_audio": {"data": audio.data, "format": sort}}


def _address(media: Media, fallback: str, where: str) -> str:
    if media.data is not None:
        return f"data:{media.media_type or fallback};base64,{media.data}"
    if media.url is not None:
        return media.url
    if media.file_id is not None:
        raise BadRequest("a file id is known only to the provider that gave it", where)
    raise BadRequest(f"the {media.kind} has neither content nor address", where)
