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


def assistant_message(messages: Sequence[tuple[int, Message]], writing: Writing) -> Obj | None:
    """Neighbouring messages of the model, each with its index, as one; None if nothing is left."""
    turn = _Turn(writing)
    for index, message in messages:
        turn.add(message, index)
    return turn.written()


class _Turn:
    """An assistant's turn, sorted the way a Chat message has it."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._name: str | None = None
        self._texts: list[Obj] = []
        self._refusals: list[str] = []
        self._thoughts: list[Thinking] = []
        self._calls: list[Obj] = []
        self._audio: Obj | None = None

    def add(self, message: Message, index: int) -> None:
        self._name = self._name or message.name
        for at, part in enumerate(message.parts):
            if isinstance(part, Text):
                self._texts.append(text_part(part, self._writing, index, at))
            elif isinstance(part, ToolCall):
                self._calls.append(_call(part, self._writing))
            elif isinstance(part, Thinking):
                self._thoughts.append(part)
            else:
                self._add_rare(part, f"messages[{index}].parts[{at}]")

    def _add_rare(self, part: Part, where: str) -> None:
        match part:
            case Refusal(text):
                if self._writing.compatible:
                    self._texts.append({"type": "text", "text": text})
                else:
                    self._refusals.append(text)
            case Opaque(raw, "audio") if is_own(raw):
                self._audio = raw.value
            case Media():
                self._texts.append({"type": "text", "text": f"[{part.kind}]"})
                message = f"openai-chat takes no {part.kind} in what the model said"
                self._writing.notices.say("assistant-media-dropped", where, message)
            case _:
                drop_opaque(part, self._writing, where)

    def written(self) -> Obj | None:
        if not (self._texts or self._refusals or self._calls or self._audio):
            return None
        # OpenAI refuses an empty array beside calls; null is what it sends itself.
        content = content_of(self._texts, self._writing) if self._texts else None
        result: Obj = {"role": "assistant", "content": content}
        if self._name:
            result["name"] = self._name
        if self._refusals:
            result["refusal"] = "\n\n".join(self._refusals)
        if self._audio:
            result["audio"] = self._audio
        target = self._writing.target
        if self._thoughts or target.reasoning_field:
            result |= reasoning.write(self._thoughts, target, calls=bool(self._calls))
        if self._calls:
            result["tool_calls"] = self._calls
        return result


def drop_opaque(part: Part, writing: Writing, where: str) -> None:
    what = f"{part.type!r} of {part.raw.protocol}" if isinstance(part, Opaque) else "this"
    writing.notices.say("opaque-dropped", where, f"{what} means nothing to openai-chat")


def _call(call: ToolCall, writing: Writing) -> Obj:
    id, name = for_upstream(call.id, writing.ids), writing.names.out(call.name, call.namespace)
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
