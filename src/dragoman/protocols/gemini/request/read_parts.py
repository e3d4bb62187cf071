"""One content of a Gemini request as a message: pure functions of the JSON they are given."""

from __future__ import annotations

import base64
from typing import Any, Literal

import msgspec

from ....messages import (
    Media,
    Message,
    Opaque,
    Part,
    Raw,
    Role,
    Seal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ... import ids, seals
from ...fields import Obj, reject
from .keys import GEMINI, Fields, camel

BYPASS = "skip_thought_signature_validator"
"""Google's documented stand-in for a signature that is lost. Legal (url-safe) base64 as it is."""
BYPASSES = frozenset({BYPASS, base64.b64encode(BYPASS.encode()).decode()})

_ROLES: dict[str, Role] = {"user": "user", "function": "user", "model": "assistant"}
_ABOUT_A_PART = frozenset(
    {
        "thought",
        "thoughtSignature",
        "videoMetadata",
        "mediaResolution",
        "partMetadata",
        "mediaProcessing",
        "speechMetadata",
        "audioTranscription",
    }
)
# Members that hold the whole answer when they stand alone, as the clients name them.
ANSWERS = ("output", "result", "return_value", "content")

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


def read_content(content: Obj, where: str) -> Message:
    """One of `contents`. Calls and responses without an id get theirs in `pairing`."""
    fields = Fields(content, where)
    parts = tuple(p for part in fields.children("parts") for p in read_part(part.value, part.where))
    role = _role(fields, parts)
    if role == "user" and any(isinstance(p, ToolCall) for p in parts):
        reject("only the model makes a functionCall", where, fields.key("role"))
    if role == "assistant" and any(isinstance(p, ToolResult) for p in parts):
        reject("the model does not give a functionResponse", where, fields.key("role"))
    return Message(role, parts, raw=Raw(GEMINI, content))


def _role(fields: Fields, parts: tuple[Part, ...]) -> Role:
    said = fields.string("role")
    if not said:
        return "assistant" if any(isinstance(p, ToolCall) for p in parts) else "user"
    return _ROLES.get(said) or reject(
        f"{said!r} is not one of {', '.join(_ROLES)}", fields.where, fields.key("role")
    )


def read_part(part: Obj, where: str) -> list[Part]:
    """One part, and its signature after it where that has no place in it."""
    fields = Fields(part, where)
    seal = _seal(fields)
    if (call := fields.child("functionCall")) is not None:
        return [_call(call, seal)]
    if fields.boolean("thought") and fields.get("text") is not None:
        return [Thinking(fields.string("text") or "", seal)]
    read = _plain(fields)
    return [*read, Thinking("", seal)] if seal else read


def _plain(fields: Fields) -> list[Part]:
    if (text := fields.string("text")) is not None:
        return [Text(text)]
    if (response := fields.child("functionResponse")) is not None:
        return [_result(response)]
    media = None if fields.boolean("thought") else read_media(fields)
    if media is not None:
        return [media]
    kind = next((camel(key) for key in fields.value if camel(key) not in _ABOUT_A_PART), None)
    if kind is None:
        return []
    rest = fields.rest(frozenset({"thoughtSignature"}))
    return [Opaque(Raw(GEMINI, rest), kind)]


def _seal(fields: Fields) -> Seal | None:
    data = fields.string("thoughtSignature")
    if not data or data in BYPASSES:
        return None
    return seals.from_slot(data, GEMINI).seal


def _call(call: Fields, seal: Seal | None) -> ToolCall:
    return ToolCall(
        id=ids.from_client(call.string("id") or ""),
        name=call.need_string("name"),
        arguments=_json(call.mapping("args") or {}),
        seal=seal,
    )


def _result(response: Fields) -> ToolResult:
    text, is_error = answer(response.mapping("response"), response.get("name"))
    parts: list[Text | Media] = [] if text is None else [Text(text)]
    for part in response.children("parts"):
        media = read_media(part)
        parts.append(media or reject("expected inlineData or fileData", part.where))
    return ToolResult(
        call_id=ids.from_client(response.string("id") or ""),
        name=response.string("name") or None,
        parts=tuple(parts),
        is_error=is_error,
        raw=Raw(GEMINI, response.value),
    )


def answer(value: Obj | None, name: Any) -> tuple[str | None, bool]:
    """The text of what the function of that name gave, and whether it reports an error."""
    if value is None:
        return None, False
    if value.get("error"):
        return _text(value["error"] if len(value) == 1 else value), True
    # The AI SDK repeats the function's name beside the content.
    told = value.keys() - ({"name"} if value.get("name") == name else set())
    told = told - ({"error"} if value.get("error", "") is None else set())
    alone = next((key for key in ANSWERS if told == {key}), None)
    return _text(value if alone is None else value[alone]), False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def read_media(part: Fields) -> Media | None:
    """The picture, document, sound or film of a part, if it has one."""
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
    """Files of Google's own stores (`gs://…` and the Files API) mean nothing to anybody else."""
    return not uri.startswith(("http://", "https://")) or uri.startswith(_FILES_API)


def guessed_type(url: str) -> str:
    """The media type of what is behind `url`, by its looks; empty where they say nothing."""
    if url.startswith(_YOUTUBE):
        return "video/mp4"
    path = url.partition("?")[0].partition("#")[0]
    return _BY_ENDING.get(path.rpartition(".")[2].lower(), "")
