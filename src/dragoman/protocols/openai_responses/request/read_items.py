"""Read each input item of a Responses request as one neutral message.

`read_item` looks at one item only. `ItemReader` also checks that each result has its call, and adds the seals
that other items carry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ....model.messages import (
    SEPARATOR,
    Extras,
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
from ...common.call_ids import from_client
from ...common.fields import reject
from ...common.sealed_reasoning import Envelope, from_slot
from ...common.searches import with_calls
from ...common.turns import refuse_stray
from ...common.typed_json import (
    LazyArray,
    Members,
    Reader,
    as_json,
    bad_request,
    mark_wrapped,
    member,
    members_of,
    optional,
    value,
)
from .. import builtins, compaction, searches
from ..own import NAME
from .read_parts import output_part, read_part, read_text
from .restore import call_id_key, is_made_up
from .wire import (
    ITEM_TYPES,
    AnyItem,
    AnyMessageItem,
    CallItem,
    CustomCall,
    CustomOutput,
    FunctionCall,
    FunctionOutput,
    InputText,
    KnownItem,
    MessageItem,
    OtherItem,
    OutputItem,
    OutputText,
    ReasoningItem,
    Summary,
)

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}
Place = int | str
"""The index of an item in `input`, or its path. It is only used in errors."""

_HISTORY_ELSEWHERE = ("item_reference", "compaction")
# The endings of item types that come from the client, among the types that only this protocol has.
_FROM_CLIENT = ("_output", "_response", "_trigger", "_update")

_decode = msgspec.json.Decoder(KnownItem).decode
_decode_all = msgspec.json.Decoder(list[KnownItem]).decode
_decode_summaries = msgspec.json.Decoder(list[Summary]).decode
_any_message = Reader(AnyMessageItem)


def read_item(raw: msgspec.Raw, where: str) -> Message:
    """Read the input item at `where`. An item without neutral meaning becomes an `Opaque`."""
    item = _decoded(raw, where)
    return _READERS[item.__class__](item, Raw(NAME, raw), where)


def decode_items(listed: LazyArray) -> list[AnyItem]:
    """Decode the items of `input` as structs."""
    return list(listed.decoded(_decode_all, _decoded))


def _decoded(raw: msgspec.Raw, where: str) -> AnyItem:
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


def is_reference(item: OtherItem) -> bool:
    """Does the item stand for earlier turns that are not in the request?"""
    return item.kind in _HISTORY_ELSEWHERE


class ItemReader:
    """Reads the items of one request in order."""

    def __init__(self, *, history_elsewhere: bool) -> None:
        """`history_elsewhere`: the server keeps earlier turns, so their calls are not here."""
        self._elsewhere = history_elsewhere
        self._calls: set[str] = set()
        self._carried: dict[str, Seal] = {}
        """Seals of calls, by call id. A call item has no slot for a seal, so an empty reasoning item before
        the call carries it."""

    def read(self, items: Sequence[AnyItem], listed: LazyArray) -> tuple[list[Message], bool]:
        """Read `items`, which were decoded from `listed`. Also returns whether any message is wrapped."""
        messages: list[Message] = []
        wrapped = False
        calls = self._calls
        for at, item in enumerate(items):
            kind, raw = type(item), Raw(NAME, listed, False, at)
            if kind is ReasoningItem or kind is OtherItem:
                message = self._rare(item, raw, at)
                if message is None:
                    continue
            else:
                message = _READERS[kind](item, raw, at)
            if kind in _PAIRED:
                # A message of a call or a result has exactly one part.
                (part,) = message.parts
                if type(part) is ToolCall:
                    calls.add(part.id)
                elif type(part) is ToolResult and part.call_id not in calls and not self._elsewhere:
                    message = self._unpaired(part, item, raw, at)
            messages.append(message)
            wrapped = wrapped or (message.raw is not None and message.raw.wrapped)
        if wrapped:
            messages = with_calls(messages)
        if self._carried:
            return [self._with_seal(message) for message in messages], True
        return messages, wrapped

    def _rare(self, item: AnyItem, raw: Raw, at: int) -> Message | None:
        """Read the item; None if it only holds tools, or the seal of a call."""
        if type(item) is ReasoningItem:
            envelope = _envelope(item)
            if envelope is None or not envelope.call:
                return _reasoned(item, envelope, raw, at)
            self._carried[envelope.call] = envelope.seal
            return None
        # The code mode of Codex declares its tools in this item. `read_tools` reads them.
        if type(item) is OtherItem and item.kind == "additional_tools":
            return None
        return _READERS[type(item)](item, raw, at)

    def _unpaired(self, result: ToolResult, item: AnyItem, raw: Raw, at: int) -> Message:
        """Read a result whose call is not in the request."""
        if not isinstance(item, OtherItem):
            refuse_stray(result.call_id, f"input[{at}].call_id")
        # The output of a built-in tool. Its call may be an item that only OpenAI understands.
        return _opaque(item, raw)

    def _with_seal(self, message: Message) -> Message:
        match message.parts:
            case (ToolCall() as call,):
                seal = self._carried.get(call.id) or self._carried.get(_wire_id(message))
            case _:
                return message
        if seal is None:
            return message
        return msgspec.structs.replace(message, parts=(msgspec.structs.replace(call, seal=seal),))


def _wire_id(message: Message) -> str:
    """The call id that the client has."""
    return message.raw.parsed["call_id"] if message.raw is not None else ""


def _path(where: Place) -> str:
    return where if isinstance(where, str) else f"input[{where}]"


def _message(item: MessageItem | AnyMessageItem, raw: Raw, where: Place) -> Message:
    role = _ROLES.get(item.role)
    if role is None:
        reject(f"{item.role!r} is not one of {', '.join(_ROLES)}", _path(where), "role")
    content = item.content
    if isinstance(content, str):
        parts: tuple[Part, ...] = (Text(content),) if content else ()
    elif content is not None:
        parts = tuple([_part(part, where, at) for at, part in enumerate(content)])
    elif role == "assistant":
        parts = ()  # some clients send null in a turn with only tool calls
    else:
        reject("is required", _path(where), "content")
    return Message(role, parts, None, raw)


def _part(part: InputText | OutputText | msgspec.Raw, where: Place, at: int) -> Part:
    """Read the part at index `at` of a message's content."""
    if type(part) is msgspec.Raw:
        return read_part(part, f"{_path(where)}.content[{at}]")
    if part.annotations:
        return read_text(part, f"{_path(where)}.content[{at}]")
    return Text(part.text, part.prompt_cache_breakpoint)


