"""One message of an Anthropic request as a neutral one: pure functions of its JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

from ....messages import (
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
from ... import ids, seals
from ...fields import (
    Obj,
    boolean,
    choice,
    is_array,
    is_object,
    mapping,
    need_string,
    objects,
    reject,
    string,
)
from ...plain import arguments
from ..decoder import NAME, read_citation
from .read_tools import read_cache, rest

_ROLES = ("user", "assistant", "system")
_HOME = {"tool_use": "assistant", "tool_result": "user"}
_TEXT_FIELDS = frozenset({"type", "text", "cache_control", "citations"})
_THINKING_FIELDS = frozenset({"type", "thinking", "signature", "data"})
_CALL_FIELDS = frozenset({"type", "id", "name", "input", "cache_control", "toolset_name"})

_json = msgspec.json.Encoder().encode


def read_message(message: Obj, where: str, inputs: Iterator[msgspec.Raw] | None = None) -> Message:
    """One of `messages`. What a system message says beside its content stays raw. `inputs` are those of its
    calls as they were spelled, where that is known."""
    role = cast("Role | None", choice(message, "role", where, _ROLES))
    if role is None:
        reject("is required", where, "role")
    parts = _read_content(message, where, role, inputs or iter(()))
    return Message(role, parts, raw=Raw(NAME, message))


def read_system(system: Any) -> Message | None:
    """The top-level system prompt as a leading message; its `raw` says that it stood at the top."""
    raw = Raw(NAME, {"system": system})
    if isinstance(system, str):
        return Message("system", (Text(system),), raw=raw) if system else None
    if not is_array(system):
        reject("expected a string or an array of text blocks", "system")
    blocks = objects({"system": system}, "system", "")
    parts = tuple(_read_text(block, where) for where, block in blocks)
    return Message("system", parts, raw=raw) if parts else None


def _read_content(message: Obj, where: str, role: Role, inputs: Iterator[msgspec.Raw]) -> tuple[Part, ...]:
    content = message.get("content")
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if is_array(content):
        return read_blocks(objects(message, "content", where), role, inputs)
    # A system message may do nothing but change the effort from here on.
    if content is None and role == "system" and message.get("output_config") is not None:
        return ()
    return reject("expected a string or an array of blocks", where, "content")


def read_blocks(blocks: list[tuple[str, Obj]], role: Role, inputs: Iterator[msgspec.Raw]) -> tuple[Part, ...]:
    """Blocks, each with its path, as parts of a message of `role`."""
    parts: list[Part] = []
    of_calls: dict[str, Seal] = {}
    for where, block in blocks:
        part = _read_block(block, where, role, of_calls, inputs)
        if part is not None:
            parts.append(part)
    if of_calls:
        parts = [_sealed(part, of_calls) for part in parts]
    return tuple(parts)


def _read_block(
    block: Obj, where: str, role: Role, of_calls: dict[str, Seal], inputs: Iterator[msgspec.Raw]
) -> Part | None:
    """A block as a part. None for one that only carried a call's seal, now in `of_calls`."""
    type = need_string(block, "type", where)
    home = _HOME.get(type, role)
    if home != role:
        reject(f"{type!r} can only stand in {home!r} messages, not in {role!r}", where, "type")
    if type == "thinking":
        return _read_thinking(block, where, of_calls)
    if type == "tool_use":
        return _read_call(block, where, next(inputs, None))
    read = _READERS.get(type)
    part = read(block, where) if read else None
    return part or Opaque(Raw(NAME, block), type)


def _read_text(block: Obj, where: str) -> Text:
    if block.get("type") != "text":
        reject("expected a text block", where, "type")
    citations = objects(block, "citations", where)
    return Text(
        need_string(block, "text", where),
        read_cache(block, where),
        tuple(read_citation(citation) for _, citation in citations),
        rest(block, _TEXT_FIELDS),
    )


def _read_thinking(block: Obj, where: str, of_calls: dict[str, Seal]) -> Thinking | None:
    text = need_string(block, "thinking", where)
    signature = string(block, "signature", where)
    # Models that are no Claude, and our own encoder on behalf of such, leave the signature empty.
    envelope = seals.from_slot(signature, NAME) if signature else None
    if envelope is None or not envelope.call:
        return Thinking(text, envelope and envelope.seal, rest(block, _THINKING_FIELDS))
    # The call's id may have been written as the client sees it, or as the upstream gave it.
    of_calls[envelope.call] = of_calls[ids.from_client(envelope.call)] = envelope.seal
    return Thinking(text) if text else None


def _sealed(part: Part, of_calls: dict[str, Seal]) -> Part:
    if isinstance(part, ToolCall) and part.id in of_calls:
        return msgspec.structs.replace(part, seal=of_calls[part.id])
    return part


