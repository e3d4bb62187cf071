"""What the model said, as one Chat message: all its words, then all its calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....messages import Media, Message, Opaque, Part, Refusal, Text, Thinking, ToolCall
from ...fields import Obj
from ...ids import for_upstream
from . import reasoning
from .shared import Writing, goes_back, is_own
from .write_parts import content_of, text_part

_encode = msgspec.json.Encoder().encode


class _Said(msgspec.Struct):
    """An assistant's turn, sorted the way a Chat message has it."""

    texts: list[Obj]
    refusals: list[str]
    thoughts: list[Thinking]
    calls: list[ToolCall]
    audio: Obj | None = None


def assistant_message(messages: Sequence[tuple[Message, str]], writing: Writing) -> Obj | None:
    """Neighbouring messages of the model, each with its path, as one; None if nothing is left."""
    said = _Said([], [], [], [])
    for message, where in messages:
        for index, part in enumerate(message.parts):
            _sort(part, said, writing, f"{where}.parts[{index}]")
    if not (said.texts or said.refusals or said.calls or said.audio):
        return None
    # OpenAI refuses an empty array beside calls; null is what it sends itself.
    content = content_of(said.texts, writing) if said.texts else None
    result: Obj = {"role": "assistant", "content": content}
    name = next((message.name for message, _ in messages if message.name), None)
    if name:
        result["name"] = name
    if said.refusals:
        result["refusal"] = "\n\n".join(said.refusals)
    if said.audio:
        result["audio"] = said.audio
    result |= reasoning.write(said.thoughts, writing.target, calls=bool(said.calls))
    if said.calls:
        result["tool_calls"] = [_call(call, writing) for call in said.calls]
    return result


def _sort(part: Part, said: _Said, writing: Writing, where: str) -> None:
    match part:
        case Text():
            said.texts.append(text_part(part, writing, where))
        case Refusal(text):
            if writing.compatible:
                said.texts.append({"type": "text", "text": text})
            else:
                said.refusals.append(text)
        case Thinking():
            said.thoughts.append(part)
        case ToolCall():
            said.calls.append(part)
        case Opaque(raw, "audio") if is_own(raw):
            said.audio = raw.value
        case Media():
            said.texts.append({"type": "text", "text": f"[{part.kind}]"})
            message = f"openai-chat takes no {part.kind} in what the model said"
            writing.notices.say("assistant-media-dropped", where, message)
        case _:
            drop_opaque(part, writing, where)


def drop_opaque(part: Part, writing: Writing, where: str) -> None:
    what = f"{part.type!r} of {part.raw.protocol}" if isinstance(part, Opaque) else "this"
    writing.notices.say("opaque-dropped", where, f"{what} means nothing to openai-chat")


def _call(call: ToolCall, writing: Writing) -> Obj:
    result: Obj = {"id": for_upstream(call.id, writing.ids)}
    name = writing.names.out(call.name, call.namespace)
    if call.kind == "custom" and not writing.compatible:
        result |= {"type": "custom", "custom": {"name": name, "input": call.arguments}}
    else:
        function = {"name": name, "arguments": _arguments(call)}
        result |= {"type": "function", "function": function}
    if call.seal is not None and goes_back(call.seal, writing.target):
        result["extra_content"] = reasoning.call_slot(call.seal.data)
    return result


def _arguments(call: ToolCall) -> str:
    """The text as it came; a freeform input travels as the one member of an object."""
    if call.kind == "custom":
        return _encode({"input": call.arguments}).decode()
    return call.arguments or "{}"
