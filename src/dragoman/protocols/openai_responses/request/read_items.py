"""One input item of a Responses request as one neutral message.

`read_item` is pure: the same item gives the same message, whatever stands around it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ....messages import (
    Cache,
    Citation,
    Media,
    Message,
    Opaque,
    Part,
    Raw,
    Refusal,
    Role,
    Seal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ... import inline
from ...fields import (
    Obj,
    integer,
    is_array,
    join,
    mapping,
    need_string,
    objects,
    reject,
    string,
    word,
)
from ...ids import from_client
from ...seals import from_slot
from ...turns import Pairing
from .. import builtins
from ..items import NAME
from .raw import envelope

_ROLES: dict[str, Role] = {
    "user": "user",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
}
# What the client says rather than the model, among the items only this protocol understands.
_HISTORY_ELSEWHERE = ("item_reference", "compaction")
_FROM_CLIENT = ("_output", "_response", "_trigger", "_update")


def read_item(item: Obj, where: str) -> Message:
    """Any input item. A kind that has no neutral meaning becomes an `Opaque`."""
    kind = string(item, "type", where) or _implied_type(item, where)
    reader = _ITEMS.get(kind)
    message = reader(item, where) if reader else None
    return message or opaque_item(item, kind)


def read_paired(item: Obj, where: str, pairing: Pairing) -> Message:
    """An item that has a message, among the others: its calls are noted, and its results must have theirs."""
    message = read_item(item, where)
    if item.get("type") in builtins.OUTPUTS and not _answers(message, pairing):
        # What a container of OpenAI's said: its call is this protocol's business too.
        message = opaque_item(item, item["type"])
    for part in message.parts:
        if isinstance(part, ToolCall):
            pairing.call(part.id)
        elif isinstance(part, ToolResult) and not pairing.knows(part.call_id):
            pairing.refuse(part.call_id, f"{where}.call_id")
    return message


def _answers(message: Message, pairing: Pairing) -> bool:
    return any(isinstance(p, ToolResult) and pairing.knows(p.call_id) for p in message.parts)


def has_no_message(item: Obj) -> bool:
    """Items that only bring something for others: tools, or the seal of a call."""
    if item.get("type") == "additional_tools":
        return True
    ours = envelope(item)
    return ours is not None and bool(ours.call)


def is_reference(item: Obj) -> bool:
    """Does an item stand for turns which are not in the request?"""
    kind = item.get("type")
    return kind in _HISTORY_ELSEWHERE or (kind is None and "id" in item and "role" not in item)


def _implied_type(item: Obj, where: str) -> str:
    """Most clients leave out `type` on messages; an item reference may be a bare `{id}`."""
    if "role" in item:
        return "message"
    if "id" not in item:
        reject("is required", where, "type")
    return "item_reference"


def opaque_item(item: Obj, kind: str) -> Message:
    """An item that only this protocol understands."""
    raw = Raw(NAME, item)
    role: Role = "user" if kind.endswith(_FROM_CLIENT) else "assistant"
    return Message(role, (Opaque(raw, kind),), raw=raw)


def _message(item: Obj, where: str) -> Message:
    role = _ROLES.get(need_string(item, "role", where))
    if role is None:
        reject(f"{item['role']!r} is not one of {', '.join(_ROLES)}", where, "role")
    return Message(role, _content(item, role, where), raw=Raw(NAME, item))


def _content(item: Obj, role: Role, where: str) -> tuple[Part, ...]:
    content = item.get("content")
    if isinstance(content, str):
        return (Text(content),) if content else ()
    # Some clients send null on an assistant turn that only calls tools.
    if content is None and role != "assistant":
        reject("is required", where, "content")
    return tuple(read_part(part, at) for at, part in objects(item, "content", where))


def read_part(part: Obj, where: str) -> Part:
    """One part of a message's content or of a tool's output."""
    kind = need_string(part, "type", where)
    reader = _PARTS.get(kind)
    return reader(part, where) if reader else Opaque(Raw(NAME, part), kind)


def _text(part: Obj, where: str) -> Text:
    citations = tuple(_citation(a, at) for at, a in objects(part, "annotations", where))
    return Text(need_string(part, "text", where), _cache(part, where), citations)


def _refusal(part: Obj, where: str) -> Refusal:
    return Refusal(need_string(part, "refusal", where))


def _citation(annotation: Obj, where: str) -> Citation:
    raw = Raw(NAME, annotation)
    if annotation.get("type") != "url_citation":
        return Citation(title=string(annotation, "filename", where) or "", raw=raw)
    return Citation(
        url=string(annotation, "url", where) or "",
        title=string(annotation, "title", where) or "",
        start=integer(annotation, "start_index", where),
        end=integer(annotation, "end_index", where),
        raw=raw,
    )


def _cache(part: Obj, where: str) -> Cache | None:
    mark = mapping(part, "prompt_cache_breakpoint", where)
    return None if mark is None else Cache(string(mark, "ttl", where))


def _image(part: Obj, where: str) -> Media:
    url = string(part, "image_url", where)
    file_id = string(part, "file_id", where)
    if not url and not file_id:
        reject("image_url or file_id is required", where)
    media_type, data = _inline(url)
    return Media(
        kind="image",
        media_type=media_type,
        data=data,
        url=None if data is not None else url,
        file_id=file_id,
        detail=string(part, "detail", where),
        cache=_cache(part, where),
        raw=Raw(NAME, part),
    )


def _file(part: Obj, where: str) -> Media:
    content = string(part, "file_data", where)
    url = string(part, "file_url", where)
    file_id = string(part, "file_id", where)
    if not content and not url and not file_id:
        reject("file_data, file_url or file_id is required", where)
    media_type, data = _inline(content)
    if content and data is None:
        # Bare base64 without a data URL around it: PDF is what the API takes it for.
        media_type, data = "application/pdf", content
    return Media(
        kind="document",
        media_type=media_type,
        data=data,
        url=url,
        file_id=file_id,
        name=string(part, "filename", where),
        detail=string(part, "detail", where),
        cache=_cache(part, where),
        raw=Raw(NAME, part),
    )


def _audio(part: Obj, where: str) -> Media:
    audio = mapping(part, "input_audio", where)
    if audio is None:
        reject("is required", where, "input_audio")
    at = join(where, "input_audio")
    return Media(
        kind="audio",
        media_type=f"audio/{need_string(audio, 'format', at)}",
        data=need_string(audio, "data", at),
        raw=Raw(NAME, part),
    )


def _inline(url: str | None) -> tuple[str, str | None]:
    """The media type and the base64 content of a data URL; no content for any other URL."""
    return inline.split(url or "") or ("", None)


def _reasoning(item: Obj, where: str) -> Message:
    text = _said(item, "summary", where) or _said(item, "content", where)
    return Message("assistant", (Thinking(text, _seal(item, where)),), raw=Raw(NAME, item))


def _said(item: Obj, key: str, where: str) -> str:
    return "\n\n".join(string(part, "text", at) or "" for at, part in objects(item, key, where))


def _seal(item: Obj, where: str) -> Seal | None:
    data = string(item, "encrypted_content", where)
    id = string(item, "id", where)
    if data:
        return from_slot(data, NAME, id).seal
    # Stored by the provider: the id alone stands for the reasoning.
    return Seal(NAME, "", id) if id else None


def _function_call(item: Obj, where: str) -> Message:
    return _called(
        item,
        ToolCall(
            id=from_client(need_string(item, "call_id", where)),
            name=need_string(item, "name", where),
            arguments=string(item, "arguments", where) or "",
            namespace=string(item, "namespace", where),
            extras=_item_id(item, where),
        ),
    )


def _custom_tool_call(item: Obj, where: str) -> Message:
    return _called(
        item,
        ToolCall(
            id=from_client(need_string(item, "call_id", where)),
            name=need_string(item, "name", where),
            arguments=string(item, "input", where) or "",
            kind="custom",
            namespace=string(item, "namespace", where),
            extras=_item_id(item, where),
        ),
    )


def _called(item: Obj, call: ToolCall) -> Message:
    return Message("assistant", (call,), raw=Raw(NAME, item))


def _item_id(item: Obj, where: str) -> Obj | None:
    id = string(item, "id", where)
    return {"id": id} if id else None


def _function_call_output(item: Obj, where: str) -> Message | None:
    # `call_id` may be left out by outputs that answer no single call: this protocol's business.
    if item.get("call_id") is None:
        return None
    return _answered(item, _result(item, where))


def _custom_tool_call_output(item: Obj, where: str) -> Message:
    return _answered(item, msgspec.structs.replace(_result(item, where), kind="custom"))


def _answered(item: Obj, result: ToolResult) -> Message:
    return Message("user", (result,), raw=Raw(NAME, item))


def _result(item: Obj, where: str) -> ToolResult:
    return ToolResult(
        call_id=from_client(need_string(item, "call_id", where)),
        parts=_output(item, where),
        name=string(item, "name", where),
    )


def _output(item: Obj, where: str) -> tuple[Text | Media, ...]:
    output = item.get("output")
    if isinstance(output, str):
        return (Text(output),) if output else ()
    if output is not None and not is_array(output):
        reject(f"expected a string or an array, got {word(output)}", where, "output")
    return tuple(_output_part(part, at) for at, part in objects(item, "output", where))


def _output_part(part: Obj, where: str) -> Text | Media:
    read = read_part(part, where)
    if isinstance(read, (Text, Media)):
        return read
    # A part we do not know, in a place that has no `Opaque`: its JSON is better than nothing.
    return Text(msgspec.json.encode(part).decode())


def _builtin_call(item: Obj, where: str) -> Message | None:
    call = builtins.read_call(item, where)
    return None if call is None else _called(item, call)


def _builtin_output(item: Obj, where: str) -> Message | None:
    result = builtins.read_output(item, where)
    return None if result is None else _answered(item, result)


# A reader returns None where the item turns out to be one only this protocol understands.
_ITEMS: dict[str, Callable[[Obj, str], Message | None]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _function_call,
    "custom_tool_call": _custom_tool_call,
    "function_call_output": _function_call_output,
    "custom_tool_call_output": _custom_tool_call_output,
    **dict.fromkeys(builtins.CALLS, _builtin_call),
    **dict.fromkeys(builtins.OUTPUTS, _builtin_output),
}
_PARTS: dict[str, Callable[[Obj, str], Part]] = {
    "input_text": _text,
    "output_text": _text,
    "text": _text,
    "refusal": _refusal,
    "input_image": _image,
    "input_file": _file,
    "input_audio": _audio,
}
