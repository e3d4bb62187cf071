"""The input items of a Responses request, the parts of their content, and the tools, as typed structs."""

from __future__ import annotations

from typing import Any

import msgspec

from ....model.messages import Cache, Raw, Tool
from ...common.fields import reject
from ...common.typed_json import (
    LazyArray,
    Members,
    Reader,
    as_json,
    bad_request,
    member,
    members_of,
    optional,
)


class Item(msgspec.Struct, tag_field="type", frozen=True, gc=False):
    """An input item."""


class Part(msgspec.Struct, tag_field="type", frozen=True, gc=False, kw_only=True):
    """A part of a message's content or of a tool's output."""

    prompt_cache_breakpoint: Cache | None = None


class AnyText(Part, frozen=True, gc=False):
    text: str
    annotations: list[dict[str, Any]] | None = None


class InputText(AnyText, tag="input_text", frozen=True, gc=False): ...


class OutputText(AnyText, tag="output_text", frozen=True, gc=False): ...


class PlainText(AnyText, tag="text", frozen=True, gc=False): ...


class MessageItem(Item, tag="message", frozen=True, gc=False):
    """A message with only text, like nearly all messages."""

    role: str
    content: str | list[InputText | OutputText] | None = None


class AnyMessageItem(MessageItem, tag="message", frozen=True, gc=False):
    """A message whose parts are decoded one by one."""

    content: str | list[msgspec.Raw] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]


class Summary(msgspec.Struct, frozen=True, gc=False):
    """One of the texts of a reasoning item."""

    text: str | None = None


class ReasoningItem(Item, tag="reasoning", frozen=True, gc=False):
    id: str | None = None
    summary: list[Summary] | None = None
    content: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """Used only if there is no summary."""
    encrypted_content: str | None = None


class CallItem(Item, frozen=True, gc=False):
    """A call of a tool that the client declared."""

    call_id: str
    name: str
    namespace: str | None = None
    id: str | None = None
    arguments: str | None = None


class FunctionCall(CallItem, tag="function_call", frozen=True, gc=False): ...


class CustomCall(CallItem, tag="custom_tool_call", frozen=True, gc=False):
    arguments: str | None = msgspec.field(default=None, name="input")


class OutputItem(Item, frozen=True, gc=False):
    """The result of a call."""

    call_id: str
    output: str | list[msgspec.Raw] | None = None
    name: str | None = None


class FunctionOutput(OutputItem, tag="function_call_output", frozen=True, gc=False): ...


class CustomOutput(OutputItem, tag="custom_tool_call_output", frozen=True, gc=False): ...


class OtherItem(msgspec.Struct, frozen=True):
    """An item of another type: of a built-in tool, with tools in it, or opaque."""

    kind: str
    members: dict[str, msgspec.Raw]


class ToolItem(msgspec.Struct, frozen=True, gc=False):
    """An input item that declares tools."""

    raw: Raw
    before: int
    """The number of messages before it."""
    found: bool
    """Is it the output of a tool search? Then it is also a message, and has its tools itself."""


KnownItem = MessageItem | ReasoningItem | FunctionCall | CustomCall | FunctionOutput | CustomOutput
AnyItem = KnownItem | AnyMessageItem | OtherItem
ITEM_TYPES = frozenset(
    {
        *("message", "reasoning", "function_call", "custom_tool_call"),
        *("function_call_output", "custom_tool_call_output"),
    }
)


_decode = msgspec.json.Decoder(KnownItem).decode
_decode_all = msgspec.json.Decoder(list[KnownItem]).decode
_any_message = Reader(AnyMessageItem)


def decode_items(listed: LazyArray) -> list[AnyItem]:
    """Decode the items of `input`."""
    return list(listed.decoded(_decode_all, decode_item))


def decode_item(raw: msgspec.Raw, where: str) -> AnyItem:
    """Decode the item at `where`."""
    try:
        return _decode(raw)
    except msgspec.ValidationError as error:
        return _unusual(raw, where, error)


