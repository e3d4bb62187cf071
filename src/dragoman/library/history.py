"""An assistant's turn as the provider's history wants it back, put together from what was received.

It goes back as the provider gave it, signatures and all. Only what a provider would refuse from its own
model is put right: arguments that are no JSON object, texts without words, calls without a name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from ..protocols.fields import is_array, is_object
from ..tools.jsontext import NotJson, parse_plain
from .calls import Finished

Obj = dict[str, Any]

_CALL_OWN = frozenset({"index", "id", "type", "function", "custom"})
# Anthropic's deltas, and the member of the block that each makes longer.
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


def parsed(text: Any) -> Obj | None:
    """The object this text stands for, if it does."""
    try:
        value: Any = parse_plain(text) if isinstance(text, str) else text
    except NotJson:
        return None
    return value if is_object(value) else None


def readable(text: str, call: Finished | None) -> str:
    """Arguments as given where they can be read, else as mended, else none."""
    if parsed(text) is not None:
        return text
    return msgspec.json.encode((call.arguments if call else None) or {}).decode()


def native(calls: Iterable[Finished]) -> list[Finished]:
    """The calls that stand in the provider's history as calls."""
    return [call for call in calls if not call.recovered]


def _by_id(calls: Sequence[Finished], id: Any) -> Finished | None:
    return next((call for call in calls if call.given_id == id), None)


# Anthropic.


def anthropic_content(events: list[Obj], calls: Sequence[Finished]) -> list[Obj]:
    """The content blocks of a message, or of the events of one."""
    whole = events[0].get("content") if events and events[0].get("type") == "message" else None
    blocks: list[Obj] = whole if is_array(whole) else _streamed_blocks(events)
    for block in blocks:
        if block.get("type") == "tool_use" and not is_object(block.get("input")):
            call = _by_id(calls, block.get("id"))
            block["input"] = (call.arguments if call else None) or {}
    return [block for block in blocks if _is_said(block)]


def _is_said(block: Obj) -> bool:
    match block.get("type"):
        case "text":
            return bool(block.get("text"))
        case "tool_use":
            return bool(block.get("name"))
        case _:
            return True


def _streamed_blocks(events: list[Obj]) -> list[Obj]:
    blocks: list[Obj] = []
    at: dict[Any, tuple[Obj, dict[str, list[str]]]] = {}
    grown: list[tuple[Obj, dict[str, list[str]]]] = []
    for event in events:
        index = event.get("index")
        if event.get("type") == "content_block_start":
            at[index] = (dict(event["content_block"]), {})
            blocks.append(at[index][0])
            grown.append(at[index])
        elif event.get("type") == "content_block_delta" and index in at:
            _grow(*at[index], event["delta"])
    for block, pieces in grown:
        _settle(block, pieces)
    return blocks


def _grow(block: Obj, pieces: dict[str, list[str]], delta: Obj) -> None:
    kind = delta.get("type")
    if kind in _GROWING:
        pieces.setdefault(_GROWING[kind], []).append(delta.get(_GROWING[kind]) or "")
    elif kind == "citations_delta":
        block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]
    else:  # a signature and its like come whole
        block.update({name: value for name, value in delta.items() if name != "type"})


def _settle(block: Obj, pieces: dict[str, list[str]]) -> None:
    for name, texts in pieces.items():
        text = "".join(texts)
        if name != "partial_json":
            block[name] = (block.get(name) or "") + text
        elif text:
            block["input"] = parsed(text)


# OpenAI Chat.


def chat_message(chunks: list[Obj], calls: Sequence[Finished]) -> Obj:
    """The message of a completion, or of the chunks of one."""
    choices = [choice for chunk in chunks for choice in chunk.get("choices") or () if not choice.get("index")]
    whole = [choice["message"] for choice in choices if choice.get("message")]
    said = whole[:1] or [choice["delta"] for choice in choices if choice.get("delta")]
    message = dict(whole[0]) if whole else _merged(said)
    message.pop("tool_calls", None)
    entries = [entry for part in said for entry in part.get("tool_calls") or ()]
    if native(calls):
        message["tool_calls"] = [_chat_call(call, entries) for call in native(calls)]
    return message


def _merged(deltas: list[Obj]) -> Obj:
    """Texts grow, lists get longer, everything else is set."""
    message: Obj = {"role": "assistant", "content": None}
    texts: dict[str, list[str]] = {}
    for delta in deltas:
        for name, value in delta.items():
            if isinstance(value, str) and name != "role":
                texts.setdefault(name, []).append(value)
            elif is_array(value):
                message[name] = [*message.get(name, ()), *value]
            elif value is not None:
                message[name] = value
    message.update({name: "".join(pieces) for name, pieces in texts.items()})
    message["content"] = message["content"] or None
    return message


def _chat_call(call: Finished, entries: list[Obj]) -> Obj:
    extras: Obj = {}
    for entry in entries:  # Gemini signs its calls in `extra_content`, beside what every call has
        if entry.get("id") == call.given_id:
            extras.update({name: value for name, value in entry.items() if name not in _CALL_OWN})
    if call.kind == "custom":
        body: Obj = {"type": "custom", "custom": {"name": call.given_name, "input": call.raw}}
    else:
        arguments = readable(call.raw, call)
        body = {"type": "function", "function": {"name": call.given_name, "arguments": arguments}}
    return {"id": call.given_id, **body, **extras}


# OpenAI Responses.


def response_items(events: list[Obj], calls: Sequence[Finished]) -> list[Obj]:
    """The output items of a response, or of the events of one."""
    last: Any = events[-1] if events else {}
    final: Any = last.get("response") or last
    items: list[Obj] = final.get("output") or []
    if not items:  # some servers end without repeating what they sent
        items = [event["item"] for event in events if event.get("type") == "response.output_item.done"]
    for item in items:
        if item.get("type") == "function_call":
            call = _by_id(calls, item.get("call_id"))
            item["arguments"] = readable(item.get("arguments") or "", call)
    there = {item.get("call_id") for item in items}
    return [*items, *(_response_call(call) for call in native(calls) if call.given_id not in there)]


def _response_call(call: Finished) -> Obj:
    head: Obj = {"call_id": call.given_id, "name": call.given_name}
    if call.kind == "custom":
        return {"type": "custom_tool_call", **head, "input": call.raw}
    return {"type": "function_call", **head, "arguments": readable(call.raw, call)}


# Gemini. The SDK's own objects stay: signatures are bytes in them, which their JSON does not give back.


def gemini_parts(contents: Iterable[Any], calls: Sequence[Finished]) -> list[Any]:
    """The parts of all contents of one answer, the pieces of a streamed call put together."""
    waiting = native(calls)
    parts: list[Any] = []
    for part in (part for content in contents for part in content.parts):
        if part.function_call is not None:
            call = _by_id(waiting, part.function_call.id or "")
            if part.function_call.name and call is not None:
                waiting.remove(call)
                parts.append(_called(part, call))
        elif part.text != "" or part.thought_signature:
            parts.append(part)
    return parts


def _called(part: Any, call: Finished) -> Any:
    if part.function_call.args:
        return part
    changes: Obj = {
        "args": parsed(call.raw) or call.arguments or {},
        "partial_args": None,
        "will_continue": None,
    }
    return part.model_copy(update={"function_call": part.function_call.model_copy(update=changes)})
