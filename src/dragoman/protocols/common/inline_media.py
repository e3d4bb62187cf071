"""Images, documents and audio inside JSON: data URLs, and the parts that Chat and Responses share."""

from __future__ import annotations

from ...model.errors import BadRequest
from ...model.messages import Media
from .fields import Obj

OPENAI = "openai"
"""The provider that stores the files with the `file_id`s of Chat and Responses requests."""

_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}
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


def address(media: Media) -> str | None:
    """The URL of `media`: its own, or a data URL with its content."""
    if media.data is None:
        return media.url
    fallback = "image/png" if media.kind == "image" else "application/pdf"
    return f"data:{media.media_type or fallback};base64,{media.data}"


def openai_audio(audio: Media, path: str) -> Obj:
    """The `input_audio` part of Chat and Responses."""
    format = _AUDIO_FORMATS.get(audio.media_type)
    if format is None or audio.data is None:
        raise BadRequest("OpenAI accepts audio only inline, as wav or mp3: convert it", path)
    return {"type": "input_audio", "input_audio": {"data": audio.data, "format": format}}


def lone_file(media: Media, path: str) -> BadRequest:
    """The error for `media` that has neither content nor a URL."""
    if media.file_id is not None:
        return BadRequest("only the provider that issued a file id knows it: send the content or a URL", path)
    return BadRequest(f"the {media.kind} has neither content nor a URL", path)
