"""Write an assistant turn as one Chat message: all its text, then all its calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....model.messages import Media, Message, Opaque, Part, Refusal, Text, Thinking, ToolCall
from ...common.fields import Obj
from ..own import goes_back, is_own
from . import reasoning
from .shared import Writing
from .write_parts import Content, content_of, drop_citations

_encode = msgspec.json.Encoder().encode


class _Turn:
    """The parts of an assistant turn, sorted by the members of a Chat message."""

    __slots__ = ("audio", "called", "calls", "refusals", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[Content] = []
        self.refusals: list[str] = []
        self.thoughts: list[Thinking] = []
        self.calls: list[Obj] = []
        self.called: dict[str, ToolCall] = {}
        self.audio: Obj | None = None

    def add(self, message: Message, index: int, writing: Writing) -> None:
        """Add the message at `index` of the request."""
        for at, part in enumerate(message.parts):
            # Compare types: `isinstance` on a msgspec struct goes through its metaclass and is much slower.
            if type(part) is Text:
                if part.text:
                    self.texts.append(part)
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
    """Write consecutive assistant messages, given with their indexes, as one. Also returns its calls by id.

    The message is None if it would be empty.
    """
    turn = _Turn()
    name: str | None = None
    for index, message in messages:
        turn.add(message, index, writing)
        name = name or message.name
    if not (turn.texts or turn.refusals or turn.calls or turn.audio):
        return None, turn.called
    # OpenAI refuses an empty array beside calls (Cursor sends one: archestra#7375), and sends null itself.
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
            # Only OpenAI's own servers know `refusal`.
            if writing.compatible:
                turn.texts.append({"type": "text", "text": text})
            else:
                turn.refusals.append(text)
        case Opaque(raw, "audio") if is_own(raw):
            turn.audio = raw.value
        case Media():
            turn.texts.append({"type": "text", "text": f"[{part.kind}]"})
            message = f"openai-chat does not accept {part.kind} in assistant messages"
            writing.notices.warn("assistant-media-dropped", where, message)
        case _:
            drop_opaque(part, writing, where)


def drop_opaque(part: Part, writing: Writing, where: str) -> None:
    what = f"{part.type!r} of {part.raw.protocol}" if isinstance(part, Opaque) else "this"
    writing.notices.warn("opaque-dropped", where, f"openai-chat does not support {what}")


def _call(call: ToolCall, writing: Writing) -> Obj:
    id, name = writing.id(call.id), writing.names.out(call.name, call.namespace)
    if call.kind == "custom":
        result = _custom_call(call, id, name, writing)
    else:
        # The original text of the arguments: encoding them again could change numbers, and the prompt cache
        # would miss. llama.cpp refuses an empty string.
        function = {"name": name, "arguments": call.arguments or "{}"}
        result: Obj = {"id": id, "type": "function", "function": function}
    if call.seal is not None and goes_back(call.seal, writing.target):
        result["extra_content"] = reasoning.call_slot(call.seal.data)
    return result


def _custom_call(call: ToolCall, id: str, name: str, writing: Writing) -> Obj:
    if not writing.compatible:
        return {"id": id, "type": "custom", "custom": {"name": name, "input": call.arguments}}
    # For other servers, a freeform input is the only member of an object.
    arguments = _encode({"input": call.arguments}).decode()
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
