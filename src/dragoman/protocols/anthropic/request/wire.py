"""The content blocks and messages of an Anthropic request, as typed structs, and how they are decoded."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from ....model.messages import Cache, Extras
from ...common.typed_json import LazyArray, Members, Reader, bad_request, items, members_of
from ..own import NAME

_Filled = Annotated[str, msgspec.Meta(min_length=1)]
_NO_INPUT = msgspec.Raw(b"{}")


class Block(msgspec.Struct, tag_field="type", frozen=True, forbid_unknown_fields=True, gc=False):
    """A content block. A block with undeclared members is read separately, by its own reader."""


class TextBlock(Block, tag="text", frozen=True, gc=False):
    text: str
    cache_control: Cache | msgspec.UnsetType | None = msgspec.UNSET
    citations: list[dict[str, Any]] | msgspec.UnsetType | None = msgspec.UNSET

    @property
    def bare(self) -> bool:
        """Is its text all that it has?"""
        return self.cache_control is msgspec.UNSET and self.citations is msgspec.UNSET


class OnlyText(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A text block in a list that nearly always contains only text.

    Its `type` is an ordinary member, because msgspec does not require the tag if only one type is possible.
    """

    type: Literal["text"]
    text: str
    cache_control: Cache | None = None
    citations: list[dict[str, Any]] | None = None


class ThinkingBlock(Block, tag="thinking", frozen=True, gc=False):
    thinking: str
    signature: str | msgspec.UnsetType | None = msgspec.UNSET
    """Missing if the model is not Claude: other models do not sign."""


class RedactedBlock(Block, tag="redacted_thinking", frozen=True, gc=False):
    data: str


class CallBlock(Block, tag="tool_use", frozen=True, gc=False):
    id: _Filled
    name: _Filled
    input: msgspec.Raw = _NO_INPUT
    """Undecoded, so that the arguments keep the client's spelling."""
    cache_control: Cache | None = None
    toolset_name: str | None = None
    caller: dict[str, Any] | None = None
    """Who made the call: the model, or a program that it wrote. Only Anthropic supports it."""


class ResultBlock(Block, tag="tool_result", frozen=True, gc=False):
    tool_use_id: _Filled
    content: str | list[OnlyText] | None = None
    is_error: bool | None = None
    cache_control: Cache | None = None


class Source(msgspec.Struct, frozen=True, gc=False):
    """The source of an image or document. The type decides which members are set."""

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


class MessageEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A message with only usual blocks. The blocks of any other message are read one by one."""

    role: str
    content: str | list[TextBlock | ThinkingBlock | CallBlock | ResultBlock] | None = None
    output_config: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


usual_messages = msgspec.json.Decoder(list[MessageEntry]).decode
_usual_message = msgspec.json.Decoder(MessageEntry).decode
_any_message = Reader(MessageEntry)
_content = msgspec.json.Decoder(str | list[msgspec.Raw] | None).decode


def one_message(raw: msgspec.Raw, where: str) -> MessageEntry:
    """Decode one message of a list that could not be decoded in one pass."""
    try:
        return _usual_message(raw)
    except msgspec.ValidationError:
        members = members_of(raw, where)
        entry, _ = _any_message.split(without_content(members), where)
        return msgspec.structs.replace(entry, content=any_content(members, where))


def without_content(members: Members) -> Members:
    return {key: raw for key, raw in members.items() if key != "content"}


def any_content(members: Members, where: str) -> str | list[msgspec.Raw] | None:
    """The content of a message or result: text, or blocks that are not decoded."""
    if "content" not in members:
        return None
    try:
        return _content(members["content"])
    except msgspec.ValidationError as error:
        raise bad_request(error, f"{where}.content") from None


class SentMessage:
    """A message as the client sent it. It is decoded only if a writer of this protocol needs it."""

    __slots__ = ("_at", "_blocks", "_listed")

    def __init__(self, listed: LazyArray, at: int) -> None:
        self._listed = listed
        self._at = at
        self._blocks: list[msgspec.Raw] | None = None

    def __getitem__(self, block: int) -> msgspec.Raw:
        if self._blocks is None:
            self._blocks = items(self._members()["content"], "")
        return self._blocks[block]

    def extras(self) -> Extras:
        """The members beside the role and the content."""
        rest = {key: raw for key, raw in self._members().items() if key not in ("role", "content")}
        return Extras(NAME, rest)

    def _members(self) -> Members:
        return members_of(self._listed[self._at], "")