def _reasoning(item: ReasoningItem, raw: Raw, where: Place) -> Message:
    return _reasoned(item, _envelope(item), raw, where)


def _envelope(item: ReasoningItem) -> Envelope | None:
    """The content of `encrypted_content`: an envelope of Dragoman, or the provider's own seal."""
    data = item.encrypted_content
    return from_slot(data, NAME, item.id) if data else None


def _reasoned(item: ReasoningItem, envelope: Envelope | None, raw: Raw, where: Place) -> Message:
    if envelope is not None:
        seal, wrapped = envelope.seal, envelope.seal.data != item.encrypted_content
    else:
        # With `store: true`, the provider keeps the reasoning, and the item has only the id.
        seal, wrapped = Seal(NAME, "", item.id) if item.id else None, is_made_up(item.id)
    words = _words(item.summary or ())
    if not words and (content := optional(item.content)) is not None:
        words = _words(_summaries(content, where))
    thinking = Thinking(SEPARATOR.join(words), seal, None, words if len(words) > 1 else ())
    return Message("assistant", (thinking,), None, mark_wrapped(raw) if wrapped else raw)


def _words(summaries: Sequence[Summary]) -> tuple[str, ...]:
    return tuple([summary.text for summary in summaries if summary.text])


def _summaries(content: msgspec.Raw, where: Place) -> list[Summary]:
    try:
        return _decode_summaries(content)
    except msgspec.ValidationError as error:
        raise bad_request(error, f"{_path(where)}.content") from None


