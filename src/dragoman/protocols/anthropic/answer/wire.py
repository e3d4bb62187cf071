"""The members of Anthropic's answers that the decoder reads: stream events, and a whole message."""

from __future__ import annotations

from typing import Any

import msgspec


class AnthropicUsage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: dict[str, Any] | None = None


class AnthropicBlock(msgspec.Struct, gc=False):
    """A content block, whole or at its start. `input` stays raw, which keeps its digits and key order."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    toolset_name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    citations: list[dict[str, Any]] | None = None


class AnthropicDelta(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    citation: dict[str, Any] | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    stop_details: dict[str, Any] | None = None


class AnthropicMessage(msgspec.Struct, gc=False):
    type: str | None = None
    id: str | None = None
    model: str | None = None
    role: str | None = None
    content: list[msgspec.Raw] | None = None
    stop_reason: str | msgspec.UnsetType | None = msgspec.UNSET
    stop_sequence: str | msgspec.UnsetType | None = msgspec.UNSET
    stop_details: dict[str, Any] | None = None
    usage: AnthropicUsage | None = None


class AnthropicEvent(msgspec.Struct, gc=False):
    type: str = ""
    index: int | None = None
    message: msgspec.Raw = msgspec.Raw()
    content_block: msgspec.Raw = msgspec.Raw()
    delta: AnthropicDelta | None = None
    usage: AnthropicUsage | None = None
    error: Any = None
