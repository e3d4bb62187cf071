"""Contents read in one go, where they are plain; the others one field at a time.

The keys of a part may be spelled either way. What a content or a call says beside what is looked at here no
neutral one has either, and Gemini itself gets it as it came; a part with anything else in it is another kind
of part.
"""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from ... import ids, recall, seals
from ...plain import BEYOND_STRINGS, Asked, Call, Plain, Result, Said, Thoughts, Words
from .read_parts import ANSWERS, BYPASSES, answer

_NOTHING = msgspec.Raw(b"")
_SILENT = msgspec.Raw(b'""')
_UNSET = msgspec.UNSET

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class _FunctionCall(msgspec.Struct, frozen=True, gc=False):
    id: str | None = None
    name: str = ""
    args: dict[str, Any] | None = None


class _FunctionResponse(msgspec.Struct, frozen=True, gc=False):
    id: str | None = None
    name: str | None = None
    response: dict[str, msgspec.Raw] | None = None
    parts: list[Any] | None = None


class _Part(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    gc=False,
    rename={
        "call": "functionCall",
        "snake_call": "function_call",
        "response": "functionResponse",
        "snake_response": "function_response",
        "signature": "thoughtSignature",
        "snake_signature": "thought_signature",
    },
):
    text: msgspec.Raw = _NOTHING
    thought: bool | None = None
    call: _FunctionCall | msgspec.UnsetType | None = _UNSET
    snake_call: _FunctionCall | None = None
    response: _FunctionResponse | msgspec.UnsetType | None = _UNSET
    snake_response: _FunctionResponse | None = None
    signature: str | msgspec.UnsetType | None = _UNSET
    snake_signature: str | None = None


class _Content(msgspec.Struct, frozen=True, gc=False):
    role: str | None = None
    parts: list[_Part] | None = None


class SignedCall(Call, frozen=True, gc=False):
    """A call with a signature of Gemini's own, which nobody else could make use of."""


class Response(Result, frozen=True, gc=False):
    """What a function of that name answered."""

    name: str


class _Failure(Response, frozen=True, gc=False):
    is_error: ClassVar[bool] = True


def _plain(content: _Content) -> Plain | None:
    """A call may have no id yet, nor a response that of its call."""
    parts: list[Any] = []
    for part in content.parts or ():
        made = _made(part)
        if made is None:
            return None
        parts += made
    if not parts:
        return None
    kinds = {part.kind for part in parts}
    if content.role == "model":
        return None if "result" in kinds else Said(parts)
    return Asked(parts) if content.role in ("user", "function") and kinds <= {"words", "result"} else None


def _made(part: _Part) -> list[Any] | None:
    call = part.snake_call if part.call is _UNSET else part.call
    response = part.snake_response if part.response is _UNSET else part.response
    signature = part.snake_signature if part.signature is _UNSET else part.signature
    if (call is not None) + (response is not None) + bool(part.text) != 1:
        return None
    if signature and signature.startswith(seals.OURS):
        return None
    signed = bool(signature) and signature not in BYPASSES
    if call is not None:
        return _call(call, signed=signed)
    if response is not None:
        return None if part.thought or signed else _response(response)
    if part.text >= BEYOND_STRINGS:
        return None
    if part.thought:
        return [Thoughts(part.text)]
    return [Words(part.text), Thoughts(_SILENT)] if signed else [Words(part.text)]


def _call(call: _FunctionCall, *, signed: bool) -> list[Call] | None:
    id = call.id or ""
    if not call.name or id.startswith(ids.OURS):
        return None
    # Others have arguments as text: it is ours, however the client spelled the object.
    arguments = msgspec.Raw(_encode(call.args or {}))
    return [(SignedCall if signed else Call)(id, call.name, arguments)]


def _response(response: _FunctionResponse) -> list[Response] | None:
    id, name, value = response.id or "", response.name, response.response
    if not name or value is None or response.parts or id.startswith(ids.OURS):
        return None
    if len(value) == 1:
        [(key, said)] = value.items()
        # As nearly always: it need not be read.
        if key in ANSWERS and said < BEYOND_STRINGS:
            return [Response(id, [Words(said)], name)]
    text, is_error = answer({key: _decode(said) for key, said in value.items()}, name)
    return [(_Failure if is_error else Response)(id, [Words(msgspec.Raw(_encode(text)))], name)]


read_list = recall.reader(_Content, _plain)
