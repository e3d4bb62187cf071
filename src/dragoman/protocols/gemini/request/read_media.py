"""Read images, documents, audio and video of a Gemini request."""

from __future__ import annotations

from typing import Literal

from ....model.messages import Media, Raw
from ...common import inline_media
from ..own import NAME
from .keys import Fields

_FILES_API = "https://generativelanguage.googleapis.com/"


def read_media(part: Fields) -> Media | None:
    """The image, document, audio or video of a part, if there is one."""
    if (inline := part.child("inlineData")) is not None:
        mime = inline.need_string("mimeType")
        return Media(
            kind=_kind(mime),
            media_type=mime,
            # google-genai writes the alphabet for URLs. Gemini itself gets the part as it came.
            data=inline_media.standard(inline.need_string("data")),
            name=inline.string("displayName"),
            raw=Raw(NAME, part.value),
        )
    if (file := part.child("fileData")) is not None:
        uri = file.need_string("fileUri")
        mime = file.string("mimeType") or inline_media.guessed_type(uri)
        bound = _is_bound(uri)
        return Media(
            kind=_kind(mime),
            media_type=mime,
            url=None if bound else uri,
            file_id=uri if bound else None,
            name=file.string("displayName"),
            raw=Raw(NAME, part.value),
        )
    return None


def _kind(mime: str) -> Literal["image", "document", "audio", "video"]:
    match mime.split("/", 1)[0]:
        case "image":
            return "image"
        case "audio":
            return "audio"
        case "video":
            return "video"
        case _:
            return "document"


def _is_bound(uri: str) -> bool:
    """Is this a file in Google's storage (`gs://…` or the Files API)? Other providers cannot read it."""
    return not uri.startswith(("http://", "https://")) or uri.startswith(_FILES_API)
