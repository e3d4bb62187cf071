"""What the model said, as one Chat message: all its words, then all its calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....model.messages import Media, Message, Opaque, Part, Refusal, Text, Thinking, ToolCall
from ...common.fields import Obj
from . import reasoning
from .shared import Writing, goes_back, is_own
from .write_parts import Content, content_of, drop_citations

_encode = msgspec.json.Encoder().encode


class _Turn:
    """A turn of the model, sorted the way a Chat message has it."""

    __slots__ = ("audio", "called", "calls", "refusals", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[Content] = []
        self.refusals: list[str] = []
        self.thoughts: list[Thinking] = []
        self.calls: list[Obj] = []
        self.called: dict[str, ToolCall] = {}
        self.audio: Obj | None = None

    def add(self, message: Message, index: int, writing: Writing) -> None:
        """The message at `index` of the request."""
        for at, part in enumerate(message.parts):
            # By the type itself: `isinstance` asks a struct's metaclass, and takes several times as long.
            if type(part) is Text:
                self.texts += [part] if part.text else []
                if part.citations:
                    drop_citations(writing, index, at)
            elif type(part) is ToolCall:
                self.called[part.id] = part
                self.calls.append(_call(part, writing))
            elif type(part) is Thinking:
                self.thoughts.append(part)
            else:
                _add_rare(part, self, writing, f"messages[{index}].parts[{at}]")


def assistant_message(
    messages: Sequence[tuple[int, Message]], writing: Writing
) -> tuple[Obj | None, dict[str, ToolCall]]:
    """Neighbouring messages of the model, each with its index, as one, and its calls by their ids.

    The message is None if nothing of it can be said.
    """
    turn = _Turn()
    name: str | None = None
    for index, message in messages:
        turn.add(message, index, writing)
        name = name or message.name
    if not (turn.texts or turn.refusals or turn.calls or turn.audio):
        return None, turn.called
    # OpenAI refuses an empty array beside calls; null is what it sends itself.
    content = content_of(turn.texts, writing) if turn.texts else None
    result: Obj = {"role": "assistant", "content": content}
    if name:
        result["name"] = name
    if turn.refusals:
        result["refusal"] = "\n\n".join(turn.refusals)
    if turn.audio:
        result["audio"] = turn.audio
    if turn.thoughts or writing.target.reasoning_field:
        result |= reasoning.write(turn.thoughts, writing.target, calls=bool(turn.calls))
    if turn.calls:
        result["tool_calls"] = turn.calls
    return result, turn.called


def _add_rare(part: Part, turn: _Turn, writing: Writing, where: str) -> None:
    match part:
        case Refusal(text):
            if writing.compatible:
                turn.texts.append({"type": "text", "text": text})
            else:
                turn.refusals.append(text)
        case Opaque(raw, "audio") if is_own(raw):
            turn.audio = raw.value
        case Media():
            turn.texts.append({"type": "text", "text": f"[{part.kind}]"})
            message = f"openai-chat takes no {part.kind} in what the model said"
            writing.notices.say("assistant-media-dropped", where, message)
        case _:
            drop_opaque(part, writing, where)


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
