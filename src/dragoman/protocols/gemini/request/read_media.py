"""Read images, documents, audio and video of a Gemini request."""

from __future__ import annotations

from typing import Literal

from ....model.messages import Media, Raw
from .keys import GEMINI, Fields

_FILES_API = "https://generativelanguage.googleapis.com/"
_YOUTUBE = ("https://www.youtube.com/", "https://youtube.com/", "https://youtu.be/")
# Not Python's `mimetypes`: its table depends on the machine.
_BY_ENDING = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
    "heic": "image/heic",
    "heif": "image/heif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/markdown",
    "html": "text/html",
    "csv": "text/csv",
    "json": "application/json",
    "wav": "audio/wav",
    "mp3": "audio/mp3",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "aac": "audio/aac",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
}


def read_media(part: Fields) -> Media | None:
    """The image, document, audio or video of a part, if there is one."""
    if (inline := part.child("inlineData")) is not None:
        mime = inline.need_string("mimeType")
        return Media(
            kind=_kind(mime),
            media_type=mime,
            data=inline.need_string("data"),
            name=inline.string("displayName"),
            raw=Raw(GEMINI, part.value),
        )
    if (file := part.child("fileData")) is not None:
        uri = file.need_string("fileUri")
        mime = file.string("mimeType") or guessed_type(uri)
        bound = _is_bound(uri)
        return Media(
            kind=_kind(mime),
            media_type=mime,
            url=None if bound else uri,
            file_id=uri if bound else None,
            name=file.string("displayName"),
            raw=Raw(GEMINI, part.value),
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


def guessed_type(url: str) -> str:
    """Guess the media type from the suffix of a URL; empty if it is unknown."""
    if url.startswith(_YOUTUBE):
        return "video/mp4"
    path = url.partition("?")[0].partition("#")[0]
    return _BY_ENDING.get(path.rpartition(".")[2].lower(), "")
