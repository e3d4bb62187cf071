"""One input item of a Responses request as one neutral message.

`decode_item` and `read_item` are pure: the same item gives the same message, whatever stands around it.
`Conversation` adds what only the items before can tell.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from ....messages import Message, Opaque, Raw, Role, Seal, Thinking, ToolCall, ToolResult
from ...fields import Obj, join, reject
from ...ids import from_client
from ...seals import OURS, from_slot
from ...turns import Pairing
from ...typed import Members, Reader, as_json, member, members_of, refused, said, value
from .. import builtins
from ..items import NAME
from .raw import call_id_key, is_made_up
from .read_parts import content_parts, output_parts
from .wire import (
    ITEM_TYPES,
    AnyItem,
    CallItem,
    CustomCall,
    CustomOutput,
    FunctionCall,
    FunctionOutput,
    KnownItem,
    MessageItem,
    OtherItem,
    OutputItem,
    ReasoningItem,
    Summary,
)

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}
_HISTORY_ELSEWHERE = ("item_reference", "compaction")
# What the client says rather than the model, among the items only this protocol understands.
_FROM_CLIENT = ("_output", "_response", "_trigger", "_update")

_decode = msgspec.json.Decoder(KnownItem).decode
_summaries = msgspec.json.Decoder(list[Summary] | None).decode
_message_item = Reader(MessageItem)


def read_item(raw: msgspec.Raw, where: str) -> Message:
    """Any input item at `where`. A kind that has no neutral meaning becomes an `Opaque`."""
    item = decode_item(raw, where)
    return _READERS[item.__class__](item, raw, where)


def decode_item(raw: msgspec.Raw, where: str) -> AnyItem:
    """Any input item as a struct; `where` only names it in complaints."""
    try:
        return _decode(raw)
    except msgspec.ValidationError as error:
        return _unusual(raw, where, error)


def _unusual(raw: msgspec.Raw, where: str, error: msgspec.ValidationError) -> AnyItem:
    members = members_of(raw, where)
    kind = _type(members, where)
    if not kind:
        return _untyped(raw, members, where)
    if kind not in ITEM_TYPES:
        return OtherItem(kind, members)
    # An output that answers no single call may leave out `call_id`: only this protocol understands it.
    if kind == "function_call_output" and said(members.get("call_id", msgspec.UNSET)) is None:
        return OtherItem(kind, members)
    raise refused(error, where) from None


def _type(members: Members, where: str) -> str:
    given = said(members.get("type", msgspec.UNSET))
    return "" if given is None else member(members, "type", str, where)


def _untyped(raw: msgspec.Raw, members: Members, where: str) -> AnyItem:
    """Most clients leave out `type` on messages; an item reference may be a bare `{id}`."""
    if "role" in members:
        rest = {key: value for key, value in members.items() if key != "type"}
        return _message_item.read(raw if len(rest) == len(members) else as_json(rest), where)
    if "id" not in members:
        reject("is required", where, "type")
    return OtherItem("item_reference", dict(members))


def is_reference(item: AnyItem) -> bool:
    """Does an item stand for turns which are not in the request?"""
    return isinstance(item, OtherItem) and item.kind in _HISTORY_ELSEWHERE


class Conversation:
    """Reads the items of one request in their order."""

    def __init__(self, *, history_elsewhere: bool) -> None:
        """`history_elsewhere`: the server keeps earlier turns, so their calls are not here."""
        self._pairing = Pairing(history_elsewhere=history_elsewhere)
        self._carried: dict[str, Seal] = {}
        """Seals of calls, by the call's id. This protocol has a place for them only in reasoning items."""
        self._messages: list[Message] = []

    def add(self, item: AnyItem, raw: msgspec.Raw, where: str) -> None:
        """The next item, at `where` in the request. Some only bring tools, or the seal of a call."""
        if item.__class__ is OtherItem and cast("OtherItem", item).kind == "additional_tools":
            return
        if item.__class__ is ReasoningItem and self._carries(cast("ReasoningItem", item)):
            return
        self._messages.append(self._paired(_READERS[item.__class__](item, raw, where), item, raw, where))

    def end(self) -> tuple[tuple[Message, ...], bool]:
        """All messages; and whether anything in the items is wrapped, see `Raw.wrapped`."""
        if self._carried:
            return tuple([self._with_seal(message) for message in self._messages]), True
        wrapped = any(message.raw is not None and message.raw.wrapped for message in self._messages)
        return tuple(self._messages), wrapped

    def _carries(self, item: ReasoningItem) -> bool:
        data = item.encrypted_content
        if not data or not data.startswith(OURS):
            return False
        envelope = from_slot(data, NAME)
        if envelope.call:
            self._carried[envelope.call] = envelope.seal
        return bool(envelope.call)

    def _paired(self, message: Message, item: AnyItem, raw: msgspec.Raw, where: str) -> Message:
        """Calls are noted, and results must have theirs. Both stand alone in their message."""
        part = message.parts[0] if message.parts else None
        if part.__class__ is ToolCall:
            self._pairing.call(cast("ToolCall", part).id)
        elif part.__class__ is ToolResult and not self._pairing.knows(id := cast("ToolResult", part).call_id):
            if not isinstance(item, OtherItem):
                self._pairing.refuse(id, join(where, "call_id"))
            # What a container of OpenAI's said: its call is this protocol's business too.
            return _opaque(item, raw)
        return message

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
    """The call's id as the client knows it."""
    return message.raw.parsed["call_id"] if message.raw is not None else ""


