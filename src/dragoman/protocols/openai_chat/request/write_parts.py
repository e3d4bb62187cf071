"""Words, pictures, documents and sounds as parts of a Chat message's `content`."""

from __future__ import annotations

from ....errors import BadRequest
from ....messages import Cache, Media, Text
from ... import inline
from ...breakpoints import openai_mark
from ...fields import Obj
from .shared import Writing, is_own

_TEXT = frozenset({"type", "text"})


def content_of(parts: list[Obj], writing: Writing) -> str | list[Obj]:
    """One text is a string, as everybody writes it; so are several for servers without arrays."""
    if len(parts) == 1:
        return parts[0]["text"] if parts[0].keys() == _TEXT else parts
    if not parts or (writing.compatible and all(part.keys() == _TEXT for part in parts)):
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
            result = inline.openai_audio(part, where)
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
    return {} if writing.compatible else openai_mark(cache)


def _image(image: Media, where: str) -> Obj:
    source: Obj = {"url": _address(image, where)}
    if image.detail in inline.IMAGE_DETAILS:
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
    data = _address(document, where)
    return {"type": "file", "file": {"filename": name, "file_data": data}}


def _address(media: Media, where: str) -> str:
    address = inline.address(media)
    if address is None:
        raise inline.lone_file(media, where)
    return address
