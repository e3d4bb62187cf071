"""Read the messages of an Anthropic request as neutral messages.

msgspec decodes a list of common messages in one pass. If one message has an uncommon block, each message is
decoded separately, and that message block by block. So an unknown block stays opaque, an unknown member is
kept, and an error names the path of the block.

A client sends back what Dragoman put into its answers: escaped call ids, seals in envelopes, empty
signatures, citations of other providers, searches. No upstream may get these, so a message that holds one of
them has no `raw`: its parts hold the unwrapped values and all other members of their blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, cast

import msgspec

from ....model.messages import (
    Citation,
    Extras,
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
    members_for,
)
from ...common import call_ids, sealed_reasoning
from ...common.arguments import spelled
from ...common.fields import is_object, reject
from ...common.searches import with_calls
from ...common.turns import refuse_stray
from ...common.typed_json import (
    LazyArray,
    Members,
    Reader,
    items,
    member,
    members_of,
    opens_string,
    optional,
    value,
)
from .. import searches
from ..answer.decoder import read_citation
from ..own import NAME
from .read_media import media_of, result_parts
from .wire import (
    CallBlock,
    MessageEntry,
    OnlyText,
    RedactedBlock,
    ResultBlock,
    SentMessage,
    TextBlock,
    ThinkingBlock,
    any_content,
    one_message,
    usual_messages,
    without_content,
)

Undecoded = msgspec.Raw | None
"""The undecoded block, if the block was decoded separately."""

_NOTHING_ELSE = Extras(NAME, {})
_COMPACTION = "compaction"
"""A summary in the place of all turns before it."""
_ROLES: dict[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}

_usual_texts = msgspec.json.Decoder(list[OnlyText]).decode
_any_text = Reader(TextBlock)
_any_result = Reader(ResultBlock)
_ANY: dict[str, Reader[Any]] = {
    "text": _any_text,
    "tool_use": Reader(CallBlock),
    "thinking": Reader(ThinkingBlock),
    "redacted_thinking": Reader(RedactedBlock),
}


def read_system(raw: msgspec.Raw) -> Message | None:
    """Read the top-level system prompt as the first message. Its `raw` shows that it was at the top."""
    kept = Raw(NAME, {"system": raw})
    if opens_string(raw):
        text: str = value(raw, "system")
        return Message("system", (Text(text),), raw=kept) if text else None
    try:
        parts = tuple([read_text(block, None) for block in _usual_texts(raw)])
    except msgspec.ValidationError:
        parts = tuple(_system_text(block, f"system[{at}]") for at, block in enumerate(items(raw, "system")))
    return Message("system", parts, raw=kept) if parts else None


def _system_text(raw: msgspec.Raw, where: str) -> Text:
    members = members_of(raw, where)
    if member(members, "type", str, where) != "text":
        reject("expected a text block", where, "type")
    text, unknown = _any_text.split(members, where)
    return read_text(text, None if unknown is None else Extras(NAME, unknown))


def read_text(block: TextBlock | OnlyText, extras: Extras | None) -> Text:
    citations = tuple(map(_citation, block.citations)) if block.citations else ()
    return Text(block.text, block.cache_control or None, citations, extras)


def _citation(given: dict[str, Any]) -> Citation:
    """Read a citation. One of another provider has no `raw`: Anthropic does not know the page."""
    read = read_citation(given)
    return msgspec.structs.replace(read, raw=None) if _is_foreign(given) else read


def read_blocks(blocks: Sequence[msgspec.Raw], paths: Sequence[str], role: Role) -> tuple[Part, ...]:
    """Read Anthropic blocks of a message that also has parts of other protocols, as Cursor sends."""
    # Cursor's reader checks afterwards that each result answers a call, over the parts of all protocols.
    reader = MessageReader(history_elsewhere=True, path=lambda _, at: paths[at])
    return reader.blocks(role, blocks)


def _path(message: int, block: int) -> str:
    return f"messages[{message}].content[{block}]"


class MessageReader:
    """Reads the messages of one request, one after the other."""

    def __init__(self, *, history_elsewhere: bool, path: Callable[[int, int], str] = _path) -> None:
        """`history_elsewhere`: a result may answer a call that is not in the request.

        `path` makes the path of a block from the index of its message and its own index. It is called only
        for errors.
        """
        self.effort: str | None = None
        """The effort that the last system message with an `output_config` asks for."""
        self._calls: set[str] = set()
        self._elsewhere = history_elsewhere
        self._path = path
        self._message = 0
        self._block = 0
        self._role: Role = "user"
        self._wrapped = False
        """Does this message hold a value of Dragoman that no upstream may get?"""
        self._searched = False
        """Did Dragoman run a search for one of the messages?"""
        self._queries: dict[str, str] = {}
        """The query of each search, by the id of the search."""
        self._seals: dict[str, Seal] = {}
        """The seals of calls, by call id. Thinking blocks of the same message carry them."""

    def read(self, listed: LazyArray) -> list[Message]:
        """The messages of a request."""
        given = listed.decoded(usual_messages, one_message)
        messages = [self._read(message, listed, at) for at, message in enumerate(given)]
        return with_calls(messages) if self._searched else messages

    def _read(self, message: MessageEntry, listed: LazyArray, at: int) -> Message:
        self._message = at
        role, content = _ROLES.get(message.role), message.content
        if role is None:
            reject(f"{message.role!r} is not one of {', '.join(_ROLES)}", f"messages[{at}]", "role")
        if message.output_config is not msgspec.UNSET and role == "system":
            self._change_effort(message.output_config)
        if isinstance(content, str):
            return Message(role, (Text(content),) if content else (), None, Raw(NAME, listed, at=at))
        # A system message may only change the effort. Then it needs no content.
        if content is None and (role != "system" or optional(message.output_config) is None):
            reject("expected a string or an array of blocks", f"messages[{at}]", "content")
        parts = self._parts(role, content or ())
        if self._wrapped:
            return self._unwrapped(message, role, parts, SentMessage(listed, at))
        # Only what Dragoman wrapped carries a value for another block, so each block is a part here.
        return Message(role, cast("tuple[Part, ...]", tuple(parts)), None, Raw(NAME, listed, at=at))

    def _unwrapped(
        self, message: MessageEntry, role: Role, parts: Sequence[Part | None], sent: SentMessage
    ) -> Message:
        """A message that held values of Dragoman. `parts`: what each of its blocks became."""
        blocks = cast("Sequence[object]", message.content)
        kept: list[Part | None] = []
        for at, part in enumerate(parts):
            block = blocks[at]
            if isinstance(part, (ToolCall, ToolResult)):
                part = msgspec.structs.replace(part, raw=Raw(NAME, sent, at=at))
            elif isinstance(block, TextBlock) and not block.bare:
                part = self._any(sent[at])
            kept.append(part)
        # Only a message that was read block by block can have unknown members.
        usual = message.output_config is msgspec.UNSET and not isinstance(blocks[0], msgspec.Raw)
        return Message(role, self._joined(kept), extras=_NOTHING_ELSE if usual else sent.extras())

    def _change_effort(self, config: msgspec.Raw) -> None:
        where = f"messages[{self._message}].output_config"
        given = value(config, where)
        effort = given.get("effort") if is_object(given) else None
        if effort is not None and not isinstance(effort, str):
            reject("expected a string", where, "effort")
        self.effort = effort or self.effort

    def blocks(self, role: Role, blocks: Sequence[Any]) -> tuple[Part, ...]:
        """Read the blocks of a message. A block is a struct, or `msgspec.Raw` if it is not a common one."""
        return self._joined(self._parts(role, blocks))

    def _parts(self, role: Role, blocks: Sequence[Any]) -> list[Part | None]:
        """What each block becomes. None: it only carried a value for another block."""
        self._role, self._wrapped = role, False
        parts: list[Part | None] = []
        for self._block, block in enumerate(blocks):
            read = self.READERS.get(block.__class__)
            parts.append(self._any(block) if read is None else read(self, block, None, None))
        return parts

    def _joined(self, read: Iterable[Part | None]) -> tuple[Part, ...]:
        parts = [part for part in read if part is not None]
        if self._seals:
            parts = [_sealed(part, self._seals) for part in parts]
            self._seals = {}
        return tuple(parts)

    def _where(self) -> str:
        return self._path(self._message, self._block)

    def _any(self, raw: msgspec.Raw) -> Part | None:
        """Read a block of any type. It may have members that its struct does not declare."""
        where = self._where()
        members = members_of(raw, where)
        type: str = member(members, "type", str, where)
        if type == "tool_result":
            block, unknown = _any_result.split(without_content(members), where)
            result = self._result(block, _rest(block, unknown or (), members), raw)
            parts = result_parts(any_content(members, where), where)
            return msgspec.structs.replace(result, parts=parts)
        reader = _ANY.get(type)
        if reader is not None:
            block, unknown = reader.split(members, where)
            return self.READERS[block.__class__](self, block, _rest(block, unknown or (), members), raw)
        return media_of(type, members, raw, where) or self._opaque(type, raw)

    def _opaque(self, type: str, raw: msgspec.Raw) -> Opaque | Search | Text | None:
        part = Opaque(Raw(NAME, raw), type)
        block = part.raw.parsed
        if type == _COMPACTION and (summary := block.get("content")) and isinstance(summary, str):
            return Text(summary, extras=Extras(NAME, members_of(raw, "")))
        if type in (searches.CALL, searches.RESULT) and (id := searches.own_id(block)) is not None:
            self._searched = self._wrapped = True
            if type == searches.RESULT:
                return searches.search_of(block, self._queries.get(id, ""))
            self._queries[id] = searches.query_of(block)
            return None
        # Anthropic adds kinds of calls (`server_tool_use`, `mcp_tool_use`, …). A result may answer any block
        # with an id, so an unknown kind of call must not make its result a stray one.
        id = block.get("id")
        if isinstance(id, str):
            self._calls.add(id)
        return part

    def _text(self, block: TextBlock, extras: Extras | None, raw: Undecoded) -> Text:
        if block.citations and any(map(_is_foreign, block.citations)):
            self._wrapped = True
        return read_text(block, extras)

    def _call(self, block: CallBlock, extras: Extras | None, raw: Undecoded) -> ToolCall:
        if self._role != "assistant":
            self._misplaced("tool_use", "assistant")
        id, arguments = block.id, spelled(block.input)
        if arguments[0] != "{":
            # Anthropic refuses null. Here it means a call without arguments.
            arguments = "{}" if arguments == "null" else reject("expected an object", self._where(), "input")
        if block.caller is not None:
            extras = Extras(NAME, {**members_for(NAME, extras), "caller": block.caller})
        if id[:3] == call_ids.OURS:
            id = self._own_id(id)
        self._calls.add(id)
        return ToolCall(
            id=id,
            name=block.name,
            arguments=arguments,
            namespace=block.toolset_name,
            cache=block.cache_control,
            raw=None if raw is None else Raw(NAME, raw),
            extras=extras,
        )

    def _own_id(self, id: str) -> str:
        """The upstream's id behind an id that Dragoman made for the client."""
        own = call_ids.from_client(id)
        self._wrapped = self._wrapped or own != id
        return own

    def _answered(self, id: str) -> str:
        """The id of the call that a result answers."""
        if id[:3] == call_ids.OURS:
            id = self._own_id(id)
        if id not in self._calls and not self._elsewhere:
            refuse_stray(id, f"{self._where()}.tool_use_id")
        return id

    def _misplaced(self, type: str, role: Role) -> None:
        text = f"{type!r} can only stand in {role!r} messages, not in {self._role!r}"
        reject(text, self._where(), "type")

    def _result(self, block: ResultBlock, extras: Extras | None, raw: Undecoded) -> ToolResult:
        if self._role != "user":
            self._misplaced("tool_result", "user")
        content = block.content
        if isinstance(content, list):
            parts = tuple([read_text(text, None) for text in content])
        else:
            parts = (Text(content),) if content else ()
        return ToolResult(
            call_id=self._answered(block.tool_use_id),
            parts=parts,
            is_error=block.is_error is True,
            cache=block.cache_control,
            raw=None if raw is None else Raw(NAME, raw),
            extras=extras,
        )

    def _thinking(self, block: ThinkingBlock, extras: Extras | None, raw: Undecoded) -> Thinking | None:
        signature = block.signature
        if not signature:
            # Another model than Claude thought this. Anthropic refuses an empty signature with a 400, so the
            # message must not go to Claude as it is.
            self._wrapped = True
            given = {} if signature is msgspec.UNSET else {"signature": signature}
            return Thinking(block.thinking, None, Extras(NAME, {**members_for(NAME, extras), **given}))
        if not signature.startswith(sealed_reasoning.OURS):
            return Thinking(block.thinking, Seal(NAME, signature), extras)
        envelope = sealed_reasoning.from_slot(signature, NAME)
        self._wrapped = True
        if not envelope.call or envelope.seal.protocol == NAME:
            return Thinking(block.thinking, envelope.seal, extras)
        # The envelope names the call by the client's id or by the upstream's id, depending on which side of
        # the translation sealed it. The call is found by either.
        self._seals[envelope.call] = self._seals[call_ids.from_client(envelope.call)] = envelope.seal
        return Thinking(block.thinking) if block.thinking else None

    def _redacted(self, block: RedactedBlock, extras: Extras | None, raw: Undecoded) -> Thinking:
        seal = sealed_reasoning.from_slot(block.data, NAME).seal
        if seal.data == block.data:
            seal = msgspec.structs.replace(seal, redacted=True)
        else:
            self._wrapped = True
        return Thinking("", seal, extras)

    READERS: ClassVar[dict[type, Callable[[MessageReader, Any, Extras | None, Undecoded], Part | None]]] = {
        TextBlock: _text,
        CallBlock: _call,
        ResultBlock: _result,
        ThinkingBlock: _thinking,
        RedactedBlock: _redacted,
    }
    """The reader of each block struct."""


def _sealed(part: Part, of_calls: dict[str, Seal]) -> Part:
    if isinstance(part, ToolCall) and part.id in of_calls:
        return msgspec.structs.replace(part, seal=of_calls[part.id])
    return part


def _rest(block: Any, unknown: Iterable[str], members: Members) -> Extras | None:
    """The members of a block that its part does not hold as the client spelled them."""
    rest: dict[str, Any] = {name: members[name] for name in unknown}
    if isinstance(block, TextBlock):
        rest |= {name: members[name] for name in ("cache_control", "citations") if name in members}
        if block.citations:
            given = zip(block.citations, items(members["citations"], ""), strict=True)
            rest["citations"] = [raw for citation, raw in given if not _is_foreign(citation)]
            if not rest["citations"]:
                del rest["citations"]
    return Extras(NAME, rest) if rest else None


def _is_foreign(citation: dict[str, Any]) -> bool:
    """Is this a web citation of another protocol? Anthropic's own have an encrypted index."""
    return citation.get("encrypted_index") == ""
