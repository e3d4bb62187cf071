"""The contents and parts of a Gemini request, as typed structs.

The API accepts each key in camelCase and in snake_case. So a member of two words has two fields here, and the
reader uses the one that is present: `part.call or part.snake_call`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec


class FunctionCall(msgspec.Struct, frozen=True, gc=False):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    id: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")
    """Undecoded, so that numbers keep the client's spelling."""


class FunctionResponse(msgspec.Struct, frozen=True, gc=False):
    id: str | None = None
    name: str | None = None
    response: dict[str, Any] | None = None
    parts: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """Images and documents."""


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
    """A usual part: text, a call or a response."""

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
    """A content with only usual parts."""

    role: str | None = None
    parts: list[Part] | None = None


class AnyContent(msgspec.Struct, frozen=True, gc=False):
    """A content with any parts, which are decoded one by one."""

    role: str | None = None
    parts: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """A list, or a single part."""
