"""The content blocks and messages of an Anthropic request, as typed structs."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ....model.messages import Cache

_Filled = Annotated[str, msgspec.Meta(min_length=1)]
_NO_INPUT = msgspec.Raw(b"{}")


class Block(msgspec.Struct, tag_field="type", frozen=True, forbid_unknown_fields=True, gc=False):
    """A content block. A block with a member that its struct does not name is read on its own."""


class TextBlock(Block, tag="text", frozen=True, gc=False):
    text: str
    cache_control: Cache | None = None
    citations: list[dict[str, Any]] | None = None


class OnlyText(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A text block where nearly always only text stands.

    Its `type` is an ordinary member: msgspec does not demand a tag where only one is possible.
    """

    type: Literal["text"]
    text: str
    cache_control: Cache | None = None
    citations: list[dict[str, Any]] | None = None


class ThinkingBlock(Block, tag="thinking", frozen=True, gc=False):
    thinking: str
    signature: str | None = None
    """Models that are not Claude sign nothing."""


class RedactedBlock(Block, tag="redacted_thinking", frozen=True, gc=False):
    data: str


class CallBlock(Block, tag="tool_use", frozen=True, gc=False):
    id: _Filled
    name: _Filled
    input: msgspec.Raw = _NO_INPUT
    """Not decoded: the arguments go on in the client's own spelling."""
    cache_control: Cache | None = None
    toolset_name: str | None = None
    caller: dict[str, Any] | None = None
    """Says whether the model or a program of the model made the call. Only Anthropic understands it."""


class ResultBlock(Block, tag="tool_result", frozen=True, gc=False):
    tool_use_id: _Filled
    content: str | list[OnlyText] | None = None
    is_error: bool | None = None
    cache_control: Cache | None = None


class AnyResultBlock(ResultBlock, frozen=True, gc=False):
    """A `tool_result` that may hold more than text."""

    content: str | list[msgspec.Raw] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class Source(msgspec.Struct, frozen=True, gc=False):
    """Where an image or a document comes from; which members there are depends on the type."""

    type: str
    media_type: str | None = None
    data: str | None = None
    url: str | None = None
    file_id: str | None = None
    content: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ImageBlock(Block, tag="image", frozen=True, gc=False):
    source: Source
    cache_control: Cache | None = None


class DocumentBlock(Block, tag="document", frozen=True, gc=False):
    source: Source
    title: str | None = None
    context: str | None = None
    cache_control: Cache | None = None


class SearchResultBlock(Block, tag="search_result", frozen=True, gc=False):
    source: str
    title: str
    content: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    cache_control: Cache | None = None


class ToolReference(Block, tag="tool_reference", frozen=True, gc=False):
    tool_name: str


class UsualMessage(msgspec.Struct, frozen=True, gc=False):
    """A message of the blocks that nearly all messages consist of."""

    role: str
    content: str | list[TextBlock | ThinkingBlock | CallBlock | ResultBlock] | None = None
    output_config: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class AnyMessage(UsualMessage, frozen=True, gc=False):
    """A message of blocks of any type, each to be read on its own."""

    content: str | list[msgspec.Raw] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
