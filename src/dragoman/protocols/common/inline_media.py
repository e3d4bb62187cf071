"""Pictures, documents and sounds inside JSON: data URLs, and what OpenAI's wires share about them."""

from __future__ import annotations

from ...model.errors import BadRequest
from ...model.messages import Media
from .fields import Obj

OPENAI = "openai"
"""Who keeps the files that Chat and Responses requests name by their ids."""

_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}
IMAGE_DETAILS = ("low", "high", "auto", "original")


def split(url: str) -> tuple[str, str] | None:
    """The media type and the base64 content of a data URL; None for any other.

    >>> split("data:image/png;base64,iVBO"), split("https://example.com/a.png")
    (('image/png', 'iVBO'), None)
    """
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return head[len("data:") :].split(";")[0], data


def address(media: Media) -> str | None:
    """Where `media` is: at its own address, or in a data URL."""
    if media.data is None:
        return media.url
    fallback = "image/png" if media.kind == "image" else "application/pdf"
    return f"data:{media.media_type or fallback};base64,{media.data}"


def openai_audio(audio: Media, path: str) -> Obj:
    """The `input_audio` part of Chat and Responses."""
    format = _AUDIO_FORMATS.get(audio.media_type)
    if format is None or audio.data is None:
        raise BadRequest("OpenAI takes sound only as inline wav or mp3", path)
    return {"type": "input_audio", "input_audio": {"data": audio.data, "format": format}}


def lone_file(media: Media, path: str) -> BadRequest:
    """Why `media`, which has neither content nor an address, cannot be sent."""
    if media.file_id is not None:
        return BadRequest("a file id is known only to the provider that gave it", path)
    return BadRequest(f"the {media.kind} has neither content nor address", path)