def _call(item: CallItem, raw: Raw, where: Place) -> Message:
    id = from_client(item.call_id)
    call = ToolCall(
        id=id,
        name=item.name,
        arguments=item.arguments or "",
        kind="custom" if type(item) is CustomCall else "function",
        namespace=item.namespace,
        extras=Extras(NAME, {"id": item.id}) if item.id else None,
    )
    return Message("assistant", (call,), None, raw if id == item.call_id else mark_wrapped(raw))


def _output(item: OutputItem, raw: Raw, where: Place) -> Message:
    id = from_client(item.call_id)
    output = item.output
    if isinstance(output, str):
        parts: tuple[Text | Media, ...] = (Text(output),) if output else ()
    else:
        listed = enumerate(output or ())
        parts = tuple([output_part(part, f"{_path(where)}.output[{at}]") for at, part in listed])
    kind = "custom" if type(item) is CustomOutput else "function"
    result = ToolResult(call_id=id, parts=parts, name=item.name, kind=kind)
    return Message("user", (result,), None, raw if id == item.call_id else mark_wrapped(raw))


def _other(item: OtherItem, raw: Raw, where: Place) -> Message:
    """Read a call or output of a built-in tool that the client ran. Any other item stays opaque."""
    path = _path(where)
    if item.kind == compaction.ITEM:
        return _compacted(item, raw, path)
    if item.kind == searches.ITEM and searches.is_own(given := value(raw.value, path)):
        return Message("assistant", (searches.search_of(given),), None, mark_wrapped(raw))
    part: ToolCall | ToolResult | None = None
    if item.kind in builtins.CALLS:
        part = builtins.read_call(value(raw.value, path), path)
    elif item.kind in builtins.OUTPUTS:
        part = builtins.read_output(value(raw.value, path), path)
    if part is None:
        return _opaque(item, raw)
    role: Role = "assistant" if isinstance(part, ToolCall) else "user"
    return Message(role, (part,), None, mark_wrapped(raw) if _has_escaped_id(item) else raw)


def _compacted(item: OtherItem, raw: Raw, path: str) -> Message:
    """Read a compaction item. The summary of Dragoman becomes text, any other item stays opaque."""
    data = item.members.get("encrypted_content")
    summary = None if data is None else compaction.summary_of(value(data, path))
    if summary is None:
        return _opaque(item, raw)
    return Message("user", (Text(summary),), None, mark_wrapped(raw))


def is_trigger(item: OtherItem) -> bool:
    """Does this item ask for compaction of the conversation?"""
    return item.kind == compaction.TRIGGER


def _opaque(item: OtherItem, raw: Raw) -> Message:
    kept = mark_wrapped(raw) if _has_escaped_id(item) else raw
    role: Role = "user" if item.kind.endswith(_FROM_CLIENT) else "assistant"
    return Message(role, (Opaque(kept, item.kind),), None, kept)


def _has_escaped_id(item: OtherItem) -> bool:
    given = item.members.get(call_id_key(item.kind, item.members))
    id = None if given is None else value(given, "call_id")
    return isinstance(id, str) and from_client(id) != id


_PAIRED = frozenset({FunctionCall, CustomCall, FunctionOutput, CustomOutput, OtherItem})
_READERS: dict[type, Callable[[Any, Raw, Place], Message]] = {
    MessageItem: _message,
    AnyMessageItem: _message,
    ReasoningItem: _reasoning,
    FunctionCall: _call,
    CustomCall: _call,
    FunctionOutput: _output,
    CustomOutput: _output,
    OtherItem: _other,
}
