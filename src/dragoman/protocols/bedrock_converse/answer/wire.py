"""The members of Converse's answers that the decoder reads: stream events, and a whole answer."""

from __future__ import annotations

from typing import Any

import msgspec


class ConverseUsage(msgspec.Struct, gc=False):
    inputTokens: int | None = None
    outputTokens: int | None = None
    cacheReadInputTokens: int | None = None
    cacheWriteInputTokens: int | None = None


class ToolUse(msgspec.Struct, gc=False):
    """A call: whole, at its start, or a fragment. `input` is an object in a body and text in a stream."""

    toolUseId: str | None = None
    name: str | None = None
    input: msgspec.Raw = msgspec.Raw()
    type: str | None = None


class ReasoningText(msgspec.Struct, gc=False):
    text: str | None = None
    signature: str | None = None


class ConverseReasoning(msgspec.Struct, gc=False):
    """Reasoning: in a body all of it (`reasoningText`), in a stream a piece."""

    reasoningText: ReasoningText | None = None
    text: str | None = None
    signature: str | None = None
    redactedContent: str | None = None


class Fragment(msgspec.Struct, gc=False):
    """A fragment of a tool's input."""

    input: str = ""


class ImageSource(msgspec.Struct, gc=False):
    bytes: str | None = None


class Image(msgspec.Struct, gc=False):
    """An image: its format at its start, its source in a delta, both in a body."""

    format: str | None = None
    source: ImageSource | None = None


class ConverseDelta(msgspec.Struct, gc=False):
    text: str | None = None
    image: Image | None = None
    toolUse: Fragment | None = None
    reasoningContent: ConverseReasoning | None = None
    citation: dict[str, Any] | None = None


class CitedText(msgspec.Struct, gc=False):
    text: str | None = None


class CitedContent(msgspec.Struct, gc=False):
    content: list[CitedText] | None = None
    citations: list[dict[str, Any]] | None = None


class ConverseBlock(msgspec.Struct, gc=False):
    """A content block: whole, or at its start."""

    text: str | None = None
    image: Image | None = None
    toolUse: ToolUse | None = None
    reasoningContent: ConverseReasoning | None = None
    citationsContent: CitedContent | None = None


class ConverseMessage(msgspec.Struct, gc=False):
    content: list[ConverseBlock] | None = None


class Output(msgspec.Struct, gc=False):
    message: ConverseMessage | None = None


class ConverseEvent(msgspec.Struct, gc=False):
    """Any event of a stream. A whole answer has `output` instead."""

    contentBlockIndex: int | None = None
    start: ConverseBlock | None = None
    delta: ConverseDelta | None = None
    stopReason: str | None = None
    usage: ConverseUsage | None = None
    output: Output | None = None
    additionalModelResponseFields: dict[str, Any] | None = None
    error: Any = None
