"""The contents and parts of a Gemini request, as typed structs.

The API takes each member spelled `likeThis` or `like_this`. So a member of two words has two fields here, and
the reader takes the one that is given: `part.call or part.snake_call`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec


class FunctionCall(msgspec.Struct, frozen=True, gc=False):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    id: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")
    """Not decoded: the numbers in it keep the client's spelling."""


class FunctionResponse(msgspec.Struct, frozen=True, gc=False):
    id: str | None = None
    name: str | None = None
    response: dict[str, Any] | None = None
    parts: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """Pictures and documents."""


class Part(
    msgspec.Struct,
    frozen=True,
    gc=False,
    forbid_unknown_fields=True,
    rename={
        "call": "functionCall",
        "snake_call": "function_call",
        "response": "functionResponse",
        "snake_response": "function_response",
        "signature": "thoughtSignature",
        "snake_signature": "thought_signature",
    },
):
    """A part of text, a call or a response, which nearly all parts are."""

    text: str | None = None
    thought: bool | None = None
    call: FunctionCall | None = None
    snake_call: FunctionCall | None = None
    response: FunctionResponse | None = None
    snake_response: FunctionResponse | None = None
    signature: str | None = None
    snake_signature: str | None = None


class AnyPart(Part, frozen=True, gc=False, forbid_unknown_fields=False):
    """A part of any kind."""


class Content(msgspec.Struct, frozen=True, gc=False):
    """A content of usual parts."""

    role: str | None = None
    parts: list[Part] | None = None


class AnyContent(msgspec.Struct, frozen=True, gc=False):
    """A content of any parts, each to be read on its own."""

    role: str | None = None
    parts: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """A list, or one part."""
