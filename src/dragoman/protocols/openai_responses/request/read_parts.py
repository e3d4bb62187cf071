"""Read the content parts of a Responses message, or of a tool's output."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ....model.messages import Citation, Extras, Media, Opaque, Part, Raw, Refusal, Text
from ...common import inline_media
from ...common.fields import Obj, integer, reject, string
from ...common.typed_json import bad_request, member, members_of, value
from ..own import NAME
from .wire import (
    PART_TYPES,
    TEXT_TYPES,
    AnyPart,
    AnyText,
    AudioPart,
    FilePart,
    ImagePart,
    InputText,
    OutputText,
    PlainText,
    RefusalPart,
)

_decode = msgspec.json.Decoder(AnyPart).decode
_encode = msgspec.json.Encoder().encode


def output_part(raw: msgspec.Raw, where: str, *, keep: bool) -> Text | Media:
    """Read one part of a tool's output. `keep`: the members of a text are not kept elsewhere."""
    part = read_part(raw, where)
    if isinstance(part, Media):
        return part
    if not isinstance(part, Text):
        # A tool result cannot contain an `Opaque`, so an unknown part becomes JSON text.
        part = Text(_encode(value(raw, where)).decode())
    return msgspec.structs.replace(part, extras=Extras(NAME, _unknown(raw, where))) if keep else part


def _unknown(raw: msgspec.Raw, where: str) -> Obj:
    """The members of a text that its neutral form does not hold. Of a part that is no text, all members."""
    members = members_of(raw, where)
    kind: str = value(members["type"], where)
    if kind not in TEXT_TYPES:
        return {**members}
    understood = ("type", "text") if kind == "input_text" else ("text",)
    return {key: given for key, given in members.items() if key not in understood}


def read_part(raw: msgspec.Raw, where: str) -> Part:
    """Read one part. An unknown type stays opaque."""
    try:
        part = _decode(raw)
    except msgspec.ValidationError as error:
        kind: str = member(members_of(raw, where), "type", str, where)
        if kind in PART_TYPES:
            raise bad_request(error, where) from None
        return Opaque(Raw(NAME, raw), kind)
    return _READERS[part.__class__](part, raw, where)


def _text(part: AnyText, raw: msgspec.Raw, where: str) -> Text:
    return read_text(part, where)


def read_text(part: AnyText, where: str) -> Text:
    """Read text, perhaps with citations."""
    notes = enumerate(part.annotations or ())
    citations = tuple([_citation(note, f"{where}.annotations[{at}]") for at, note in notes])
    return Text(part.text, part.prompt_cache_breakpoint, citations)


def _citation(annotation: Obj, where: str) -> Citation:
    raw = Raw(NAME, annotation)
    if annotation.get("type") != "url_citation":
        return Citation(title=string(annotation, "filename", where) or "", raw=raw)
    return Citation(
        url=string(annotation, "url", where) or "",
        title=string(annotation, "title", where) or "",
        start=integer(annotation, "start_index", where),
        end=integer(annotation, "end_index", where),
        raw=raw,
    )


def _refusal(part: RefusalPart, raw: msgspec.Raw, where: str) -> Refusal:
    return Refusal(part.refusal)


def _image(part: ImagePart, raw: msgspec.Raw, where: str) -> Media:
    if not part.image_url and not part.file_id:
        reject("image_url or file_id is required", where)
    media_type, data = _inline(part.image_url)
    return Media(
        kind="image",
        media_type=media_type,
        data=data,
        url=None if data is not None else part.image_url,
        file_id=part.file_id,
        file_provider=inline_media.OPENAI if part.file_id else "",
        detail=part.detail,
        cache=part.prompt_cache_breakpoint,
        raw=Raw(NAME, raw),
    )


def _file(part: FilePart, raw: msgspec.Raw, where: str) -> Media:
    content = part.file_data
    if not content and not part.file_url and not part.file_id:
        reject("file_data, file_url or file_id is required", where)
    url = part.file_url
    if content and inline_media.is_address(content):
        content, url = None, content
    media_type, data = _inline(content)
    if content and data is None:
        # Base64 without a data URL: the API treats it as PDF, unless the file name shows another type.
        media_type, data = inline_media.guessed_type(part.filename or "") or "application/pdf", content
    return Media(
        kind="document",
        media_type=media_type,
        data=data,
        url=url,
        file_id=part.file_id,
        file_provider=inline_media.OPENAI if part.file_id else "",
        name=part.filename,
        detail=part.detail,
        cache=part.prompt_cache_breakpoint,
        raw=Raw(NAME, raw),
    )


def _audio(part: AudioPart, raw: msgspec.Raw, where: str) -> Media:
    audio = part.input_audio
    return Media(kind="audio", media_type=f"audio/{audio.format}", data=audio.data, raw=Raw(NAME, raw))


def _inline(url: str | None) -> tuple[str, str | None]:
    """The media type and the base64 content of a data URL; no content for any other URL."""
    return inline_media.split(url or "") or ("", None)


_READERS: dict[type, Callable[[Any, msgspec.Raw, str], Part]] = {
    InputText: _text,
    OutputText: _text,
    PlainText: _text,
    RefusalPart: _refusal,
    ImagePart: _image,
    FilePart: _file,
    AudioPart: _audio,
}