def _unusual(raw: msgspec.Raw, where: str, error: msgspec.ValidationError) -> AnyItem:
    """Decode an item that is not a `KnownItem`. `error` is the reason."""
    members = members_of(raw, where)
    kind = _type(members, where)
    if not kind:
        return _untyped(raw, members, where)
    if kind == "message":
        return _any_message.read(raw, where)
    if kind not in ITEM_TYPES:
        return OtherItem(kind, members)
    # OpenAI allows an output without `call_id` that answers no single call. No other protocol has that.
    if kind == "function_call_output" and optional(members.get("call_id", msgspec.UNSET)) is None:
        return OtherItem(kind, members)
    raise bad_request(error, where) from None


def _type(members: Members, where: str) -> str:
    given = optional(members.get("type", msgspec.UNSET))
    return "" if given is None else member(members, "type", str, where)


def _untyped(raw: msgspec.Raw, members: Members, where: str) -> AnyItem:
    """Decode an item without `type`: a message, or an item reference (`{"id": …}`).

    The AI SDK, pi, openai-agents, pydantic-ai and OpenAI's own SDK leave out `type` on messages.
    """
    if "role" in members:
        rest = {key: given for key, given in members.items() if key != "type"}
        return _any_message.read(raw if len(rest) == len(members) else as_json(rest), where)
    if "id" not in members:
        reject("is required", where, "type")
    return OtherItem("item_reference", dict(members))


class RefusalPart(Part, tag="refusal", frozen=True, gc=False):
    refusal: str


class ImagePart(Part, tag="input_image", frozen=True, gc=False):
    image_url: str | None = None
    file_id: str | None = None
    detail: str | None = None


class FilePart(Part, tag="input_file", frozen=True, gc=False):
    file_data: str | None = None
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    detail: str | None = None


class Audio(msgspec.Struct, frozen=True, gc=False):
    format: str
    data: str


class AudioPart(Part, tag="input_audio", frozen=True, gc=False):
    input_audio: Audio


AnyPart = InputText | OutputText | PlainText | RefusalPart | ImagePart | FilePart | AudioPart
TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
PART_TYPES = TEXT_TYPES | {"refusal", "input_image", "input_file", "input_audio"}


class Definition(msgspec.Struct, tag_field="type", frozen=True, gc=False, kw_only=True):
    """An entry of `tools`."""

    name: str
    description: str | None = None
    defer_loading: bool | None = None


class FunctionTool(Definition, tag="function", frozen=True, gc=False):
    parameters: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    strict: bool | None = None


class Grammar(msgspec.Struct, frozen=True, gc=False):
    definition: str | None = None
    syntax: str | None = None


class CustomTool(Definition, tag="custom", frozen=True, gc=False):
    format: Grammar | None = None


class Namespace(msgspec.Struct, tag_field="type", tag="namespace", frozen=True, gc=False):
    name: str
    tools: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


AnyTool = FunctionTool | CustomTool | Namespace
TOOL_TYPES = frozenset({"function", "custom", "namespace"})


class Declared(msgspec.Struct, frozen=True, gc=False):
    """Where a client declares a tool, if not once and directly in `tools`."""

    namespace: Raw | None = None
    """The definition of the namespace that holds the tool."""
    item: ToolItem | None = None
    earlier: tuple[Tool, ...] = ()
    """Earlier definitions of the same tool, which this one replaces."""


_DIRECTLY = Declared()


def declared(tool: Tool) -> Declared:
    """Where the client declares the tool."""
    return (tool.extras or {}).get("declared", _DIRECTLY)


def with_place(tool: Tool, **changes: Any) -> Tool:
    """`tool` with these changes to the place where it is declared."""
    return msgspec.structs.replace(
        tool, extras={"declared": msgspec.structs.replace(declared(tool), **changes)}
    )
