"""Read each input item of a Responses request as one neutral message.

`read_item` looks at one item only. `ItemReader` also checks that each result has its call, and adds the seals
that other items carry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
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
    Search,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ...common.call_ids import OURS, from_client
from ...common.fields import Obj, reject
from ...common.sealed_reasoning import Envelope, from_slot
from ...common.searches import with_calls
from ...common.turns import refuse_stray
from ...common.typed_json import LazyArray, bad_request, items, members_of, optional, value
from .. import builtins, compaction, searches
from ..own import NAME, call_id_key, summary_texts
from .read_parts import output_part, read_part, read_text
from .wire import (
    AnyItem,
    AnyMessageItem,
    CallItem,
    CustomCall,
    CustomOutput,
    FunctionCall,
    FunctionOutput,
    InputText,
    MessageItem,
    OtherItem,
    OutputItem,
    OutputText,
    ReasoningItem,
    Summary,
    ToolItem,
    decode_item,
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
# Items with tools: the code mode of Codex has no top-level `tools`, and the output of a tool search holds the
# definitions that it found.
_ADDITIONAL_TOOLS = "additional_tools"
_TOOL_ITEMS = (_ADDITIONAL_TOOLS, "tool_search_output")
# `ItemIds.mint` makes ids of this form. OpenAI's own ids have one underscore.
_MADE_UP = re.compile(r"rs_[A-Za-z0-9]+_\d+")
# The members of an item that its neutral form holds.
_FUNCTION_CALL = frozenset({"type", "call_id", "namespace", "name", "arguments"})
_CUSTOM_CALL = frozenset({"type", "call_id", "namespace", "name", "input"})
_RESULT = frozenset({"type", "call_id", "output"})
_REASONING = frozenset({"type", "id", "encrypted_content"})
_NONE = msgspec.Raw(b"[]")
_EMPTY = (msgspec.Raw(b"null"), msgspec.Raw(b'""'), _NONE)
_NO_MEMBERS = Extras(NAME, {})
"""It says that the message came in this protocol."""
# The endings of item types that come from the client, among the types that only this protocol has.
_FROM_CLIENT = ("_output", "_response", "_trigger", "_update")

_decode_summaries = msgspec.json.Decoder(list[Summary]).decode


def read_item(raw: msgspec.Raw, where: str) -> Message:
    """Read the input item at `where`. An item without neutral meaning becomes an `Opaque`."""
    item = decode_item(raw, where)
    return _READERS[item.__class__](item, Raw(NAME, raw), where)


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
        self._messages: list[Message] = []
        self.tool_items: list[ToolItem] = []

    def read(self, items: Sequence[AnyItem], listed: LazyArray) -> list[Message]:
        """Read `items`, which were decoded from `listed`."""
        messages, calls = self._messages, self._calls
        for at, item in enumerate(items):
            kind, raw = type(item), Raw(NAME, listed, at=at)
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
                elif type(part) is Search:
                    messages += with_calls([message])
                    continue
            messages.append(message)
        return [self._with_seal(message) for message in messages] if self._carried else messages

    def _rare(self, item: AnyItem, raw: Raw, at: int) -> Message | None:
        """Read the item; None if it only holds tools, or the seal of a call."""
        if type(item) is ReasoningItem:
            envelope = _envelope(item)
            if envelope is None or not envelope.call:
                return _reasoned(item, envelope, raw, at)
            # It may be the client's id of the call, or the upstream's.
            self._carried[from_client(envelope.call)] = self._carried[envelope.call] = envelope.seal
            return None
        if type(item) is OtherItem and item.kind in _TOOL_ITEMS and _tools_in(item):
            found = item.kind != _ADDITIONAL_TOOLS
            self.tool_items.append(ToolItem(raw, len(self._messages), found))
            if not found:
                return None  # `read_tools` reads them
        return _READERS[type(item)](item, raw, at)

    def _unpaired(self, result: ToolResult, item: AnyItem, raw: Raw, at: int) -> Message:
        """Read a result whose call is not in the request."""
        if not isinstance(item, OtherItem):
            refuse_stray(result.call_id, f"input[{at}].call_id")
        # The output of a built-in tool. Its call may be an item that only OpenAI understands.
        return _opaque(item, raw)

    def _with_seal(self, message: Message) -> Message:
        match message.parts:
            case (ToolCall(id=id) as call,) if id in self._carried:
                sealed = msgspec.structs.replace(call, seal=self._carried[id])
                return msgspec.structs.replace(message, parts=(sealed,))
            case _:
                return message


def _tools_in(item: OtherItem) -> bool:
    """Does the item declare any tools?"""
    given = optional(item.members.get("tools", msgspec.UNSET))
    return given is not None and bool(items(given, "tools"))


def _alone(role: Role, part: Part, raw: Raw, *, kept: bool) -> Message:
    """A message of one part. An item with a value of Dragoman is not `kept`: its part holds the rest."""
    return Message(role, (part,), None, raw) if kept else Message(role, (part,), extras=_NO_MEMBERS)


def _unknown(raw: Raw, understood: Container[str]) -> Obj:
    """The members of an item that its neutral form does not hold. Empty ones have none."""
    members = members_of(raw.value, "input")
    return {key: given for key, given in members.items() if key not in understood or given in _EMPTY}


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
        seal, kept = envelope.seal, envelope.seal.data == item.encrypted_content
    elif item.id is not None and _MADE_UP.fullmatch(item.id):
        # Visible reasoning of a model without encrypted content. The upstream does not know the id.
        seal, kept = None, False
    else:
        # With `store: true`, the provider keeps the reasoning, and the item has only the id.
        seal, kept = Seal(NAME, "", item.id) if item.id else None, True
    words = _words(item.summary or ())
    if not words and (content := optional(item.content)) is not None:
        words = _words(_summaries(content, where))
    extras = None if kept else _beside_reasoning(raw, words)
    thinking = Thinking(SEPARATOR.join(words), seal, extras, words if len(words) > 1 else ())
    return _alone("assistant", thinking, raw, kept=kept)


def _beside_reasoning(raw: Raw, words: Sequence[str]) -> Extras | None:
    """The members of a reasoning item besides its seal, and its summary if that is more than `words`."""
    unknown = _unknown(raw, _REASONING)
    given: Any = value(unknown.pop("summary", _NONE), "summary")
    if given != summary_texts(words):
        unknown["summary"] = given
    return Extras(NAME, unknown) if unknown else None


def _words(summaries: Sequence[Summary]) -> tuple[str, ...]:
    return tuple([summary.text for summary in summaries if summary.text])


def _summaries(content: msgspec.Raw, where: Place) -> list[Summary]:
    try:
        return _decode_summaries(content)
    except msgspec.ValidationError as error:
        raise bad_request(error, f"{_path(where)}.content") from None


def _call(item: CallItem, raw: Raw, where: Place) -> Message:
    custom, kept = type(item) is CustomCall, not item.call_id.startswith(OURS)
    members: Obj = {} if kept else _unknown(raw, _CUSTOM_CALL if custom else _FUNCTION_CALL)
    if item.id:
        members["id"] = item.id
    call = ToolCall(
        id=from_client(item.call_id),
        name=item.name,
        arguments=item.arguments or "",
        kind="custom" if custom else "function",
        namespace=item.namespace,
        extras=Extras(NAME, members) if members else None,
    )
    return _alone("assistant", call, raw, kept=kept)


def _output(item: OutputItem, raw: Raw, where: Place) -> Message:
    kept, output = not item.call_id.startswith(OURS), item.output
    if isinstance(output, str):
        parts: tuple[Text | Media, ...] = (Text(output),) if output else ()
    else:
        listed = enumerate(output or ())
        parts = tuple(
            [output_part(part, f"{_path(where)}.output[{at}]", keep=not kept) for at, part in listed]
        )
    result = ToolResult(
        call_id=from_client(item.call_id),
        parts=parts,
        name=item.name,
        kind="custom" if type(item) is CustomOutput else "function",
        extras=None if kept else Extras(NAME, _unknown(raw, _RESULT)),
    )
    return _alone("user", result, raw, kept=kept)


def _other(item: OtherItem, raw: Raw, where: Place) -> Message:
    """Read a call or output of a built-in tool that the client ran. Any other item stays opaque."""
    path = _path(where)
    if item.kind == compaction.ITEM:
        return _compacted(item, raw, path)
    if item.kind == searches.ITEM and searches.is_own(given := value(raw.value, path)):
        return _alone("assistant", searches.search_of(given), raw, kept=False)
    part: ToolCall | ToolResult | None = None
    if item.kind in builtins.CALLS:
        part = builtins.read_call(value(raw.value, path), path)
    elif item.kind in builtins.OUTPUTS:
        part = builtins.read_output(value(raw.value, path), path)
    if part is None:
        return _opaque(item, raw)
    kept = not _call_id(item).startswith(OURS)
    if not kept:
        # It has its own type, so it is written from its members, and not as an ordinary call or output.
        members = {**item.members, call_id_key(item.kind, item.members): from_client(_call_id(item))}
        part = msgspec.structs.replace(part, extras=Extras(NAME, members))
    return _alone("assistant" if isinstance(part, ToolCall) else "user", part, raw, kept=kept)


def _compacted(item: OtherItem, raw: Raw, path: str) -> Message:
    """Read a compaction item. The summary of Dragoman becomes text, any other item stays opaque."""
    data = item.members.get("encrypted_content")
    summary = None if data is None else compaction.summary_of(value(data, path))
    return _opaque(item, raw) if summary is None else _alone("user", Text(summary), raw, kept=False)


def is_trigger(item: OtherItem) -> bool:
    """Does this item ask for compaction of the conversation?"""
    return item.kind == compaction.TRIGGER


def _opaque(item: OtherItem, raw: Raw) -> Message:
    role: Role = "user" if item.kind.endswith(_FROM_CLIENT) else "assistant"
    id = _call_id(item)
    own = from_client(id)
    kept = own == id
    if not kept:
        raw = Raw(NAME, {**item.members, call_id_key(item.kind, item.members): own})
    return _alone(role, Opaque(raw, item.kind), raw, kept=kept)


def _call_id(item: OtherItem) -> str:
    """The id of the call that the item is, or answers."""
    given = item.members.get(call_id_key(item.kind, item.members))
    id = None if given is None else value(given, "call_id")
    return id if isinstance(id, str) else ""


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