def _read_redacted(block: Obj, where: str) -> Thinking:
    data = need_string(block, "data", where)
    seal = seals.from_slot(data, NAME).seal
    if seal.data == data:
        seal = msgspec.structs.replace(seal, redacted=True)
    return Thinking("", seal, rest(block, _THINKING_FIELDS))


def _read_call(block: Obj, where: str, spelled: msgspec.Raw | None) -> ToolCall:
    input = mapping(block, "input", where)
    return ToolCall(
        id=ids.from_client(_filled(block, "id", where)),
        name=_filled(block, "name", where),
        arguments=_json(input or {}).decode() if input is None or spelled is None else arguments(spelled),
        namespace=string(block, "toolset_name", where),
        cache=read_cache(block, where),
        raw=Raw(NAME, block),
        extras=rest(block, _CALL_FIELDS),
    )


def _filled(block: Obj, key: str, where: str) -> str:
    return need_string(block, key, where) or reject("must not be empty", where, key)


def _read_result(block: Obj, where: str) -> ToolResult:
    return ToolResult(
        call_id=ids.from_client(_filled(block, "tool_use_id", where)),
        parts=_read_result_content(block, where),
        is_error=boolean(block, "is_error", where) or False,
        cache=read_cache(block, where),
        raw=Raw(NAME, block),
    )


def _read_result_content(block: Obj, where: str) -> tuple[Text | Media, ...]:
    content = block.get("content")
    if content is None:
        return ()
    if isinstance(content, str):
        return (Text(content),) if content else ()
    if not is_array(content):
        reject("expected a string or an array of blocks", where, "content")
    return tuple(_read_result_block(b, at) for at, b in objects(block, "content", where))


def _read_result_block(block: Obj, where: str) -> Text | Media:
    """What a tool answered. The result's own `raw` keeps the kinds that only Anthropic knows."""
    type = need_string(block, "type", where)
    if type == "text":
        return _read_text(block, where)
    if type == "tool_reference":
        return Text(f"The tool {need_string(block, 'tool_name', where)} can be called now.")
    read = _MEDIA.get(type)
    media = read(block, where) if read else None
    return media or Text(_json(block).decode())


def _read_image(block: Obj, where: str) -> Media | None:
    source, at = _source(block, where)
    media = Media(kind="image", cache=read_cache(block, where), raw=Raw(NAME, block))
    match source.get("type"):
        case "base64":
            return msgspec.structs.replace(
                media,
                media_type=need_string(source, "media_type", at),
                data=need_string(source, "data", at),
            )
        case "url":
            return msgspec.structs.replace(media, url=need_string(source, "url", at))
        case "file":
            return msgspec.structs.replace(media, file_id=need_string(source, "file_id", at))
        case _:
            return None


def _read_document(block: Obj, where: str) -> Media | None:
    source, at = _source(block, where)
    media = Media(
        kind="document",
        media_type=string(source, "media_type", at) or "",
        name=string(block, "title", where),
        context=string(block, "context", where),
        cache=read_cache(block, where),
        raw=Raw(NAME, block),
    )
    match source.get("type"):
        case "base64":
            return msgspec.structs.replace(media, data=need_string(source, "data", at))
        case "text":
            return msgspec.structs.replace(media, text=need_string(source, "data", at))
        case "content":
            text = _words(source.get("content"))
            return msgspec.structs.replace(media, text=text, media_type="text/plain")
        case "url":
            return msgspec.structs.replace(media, url=need_string(source, "url", at))
        case "file":
            return msgspec.structs.replace(media, file_id=need_string(source, "file_id", at))
        case _:
            return None


def _source(block: Obj, where: str) -> tuple[Obj, str]:
    source = mapping(block, "source", where)
    if source is None:
        reject("is required", where, "source")
    need_string(source, "type", f"{where}.source")
    return source, f"{where}.source"


def _read_search_result(block: Obj, where: str) -> Media:
    """A search result is a text with a title and a place where it was found."""
    return Media(
        kind="document",
        media_type="text/plain",
        text=_words(block.get("content")),
        name=need_string(block, "title", where),
        context=need_string(block, "source", where),
        cache=read_cache(block, where),
        raw=Raw(NAME, block),
    )


def _words(content: Any) -> str:
    """The text of a string or of a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = [b for b in content if is_object(b)] if is_array(content) else []
    return "\n\n".join(b["text"] for b in blocks if isinstance(b.get("text"), str))


_MEDIA: dict[str, Callable[[Obj, str], Media | None]] = {
    "image": _read_image,
    "document": _read_document,
    "search_result": _read_search_result,
}
# Everything else is opaque: server tools and their results, compactions, whatever is to come.
_READERS: dict[str, Callable[[Obj, str], Part | None]] = {
    "text": _read_text,
    "redacted_thinking": _read_redacted,
    "tool_result": _read_result,
    **_MEDIA,
}
