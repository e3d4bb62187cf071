"""Images, documents and audio inside JSON: data URLs, and the parts that Chat and Responses share."""

from __future__ import annotations

import base64
import binascii

from ...model.errors import BadRequest
from ...model.messages import Media

OPENAI = "openai"
"""The provider that stores the files with the `file_id`s of Chat and Responses requests."""

_YOUTUBE = ("https://www.youtube.com/", "https://youtube.com/", "https://youtu.be/")
# Not Python's `mimetypes`: its table depends on files of the machine (`/etc/mime.types`).
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
_OFFICE = "application/vnd.openxmlformats-officedocument."
_ENDINGS = {
    "application/pdf": "pdf",
    "application/msword": "doc",
    "application/rtf": "rtf",
    "application/epub+zip": "epub",
    "application/vnd.ms-excel": "xls",
    "application/vnd.ms-powerpoint": "ppt",
    "application/vnd.oasis.opendocument.text": "odt",
    f"{_OFFICE}wordprocessingml.document": "docx",
    f"{_OFFICE}spreadsheetml.sheet": "xlsx",
    f"{_OFFICE}presentationml.presentation": "pptx",
}
_TEXTUAL = frozenset({"application/json", "application/xml", "application/yaml", "application/x-yaml"})
_TO_STANDARD = str.maketrans("-_", "+/")
IMAGE_DETAILS = ("low", "high", "auto", "original")


def split(url: str) -> tuple[str, str] | None:
    """The media type and the base64 content of a data URL; None for any other URL.

    >>> split("data:image/png;base64,iVBO"), split("https://example.com/a.png")
    (('image/png', 'iVBO'), None)
    """
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head[len("data:") :].split(";")[0], data


def standard(data: str) -> str:
    """Base64 in the standard alphabet and with padding, as every other protocol wants it.

    >>> standard("-_8"), standard("+/8=")
    ('+/8=', '+/8=')
    """
    if "-" in data or "_" in data:
        data = data.translate(_TO_STANDARD)
    return data if len(data) % 4 == 0 else data + "=" * (-len(data) % 4)


def address(media: Media) -> str | None:
    """The URL of `media`: its own, or a data URL with its content."""
    if media.data is None:
        return media.url
    fallback = "image/png" if media.kind == "image" else "application/pdf"
    # `image/jpg` is not a registered media type, but many clients send it.
    type = (media.media_type or fallback).replace("image/jpg", "image/jpeg")
    return f"data:{type};base64,{media.data}"


def text_of(document: Media, path: str) -> str | None:
    """The text of a document; None if it is not a text document."""
    if document.text is not None:
        return document.text
    kind = document.media_type.lower().partition(";")[0].strip()
    if document.data is None or not (kind.startswith("text/") or kind in _TEXTUAL):
        return None
    try:
        return base64.b64decode(document.data).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise BadRequest(f"the {kind} document is not base64 of UTF-8 text", path) from None


def titled(document: Media, words: str) -> str:
    """The text of a document, after its name."""
    return "\n\n".join(filter(None, (document.name, words)))


def file_name(document: Media) -> str:
    """The name of an inline file: OpenAI refuses files without one.

    >>> file_name(Media(kind="document", media_type="application/msword"))
    'document.doc'
    """
    kind = document.media_type.lower().partition(";")[0].strip()
    return document.name or f"document.{_ENDINGS.get(kind, 'pdf' if not kind else 'bin')}"


def is_address(text: str) -> bool:
    """Is this a URL? OpenRouter's clients put the URL of a file in the place of its content."""
    return text.startswith(("https://", "http://"))


def lone_file(media: Media, path: str) -> BadRequest:
    """The error for `media` that has neither content nor a URL."""
    if media.file_id is not None:
        return BadRequest("only the provider that issued a file id knows it: send the content or a URL", path)
    return BadRequest(f"the {media.kind} has neither content nor a URL", path)


def guessed_type(url: str) -> str:
    """Guess the media type from a URL or a file name; empty if it is unknown."""
    if url.startswith(_YOUTUBE):
        # Gemini takes the address of a YouTube video as file data, and requires a media type.
        return "video/mp4"
    path = url.partition("?")[0].partition("#")[0]
    return _BY_ENDING.get(path.rpartition(".")[2].lower(), "")
