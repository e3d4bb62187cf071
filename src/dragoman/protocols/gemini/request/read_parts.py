"""Read one content of a Gemini request as a message. Its position does not matter here."""

from __future__ import annotations

import base64
from typing import Any, Literal

import msgspec

from ....model.messages import (
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
from ...common import call_ids, inline_media, sealed_reasoning
from ...common.arguments import spelled
from ...common.fields import Obj, as_object, join, reject
from ...common.typed_json import Reader, members_of, optional, value
from ..own import NAME
from . import wire
from .keys import SIGNATURES, Fields, camel, listed
from .unwrap import unwrapped

BYPASS = "skip_thought_signature_validator"
"""Google's documented replacement for a lost signature. It is valid (url-safe) base64."""
BYPASSES = frozenset({BYPASS, base64.b64encode(BYPASS.encode()).decode()})

# Older clients send function responses with the role `function`.
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
# Names of a response's only member that holds the whole result, in various clients.
_ANSWERS = frozenset({"output", "result", "return_value", "content"})

_FILES_API = "https://generativelanguage.googleapis.com/"

_usual_content = msgspec.json.Decoder(wire.Content).decode
_any_content = Reader(wire.AnyContent)
_any_part = Reader(wire.AnyPart)
_encode = msgspec.json.Encoder().encode


def read_content(raw: msgspec.Raw, where: str, held: Raw) -> Message:
    """Read one of `contents`. Calls and responses without an id get one in `pairing`.

    A content with only usual parts is decoded in one pass. The parts of any other content are decoded one by
    one. `held`: the content as it came, for its message.
    """
    parts = _Parts(where)
    try:
        content = _usual_content(raw)
    except msgspec.ValidationError:
        content = _any_content.read(raw, where)
        parts.add_any(content.parts)
    else:
        for at, part in enumerate(content.parts or ()):
            parts.add(part, at)
    role = parts.role(content.role)
    if not parts.wrapped:
        return Message(role, tuple(parts.read), None, held)
    members = members_of(raw, where)
    return unwrapped(role, _pieces(members["parts"], where), members)


def _pieces(raw: msgspec.Raw, where: str) -> list[tuple[list[Part], msgspec.Raw]]:
    """Each part of a content as it came, and what is read of it alone."""
    pieces: list[tuple[list[Part], msgspec.Raw]] = []
    for at, (item, path) in enumerate(listed(raw, join(where, "parts"))):
        parts = _Parts(where)
        parts.add(_any_part.read(item, path), at, item)
        pieces.append((parts.read, item))
    return pieces


class _Parts:
    """Reads the parts of one content."""

    __slots__ = ("_called", "_responded", "_where", "read", "wrapped")

    def __init__(self, where: str) -> None:
        self.read: list[Part] = []
        self.wrapped = False
        """Does the content hold a call id or a seal that Dragoman wrapped for the client?"""
        self._where = where
        """The path of the content. The path of a part is computed only for errors."""
        self._called = False
        self._responded = False

    def add_any(self, raw: msgspec.Raw | msgspec.UnsetType) -> None:
        """Add the parts of a content: a list, or a single part."""
        given = optional(raw)
        if given is None:
            return
        for at, (item, where) in enumerate(listed(given, join(self._where, "parts"))):
            self.add(_any_part.read(item, where), None if item is given else at, item)

    def add(self, part: wire.Part, at: int | None, raw: msgspec.Raw | None = None) -> None:
        """Add the part at this index; None for a single part instead of a list.

        `raw` is given if the part may have members that its struct does not declare.
        """
        signature = part.signature or part.snake_signature
        seal = self._seal(signature) if signature else None
        text, call = part.text, part.call or part.snake_call
        if call is not None:
            self.read.append(self._call(call, seal, at, "functionCall" if part.call else "function_call"))
            return
        if part.thought and text is not None:
            self.read.append(Thinking(text, seal))
            return
        if text is not None:
            self.read.append(Text(text))
        elif (response := part.response or part.snake_response) is not None:
            key = "functionResponse" if part.response else "function_response"
            self.read.append(self._result(response, at, key))
        elif raw is not None and (other := _other(raw, self._path(at))) is not None:
            self.read.append(other)
        if seal is not None:
            # A signature on a text part belongs to the turn. It becomes a thought without text after that
            # part, and `write_contents` puts it back.
            self.read.append(Thinking("", seal))

    def role(self, given: str | None) -> Role:
        """The role of a content with these parts."""
        if given:
            role = _ROLES.get(given) or reject(
                f"{given!r} is not one of {', '.join(_ROLES)}", self._where, "role"
            )
        else:
            # Gemini's default role is user. A part with a call can only be the model's.
            role = "assistant" if self._called else "user"
        if role == "user" and self._called:
            reject("only a model content may have a functionCall", self._where, "role")
        if role == "assistant" and self._responded:
            reject("a model content may not have a functionResponse", self._where, "role")
        return role

    def _path(self, at: int | None) -> str:
        return join(self._where, "parts" if at is None else f"parts[{at}]")

    def _seal(self, signature: str) -> Seal | None:
        # A client sends it for a call of another model. It is no seal: the writer adds it again where Gemini
        # needs it.
        if signature in BYPASSES:
            return None
        seal = sealed_reasoning.from_slot(signature, NAME).seal
        if seal.data != signature:
            self.wrapped = True
        return seal

    def _id(self, id: str | None) -> str:
        """Restore the upstream's own id of a call."""
        if not id or not id.startswith(call_ids.OURS):
            return id or ""
        self.wrapped = True
        return call_ids.from_client(id)

    def _call(self, call: wire.FunctionCall, seal: Seal | None, at: int | None, key: str) -> ToolCall:
        self._called = True
        # The client's spelling, without whitespace between the members.
        given = msgspec.json.format(call.args, indent=-1)
        if not given.startswith(b"{"):
            where = f"{self._path(at)}.{key}.args"
            if given != b"null":
                as_object(value(call.args, where), where)
            given = b"{}"
        arguments = spelled(msgspec.Raw(given))
        return ToolCall(id=self._id(call.id), name=call.name, arguments=arguments, seal=seal)

    def _result(self, response: wire.FunctionResponse, at: int | None, key: str) -> ToolResult:
        self._responded = True
        text, is_error = _answer(response.response, response.name)
        parts: list[Text | Media] = [] if text is None else [Text(text)]
        media = optional(response.parts)
        if media is not None:
            parts += _media_of(media, f"{self._path(at)}.{key}.parts")
        return ToolResult(
            call_id=self._id(response.id),
            name=response.name or None,
            parts=tuple(parts),
            is_error=is_error,
        )


def _other(raw: msgspec.Raw, where: str) -> Media | Opaque | None:
    """Read a part that is neither text nor a call nor a response; None if it is empty."""
    fields = Fields(value(raw, where), where)
    media = None if fields.boolean("thought") else _media(fields)
    if media is not None:
        return media
    given = (camel(key) for key, member in fields.value.items() if member is not None)
    kind = next((key for key in given if key not in _ABOUT_A_PART), None)
    if kind is None:
        return None
    return Opaque(_unsigned(fields), kind)


def _media_of(raw: msgspec.Raw, where: str) -> list[Media]:
    """The images and documents of a response."""
    given = [Fields(as_object(value(item, at), at), at) for item, at in listed(raw, where)]
    return [_media(part) or reject("expected inlineData or fileData", part.where) for part in given]


def _media(part: Fields) -> Media | None:
    """The image, document, audio or video of a part, if there is one."""
    if (inline := part.child("inlineData")) is not None:
        mime = inline.need_string("mimeType")
        return Media(
            kind=_kind(mime),
            media_type=mime,
            # google-genai writes the alphabet for URLs. Gemini itself gets the part as it came.
            data=inline_media.standard(inline.need_string("data")),
            name=inline.string("displayName"),
            raw=_unsigned(part),
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
            raw=_unsigned(part),
        )
    return None


def _unsigned(part: Fields) -> Raw:
    """The part as it came. Its signature is a `Thinking` after it."""
    return Raw(NAME, {key: value for key, value in part.value.items() if key not in SIGNATURES})


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


def _answer(response: Obj | None, name: str | None) -> tuple[str | None, bool]:
    """The text of a function's result, and whether it is an error."""
    if response is None:
        return None, False
    # By Google's convention, `error` holds a failure.
    error = response.get("error")
    if error:
        return _text(error if len(response) == 1 else response), True
    keys = list(response)
    if len(keys) > 1:
        # The AI SDK repeats the function's name beside the content; other clients add `error: null`.
        empty = {"name": name, "error": None}
        keys = [key for key in keys if key not in empty or response[key] != empty[key]]
    alone = len(keys) == 1 and keys[0] in _ANSWERS
    return _text(response[keys[0]] if alone else response), False


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _encode(value).decode()
