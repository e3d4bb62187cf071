"""Read the `content` of a Chat message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ....model.messages import Media, Opaque, Part, Raw, Refusal, Text
from ...common import inline_media
from ...common.fields import reject
from ...common.typed_json import bad_request, member, members_of
from ..own import NAME
from .wire import (
    TYPES,
    AnyPart,
    AudioPart,
    DocumentPart,
    FilePart,
    ImagePart,
    RefusalPart,
    TextPart,
    VideoPart,
)

_AUDIO_TYPES = {"mp3": "audio/mpeg"}

_decode = msgspec.json.Decoder(AnyPart).decode


def content_parts(content: str | list[msgspec.Raw] | None, where: str, *, required: bool) -> tuple[Part, ...]:
    """Read `content`: a string, an array of parts, or (for some roles) null."""
    # Clients send an empty string beside tool calls for "no text".
    if not content:
        return reject("is required", where, "content") if content is None and required else ()
    if isinstance(content, str):
        return (Text(content),)
    return tuple([read_part(part, f"{where}.content[{at}]") for at, part in enumerate(content)])


def result_parts(content: str | list[msgspec.Raw] | None, where: str) -> tuple[Text | Media, ...]:
    """Read the content of a tool result. Images are not in OpenAI's spec, but servers accept them."""
    parts: list[Text | Media] = []
    for index, part in enumerate(content_parts(content, where, required=True)):
        if not isinstance(part, (Text, Media)):
            reject("is not allowed in a tool's result", f"{where}.content[{index}].type")
        parts.append(part)
    return tuple(parts)


def read_part(raw: msgspec.Raw, where: str) -> Part:
    """Read one part. An unknown type stays opaque."""
    try:
        part = _decode(raw)
    except msgspec.ValidationError as error:
        type: str = member(members_of(raw, where), "type", str, where)
        if type in TYPES:
            raise bad_request(error, where) from None
        return Opaque(Raw(NAME, raw), type)
    return _READERS[part.__class__](part, raw, where)


def _text(part: TextPart, raw: msgspec.Raw, where: str) -> Part:
    return Text(part.text, part.cache)


def _refusal(part: RefusalPart, raw: msgspec.Raw, where: str) -> Part:
    return Refusal(part.refusal)


def _image(part: ImagePart, raw: msgspec.Raw, where: str) -> Part:
    given, at, detail = part.image_url, f"{where}.image_url", None
    if not isinstance(given, str):
        given, at, detail = given.url, f"{at}.url", given.detail
    media_type, data, url = _location(given, at)
    return Media(
        kind="image",
        media_type=media_type,
        data=data,
        url=url,
        detail=detail,
        cache=part.cache,
    )


def _video(part: VideoPart, raw: msgspec.Raw, where: str) -> Part:
    media_type, data, url = _location(part.video_url.url, f"{where}.video_url.url")
    return Media(kind="video", media_type=media_type, data=data, url=url, raw=Raw(NAME, raw))


def _audio(part: AudioPart, raw: msgspec.Raw, where: str) -> Part:
    audio = part.input_audio
    media_type = _AUDIO_TYPES.get(audio.format, f"audio/{audio.format}")
    return Media(kind="audio", media_type=media_type, data=audio.data, cache=part.cache)


def _file(part: FilePart, raw: msgspec.Raw, where: str) -> Part:
    file, cache = part.file, part.cache
    content = file.file_data
    # OpenRouter takes an address in `file_data`. OpenAI does not.
    if content is not None and inline_media.is_address(content):
        own = Raw(NAME, raw)
        return Media(kind="document", url=content, name=file.filename, cache=cache, raw=own)
    if content is not None:
        if not content.startswith("data:"):
            media_type = inline_media.guessed_type(file.filename or "") or "application/pdf"
            content = f"data:{media_type};base64,{content}"
        media_type, data, _ = _location(content, f"{where}.file.file_data")
        return Media(kind="document", media_type=media_type, data=data, name=file.filename, cache=cache)
    if file.file_id is None:
        reject("needs file_data or file_id", f"{where}.file")
    return Media(
        kind="document",
        file_id=file.file_id,
        file_provider=inline_media.OPENAI,
        name=file.filename,
        cache=cache,
        raw=Raw(NAME, raw),
    )


def _document(part: DocumentPart, raw: msgspec.Raw, where: str) -> Part:
    media_type, data, url = _location(part.document_url, f"{where}.document_url")
    return Media(
        kind="document",
        media_type=media_type,
        data=data,
        url=url,
        name=part.document_name,
        cache=part.cache,
        raw=Raw(NAME, raw),
    )


def _location(url: str, where: str) -> tuple[str, str | None, str | None]:
    """Media type, base64 data and URL. A `data:` URL gives the first two."""
    if not url.startswith("data:"):
        return "", None, url
    media_type, data = inline_media.split(url) or reject("expected a base64 data URL", where)
    return media_type, data, None


_READERS: dict[type, Callable[[Any, msgspec.Raw, str], Part]] = {
    TextPart: _text,
    RefusalPart: _refusal,
    ImagePart: _image,
    VideoPart: _video,
    AudioPart: _audio,
    FilePart: _file,
    DocumentPart: _document,
}
