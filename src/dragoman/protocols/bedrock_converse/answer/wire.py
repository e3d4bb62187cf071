"""The members of Converse's answers that the decoder reads: stream events, and a whole answer."""

from __future__ import annotations

from typing import Any

import msgspec


class Usage(msgspec.Struct, gc=False):
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


class Reasoning(msgspec.Struct, gc=False):
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


class Delta(msgspec.Struct, gc=False):
    text: str | None = None
    image: Image | None = None
    toolUse: Fragment | None = None
    reasoningContent: Reasoning | None = None
    citation: dict[str, Any] | None = None


class CitedText(msgspec.Struct, gc=False):
    text: str | None = None


class CitedContent(msgspec.Struct, gc=False):
    content: list[CitedText] | None = None
    citations: list[dict[str, Any]] | None = None


class Block(msgspec.Struct, gc=False):
    """A content block: whole, or at its start."""

    text: str | None = None
    image: Image | None = None
    toolUse: ToolUse | None = None
    reasoningContent: Reasoning | None = None
    citationsContent: CitedContent | None = None


class Message(msgspec.Struct, gc=False):
    content: list[Block] | None = None


class Output(msgspec.Struct, gc=False):
    message: Message | None = None


class StreamEvent(msgspec.Struct, gc=False):
    """Any event of a stream. A whole answer has `output` instead."""

    contentBlockIndex: int | None = None
    start: Block | None = None
    delta: Delta | None = None
    stopReason: str | None = None
    usage: Usage | None = None
    output: Output | None = None
    additionalModelResponseFields: dict[str, Any] | None = None
    error: Any = None
