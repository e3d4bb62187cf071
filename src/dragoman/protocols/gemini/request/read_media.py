"""Pictures, documents, sounds and films of a Gemini request."""

from __future__ import annotations

from typing import Literal

from ....model.messages import Media, Raw
from ...common import inline_media
from .keys import GEMINI, Fields

_FILES_API = "https://generativelanguage.googleapis.com/"
_YOUTUBE = ("https://www.youtube.com/", "https://youtube.com/", "https://youtu.be/")
# Not Python's own table: that one depends on the machine.
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
    """The picture, document, sound or film of a part, if it has one."""
    if (inline := part.child("inlineData")) is not None:
        mime = inline.need_string("mimeType")
        return Media(
            kind=_kind(mime),
            media_type=mime,
            # google-genai writes the alphabet for URLs. Gemini itself gets the part as it came.
            data=inline_media.standard(inline.need_string("data")),
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
    """Files of Google's own stores (`gs://…` and the Files API) mean nothing to anybody else."""
    return not uri.startswith(("http://", "https://")) or uri.startswith(_FILES_API)


def guessed_type(url: str) -> str:
    """The media type of what is behind `url`, by its looks; empty where they say nothing."""
    if url.startswith(_YOUTUBE):
        return "video/mp4"
    path = url.partition("?")[0].partition("#")[0]
    return _BY_ENDING.get(path.rpartition(".")[2].lower(), "")
