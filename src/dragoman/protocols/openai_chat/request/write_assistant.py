"""What the model said, as one Chat message: all its words, then all its calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....messages import Media, Message, Opaque, Part, Refusal, Text, Thinking, ToolCall
from ...fields import Obj
from . import reasoning
from .shared import Writing, goes_back, is_own
from .write_parts import Content, content_of, drop_citations

_encode = msgspec.json.Encoder().encode


class _Rest(msgspec.Struct):
    """What a turn may hold beside words, thoughts and calls."""

    refusals: list[str]
    audio: Obj | None = None


def assistant_message(
    messages: Sequence[tuple[int, Message]], writing: Writing
) -> tuple[Obj | None, dict[str, ToolCall]]:
    """Neighbouring messages of the model, each with its index, as one, and its calls by their ids.

    The message is None if nothing of it can be said.
    """
    texts: list[Content] = []
    thoughts: list[Thinking] = []
    calls: dict[str, ToolCall] = {}
    written: list[Obj] = []
    rest = _Rest([])
    for index, message in messages:
        for at, part in enumerate(message.parts):
            if isinstance(part, Text):
                texts.append(part)
                if part.citations:
                    drop_citations(writing, index, at)
            elif isinstance(part, ToolCall):
                calls[part.id] = part
                written.append(_call(part, writing))
            elif isinstance(part, Thinking):
                thoughts.append(part)
            else:
                _add_rare(part, texts, rest, writing, f"messages[{index}].parts[{at}]")
    if not (texts or written or rest.refusals or rest.audio):
        return None, calls
    # OpenAI refuses an empty array beside calls; null is what it sends itself.
    content = content_of(texts, writing) if texts else None
    result: Obj = {"role": "assistant", "content": content}
    _add_members(result, messages, rest)
    if thoughts or writing.target.reasoning_field:
        result |= reasoning.write(thoughts, writing.target, calls=bool(written))
    if written:
        result["tool_calls"] = written
    return result, calls


def _add_rare(part: Part, texts: list[Content], rest: _Rest, writing: Writing, where: str) -> None:
    match part:
        case Refusal(text):
            if writing.compatible:
                texts.append({"type": "text", "text": text})
            else:
                rest.refusals.append(text)
        case Opaque(raw, "audio") if is_own(raw):
            rest.audio = raw.value
        case Media():
            texts.append({"type": "text", "text": f"[{part.kind}]"})
            message = f"openai-chat takes no {part.kind} in what the model said"
            writing.notices.say("assistant-media-dropped", where, message)
        case _:
            drop_opaque(part, writing, where)


def _add_members(result: Obj, messages: Sequence[tuple[int, Message]], rest: _Rest) -> None:
    name = next((message.name for _, message in messages if message.name), None)
    if name:
        result["name"] = name
    if rest.refusals:
        result["refusal"] = "\n\n".join(rest.refusals)
    if rest.audio:
        result["audio"] = rest.audio


def drop_opaque(part: Part, writing: Writing, where: str) -> None:
    what = f"{part.type!r} of {part.raw.protocol}" if isinstance(part, Opaque) else "this"
    writing.notices.say("opaque-dropped", where, f"{what} means nothing to openai-chat")


def _call(call: ToolCall, writing: Writing) -> Obj:
    id, name = writing.id(call.id), writing.names.out(call.name, call.namespace)
    if call.kind == "custom":
        result = _custom_call(call, id, name, writing)
    else:
        # The text as it came.
        function = {"name": name, "arguments": call.arguments or "{}"}
        result: Obj = {"id": id, "type": "function", "function": function}
    if call.seal is not None and goes_back(call.seal, writing.target):
        result["extra_content"] = reasoning.call_slot(call.seal.data)
    return result


def _custom_call(call: ToolCall, id: str, name: str, writing: Writing) -> Obj:
    if not writing.compatible:
        return {"id": id, "type": "custom", "custom": {"name": name, "input": call.arguments}}
    # A freeform input travels as the one member of an object.
    arguments = _encode({"input": call.arguments}).decode()
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
