"""One message of an Anthropic request as a neutral one: pure functions of its JSON.

A message of usual blocks is decoded in one go. Any other message is read block by block, so that an unknown
block stays opaque, an unknown member is kept, and a mistake is named by its path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, cast

import msgspec

from ....messages import Message, Opaque, Part, Raw, Role, Seal, Text, Thinking, ToolCall, ToolResult
from ... import ids, seals
from ...arguments import spelled
from ...fields import Obj, is_object, join, reject
from ...typed import Reader, items, member, members_of, opens_object, opens_string, said, value
from ..decoder import NAME, read_citation
from .read_media import media_of, result_parts
from .restore import is_borrowed
from .wire import (
    NO_INPUT,
    AnyMessage,
    AnyResultBlock,
    CallBlock,
    RedactedBlock,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    UsualMessage,
)

_ROLES = ("user", "assistant", "system")
_NULL = msgspec.Raw(b"null")

_usual_message = msgspec.json.Decoder(UsualMessage).decode
_usual_texts = msgspec.json.Decoder(list[TextBlock]).decode
_any_message = Reader(AnyMessage)
_any_text = Reader(TextBlock)


class MessageReader:
    """Reads the messages of one request."""

    def __init__(self) -> None:
        self.effort: str | None = None
        """The effort that the last system message with an `output_config` asks for."""

    def read(self, raw: msgspec.Raw, at: int) -> Message:
        """The message at that place of `messages`."""
        where = f"messages[{at}]"
        try:
            message = _usual_message(raw)
        except msgspec.ValidationError:
            message = _any_message.read(raw, where)
        role, content = cast("Role", message.role), message.content
        if role not in _ROLES:
            reject(f"{role!r} is not one of {', '.join(_ROLES)}", where, "role")
        config = said(message.output_config)
        if config is not None and role == "system":
            self._change_effort(config, join(where, "output_config"))
        elif content is None:
            reject("expected a string or an array of blocks", where, "content")
        if content.__class__ is str:
            return Message(role, (Text(cast("str", content)),) if content else (), None, Raw(NAME, raw))
        blocks = _Blocks(role, lambda at: f"{where}.content[{at}]")
        parts = blocks.read(content or ())
        return Message(role, parts, None, Raw(NAME, raw, blocks.wrapped))

    def _change_effort(self, config: msgspec.Raw, where: str) -> None:
        given = value(config, where)
        effort = given.get("effort") if is_object(given) else None
        if effort is not None and not isinstance(effort, str):
            reject("expected a string", where, "effort")
        self.effort = effort or self.effort


def read_system(raw: msgspec.Raw) -> Message | None:
    """The top-level system prompt as a leading message; its `raw` says that it stood at the top."""
    kept = Raw(NAME, {"system": raw})
    if opens_string(raw):
        text: str = value(raw, "system")
        return Message("system", (Text(text),), raw=kept) if text else None
    try:
        parts = tuple(map(read_text, _usual_texts(raw)))
    except msgspec.ValidationError:
        parts = tuple(_system_text(block, f"system[{at}]") for at, block in enumerate(items(raw, "system")))
    return Message("system", parts, raw=kept) if parts else None


def _system_text(raw: msgspec.Raw, where: str) -> Text:
    members = members_of(raw, where)
    if member(members, "type", str, where) != "text":
        reject("expected a text block", where, "type")
    return read_text(*_any_text.split(members, where))


def read_text(block: TextBlock, extras: Obj | None = None) -> Text:
    citations = tuple(map(read_citation, block.citations)) if block.citations else ()
    return Text(block.text, block.cache_control, citations, extras)


def read_blocks(blocks: Sequence[msgspec.Raw], paths: Sequence[str], role: Role) -> tuple[Part, ...]:
    """Blocks among those of other protocols, each at its path, in a message of `role`."""
    return _Blocks(role, paths.__getitem__).read(blocks)


class _Blocks:
    """Reads the blocks of one message."""

    def __init__(self, role: Role, where: Callable[[int], str]) -> None:
        """`where`: the path of the block at a place, made only to complain."""
        self.wrapped = False
        """Is there something that no upstream may get as it is? See `messages.Raw.wrapped`."""
        self._role = role
        self._where = where
        self._at = 0
        self._seals: dict[str, Seal] = {}
        """The seals of calls, by call id: they came in thinking blocks of this message."""

    def read(self, blocks: Sequence[Any]) -> tuple[Part, ...]:
        """The blocks as parts. A block is decoded, or `msgspec.Raw`."""
        parts: list[Part] = []
        for self._at, block in enumerate(blocks):
            read = _READERS.get(block.__class__)
            part = read(self, block, None, None) if read else self._any(block)
            if part is not None:
                parts.append(part)
        return tuple([_sealed(part, self._seals) for part in parts] if self._seals else parts)

    def _path(self) -> str:
        return self._where(self._at)

    def _any(self, raw: msgspec.Raw) -> Part | None:
        """A block of any type, perhaps with members that its struct does not name."""
        where = self._path()
        members = members_of(raw, where)
        type: str = member(members, "type", str, where)
        reader = _ANY.get(type)
        if reader is not None:
            block, extras = reader.split(members, where)
            return _READERS[block.__class__](self, block, extras, raw)
        return media_of(type, members, raw, where) or Opaque(Raw(NAME, raw), type)

    def _text(self, block: TextBlock, extras: Obj | None, raw: msgspec.Raw | None) -> Text:
        if block.citations and any(map(is_borrowed, block.citations)):
            self.wrapped = True
        return read_text(block, extras)

    def _call(self, block: CallBlock, extras: Obj | None, raw: msgspec.Raw | None) -> ToolCall:
        self._check_role("tool_use", "assistant")
        given = NO_INPUT if block.input == _NULL else block.input
        if not opens_object(given):
            reject("expected an object", self._path(), "input")
        if block.caller is not None:
            extras = {**(extras or {}), "caller": block.caller}
        return ToolCall(
            id=self._id(block.id),
            name=block.name,
            arguments=spelled(given),
            namespace=block.toolset_name,
            cache=block.cache_control,
            raw=None if raw is None else Raw(NAME, raw),
            extras=extras,
        )

    def _check_role(self, type: str, role: Role) -> None:
        if self._role != role:
            text = f"{type!r} can only stand in {role!r} messages, not in {self._role!r}"
            reject(text, self._path(), "type")

    def _id(self, id: str) -> str:
        """A call's id as the upstream knows it."""
        if not id.startswith(ids.OURS):
            return id
        self.wrapped = True
        return ids.from_client(id)

    def _result(self, block: ResultBlock, extras: Obj | None, raw: msgspec.Raw | None) -> ToolResult:
        self._check_role("tool_result", "user")
        content = block.content
        if content.__class__ is list:
            parts = tuple([read_text(text) for text in cast("list[TextBlock]", content)])
        else:
            parts = (Text(cast("str", content)),) if content else ()
        return ToolResult(
            call_id=self._id(block.tool_use_id),
            parts=parts,
            is_error=block.is_error is True,
            cache=block.cache_control,
        )

    def _any_result(self, block: AnyResultBlock, extras: Obj | None, raw: msgspec.Raw | None) -> ToolResult:
        self._check_role("tool_result", "user")
        return ToolResult(
            call_id=self._id(block.tool_use_id),
            parts=result_parts(block.content, self._path()),
            is_error=block.is_error is True,
            cache=block.cache_control,
            raw=Raw(NAME, raw),
        )

    def _thinking(self, block: ThinkingBlock, extras: Obj | None, raw: msgspec.Raw | None) -> Thinking | None:
        signature = block.signature
        if not signature:
            # A model that is not Claude made it. No Claude takes an empty signature.
            self.wrapped = True
            return Thinking(block.thinking, None, extras)
        envelope = seals.from_slot(signature, NAME)
        if envelope.seal.data != signature:
            self.wrapped = True
        if not envelope.call:
            return Thinking(block.thinking, envelope.seal, extras)
        # The call's id may be written as the client sees it, or as the upstream gave it.
        self._seals[envelope.call] = self._seals[ids.from_client(envelope.call)] = envelope.seal
        return Thinking(block.thinking) if block.thinking else None

    def _redacted(self, block: RedactedBlock, extras: Obj | None, raw: msgspec.Raw | None) -> Thinking:
        seal = seals.from_slot(block.data, NAME).seal
        if seal.data == block.data:
            seal = msgspec.structs.replace(seal, redacted=True)
        else:
            self.wrapped = True
        return Thinking("", seal, extras)

    # The readers of blocks by the struct they take.
    READERS: ClassVar[dict[type, Callable[[_Blocks, Any, Obj | None, msgspec.Raw | None], Part | None]]] = {
        TextBlock: _text,
        CallBlock: _call,
        ResultBlock: _result,
        AnyResultBlock: _any_result,
        ThinkingBlock: _thinking,
        RedactedBlock: _redacted,
    }


_READERS = _Blocks.READERS
_ANY: dict[str, Reader[Any]] = {
    "text": _any_text,
    "tool_use": Reader(CallBlock),
    "tool_result": Reader(AnyResultBlock),
    "thinking": Reader(ThinkingBlock),
    "redacted_thinking": Reader(RedactedBlock),
}


def _sealed(part: Part, of_calls: dict[str, Seal]) -> Part:
    if isinstance(part, ToolCall) and part.id in of_calls:
        return msgspec.structs.replace(part, seal=of_calls[part.id])
    return part