def _message(item: MessageItem, raw: msgspec.Raw, where: str) -> Message:
    role = _ROLES.get(item.role)
    if role is None:
        reject(f"{item.role!r} is not one of {', '.join(_ROLES)}", where, "role")
    content = item.content
    # Some clients send null on an assistant turn that only calls tools.
    if content is None and role != "assistant":
        reject("is required", where, "content")
    return Message(role, content_parts(content or "", join(where, "content")), None, Raw(NAME, raw))


def _reasoning(item: ReasoningItem, raw: msgspec.Raw, where: str) -> Message:
    seal, wrapped = _seal(item)
    thought = Thinking(_words(item.summary) or _words(_content(item, where)), seal)
    return Message("assistant", (thought,), None, Raw(NAME, raw, wrapped))


def _words(summaries: list[Summary] | None) -> str:
    return "\n\n".join([summary.text or "" for summary in summaries or ()])


def _content(item: ReasoningItem, where: str) -> list[Summary] | None:
    content = said(item.content)
    if content is None:
        return None
    try:
        return _summaries(content)
    except msgspec.ValidationError as error:
        raise refused(error, join(where, "content")) from None


def _seal(item: ReasoningItem) -> tuple[Seal | None, bool]:
    """The seal of a reasoning item, and whether the item may not go upstream as it is."""
    data, id = item.encrypted_content, item.id
    if data:
        seal = from_slot(data, NAME, id).seal
        return seal, seal.data != data
    # Stored by the provider: the id alone stands for the reasoning.
    return (Seal(NAME, "", id), is_made_up(id)) if id else (None, False)


def _function_call(item: FunctionCall, raw: msgspec.Raw, where: str) -> Message:
    return _called(item, raw, item.arguments, custom=False)


def _custom_call(item: CustomCall, raw: msgspec.Raw, where: str) -> Message:
    return _called(item, raw, item.input, custom=True)


def _called(item: CallItem, raw: msgspec.Raw, arguments: str | None, *, custom: bool) -> Message:
    id = from_client(item.call_id)
    call = ToolCall(
        id=id,
        name=item.name,
        arguments=arguments or "",
        kind="custom" if custom else "function",
        namespace=item.namespace,
        extras={"id": item.id} if item.id else None,
    )
    return Message("assistant", (call,), None, Raw(NAME, raw, id != item.call_id))


def _function_output(item: FunctionOutput, raw: msgspec.Raw, where: str) -> Message:
    return _answered(item, raw, where, custom=False)


def _custom_output(item: CustomOutput, raw: msgspec.Raw, where: str) -> Message:
    return _answered(item, raw, where, custom=True)


def _answered(item: OutputItem, raw: msgspec.Raw, where: str, *, custom: bool) -> Message:
    id = from_client(item.call_id)
    result = ToolResult(
        call_id=id,
        parts=output_parts(item.output, join(where, "output")),
        name=item.name,
        kind="custom" if custom else "function",
    )
    return Message("user", (result,), None, Raw(NAME, raw, id != item.call_id))


def _other(item: OtherItem, raw: msgspec.Raw, where: str) -> Message:
    """A built-in tool's call or output, if it was the client that ran it. Anything else stays opaque."""
    part: ToolCall | ToolResult | None = None
    if item.kind in builtins.CALLS:
        part = builtins.read_call(_whole(raw, where), where)
    elif item.kind in builtins.OUTPUTS:
        part = builtins.read_output(_whole(raw, where), where)
    if part is None:
        return _opaque(item, raw)
    role: Role = "assistant" if isinstance(part, ToolCall) else "user"
    return Message(role, (part,), None, Raw(NAME, raw, _has_escaped_id(item)))


def _whole(raw: msgspec.Raw, where: str) -> Obj:
    return value(raw, where)


def _opaque(item: OtherItem, raw: msgspec.Raw) -> Message:
    kept = Raw(NAME, raw, _has_escaped_id(item))
    role: Role = "user" if item.kind.endswith(_FROM_CLIENT) else "assistant"
    return Message(role, (Opaque(kept, item.kind),), None, kept)


def _has_escaped_id(item: OtherItem) -> bool:
    given = item.members.get(call_id_key(item.kind, item.members))
    id = None if given is None else value(given, "call_id")
    return isinstance(id, str) and from_client(id) != id


_READERS: dict[type, Callable[[Any, msgspec.Raw, str], Message]] = {
    MessageItem: _message,
    ReasoningItem: _reasoning,
    FunctionCall: _function_call,
    CustomCall: _custom_call,
    FunctionOutput: _function_output,
    CustomOutput: _custom_output,
    OtherItem: _other,
}
