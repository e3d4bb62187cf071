"""What stands in a Chat message's `content`, read."""

from __future__ import annotations

from collections.abc import Callable

from ....messages import Cache, Media, Opaque, Part, Raw, Refusal, Text
from ... import inline
from ...fields import Obj, as_object, is_array, join, mapping, need_string, objects, reject, string
from .shared import NAME

_AUDIO_TYPES = {"mp3": "audio/mpeg"}


def content_parts(message: Obj, where: str, *, required: bool) -> tuple[Part, ...]:
    """`content`, which is a string, an array of parts, or (for some roles) nothing."""
    content = message.get("content")
    if content is None and required:
        reject("is required", where, "content")
    # An empty string is how clients write "nothing" beside tool calls.
    if content is None or content == "":
        return ()
    if isinstance(content, str):
        return (Text(content),)
    if not is_array(content):
        reject("expected a string or an array of parts", where, "content")
    return tuple(read_part(part, at) for at, part in objects(message, "content", where))


def result_parts(message: Obj, where: str) -> tuple[Text | Media, ...]:
    """The content of a tool's answer. Pictures are not in the spec, but servers take them."""
    parts: list[Text | Media] = []
    for index, part in enumerate(content_parts(message, where, required=True)):
        if not isinstance(part, (Text, Media)):
            reject("cannot stand in a tool's answer", f"{where}.content[{index}].type")
        parts.append(part)
    return tuple(parts)


def read_part(part: Obj, where: str) -> Part:
    kind = need_string(part, "type", where)
    read = _READERS.get(kind)
    return read(part, where) if read else Opaque(Raw(NAME, part), kind)


def cache_of(part: Obj, where: str) -> Cache | None:
    """OpenAI's breakpoint, or Anthropic's as OpenRouter takes it."""
    for key in ("prompt_cache_breakpoint", "cache_control"):
        mark = mapping(part, key, where)
        if mark is not None:
            return Cache(string(mark, "ttl", join(where, key)))
    return None


def _text(part: Obj, where: str) -> Part:
    return Text(need_string(part, "text", where), cache_of(part, where))


def _refusal(part: Obj, where: str) -> Part:
    return Refusal(need_string(part, "refusal", where))


def _image(part: Obj, where: str) -> Part:
    at = f"{where}.image_url"
    image = as_object(part.get("image_url"), at)
    media_type, data, url = _location(need_string(image, "url", at), join(at, "url"))
    return Media(
        kind="image",
        media_type=media_type,
        data=data,
        url=url,
        detail=string(image, "detail", at),
        cache=cache_of(part, where),
    )


def _video(part: Obj, where: str) -> Part:
    """Not OpenAI's, but Qwen, Kimi, vLLM and OpenRouter agree on it."""
    at = f"{where}.video_url"
    video = as_object(part.get("video_url"), at)
    media_type, data, url = _location(need_string(video, "url", at), join(at, "url"))
    raw = Raw(NAME, part)
    return Media(kind="video", media_type=media_type, data=data, url=url, raw=raw)


def _audio(part: Obj, where: str) -> Part:
    at = f"{where}.input_audio"
    audio = as_object(part.get("input_audio"), at)
    sort = need_string(audio, "format", at)
    return Media(
        kind="audio",
        media_type=_AUDIO_TYPES.get(sort, f"audio/{sort}"),
        data=need_string(audio, "data", at),
        cache=cache_of(part, where),
    )


def _file(part: Obj, where: str) -> Part:
    at = f"{where}.file"
    file = as_object(part.get("file"), at)
    name, cache = string(file, "filename", at), cache_of(part, where)
    content = string(file, "file_data", at)
    if content is not None:
        if not content.startswith("data:"):
            content = f"data:application/pdf;base64,{content}"
        media_type, data, _ = _location(content, join(at, "file_data"))
        return Media(kind="document", media_type=media_type, data=data, name=name, cache=cache)
    file_id = string(file, "file_id", at)
    if file_id is None:
        reject("needs file_data or file_id", at)
    return Media(kind="document", file_id=file_id, name=name, cache=cache, raw=Raw(NAME, part))


def _location(url: str, where: str) -> tuple[str, str | None, str | None]:
    """The media type, the base64 data, the URL: a `data:` URL has the first two."""
    if not url.startswith("data:"):
        return "", None, url
    media_type, data = inline.split(url) or reject("expected a base64 data URL", where)
    return media_type, data, None


_READERS: dict[str, Callable[[Obj, str], Part]] = {
    "text": _text,
    "refusal": _refusal,
    "image_url": _image,
    "video_url": _video,
    "input_audio": _audio,
    "file": _file,
}
