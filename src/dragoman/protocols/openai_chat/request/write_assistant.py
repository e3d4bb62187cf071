"""Write an assistant turn as one Chat message: all its text, then all its calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....model.messages import Media, Message, Opaque, Part, Refusal, Text, Thinking, ToolCall
from ...common.fields import Obj, is_object
from ..own import goes_back, is_own, kept
from . import reasoning
from .opened import MessageExtras
from .shared import Writing
from .write_parts import Content, content_of, drop_citations

_encode = msgspec.json.Encoder().encode


class _Turn:
    """The parts of an assistant turn, sorted by the members of a Chat message."""

    __slots__ = ("audio", "called", "calls", "given", "legacy", "listed", "refusals", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[Content] = []
        self.refusals: list[str] = []
        self.thoughts: list[Thinking] = []
        self.calls: list[Obj] = []
        self.called: dict[str, ToolCall] = {}
        self.audio: Obj | None = None
        self.legacy: Obj = {}
        """The deprecated `function_call`."""
        self.given: Obj | None = None
        """The unknown members of the turn, if it is a message of a Chat client."""
        self.listed = False
        """Is the content an array?"""

    def add(self, message: Message, index: int, writing: Writing) -> None:
        """Add the message at `index` of the request."""
        self.given = kept(message.extras)
        if isinstance(message.extras, MessageExtras):
            self.listed = message.extras.listed
            if message.extras.echoed:
                text = "index and parsed_arguments in tool_calls are the SDK's own and were left out"
                writing.notices.warn("echoed-fields-dropped", f"messages[{index}].tool_calls", text)
        for at, part in enumerate(message.parts):
            # Compare types: `isinstance` on a msgspec struct goes through its metaclass and is much slower.
            if type(part) is Text:
                if part.text or self.listed:
                    self.texts.append(part)
                if part.citations and not self.holds("annotations"):
                    drop_citations(writing, index, at)
            elif type(part) is ToolCall:
                self._add_call(part, writing)
            elif type(part) is Thinking:
                self.thoughts.append(part)
            else:
                _add_rare(part, self, writing, f"messages[{index}].parts[{at}]")

    def holds(self, key: str) -> bool:
        return self.given is not None and key in self.given

    def _add_call(self, call: ToolCall, writing: Writing) -> None:
        self.called[call.id] = call
        given = kept(call.extras)
        if given is None or given.keys().isdisjoint(("function_call", call.kind)):
            self.calls.append(_call(call, writing))
        elif "function_call" in given:
            self.legacy = given
        else:
            self.calls.append(_given_call(call, given, writing))


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
    own = turn.given is not None
    if not (own or turn.texts or turn.refusals or turn.calls or turn.audio):
        return None, turn.called
    result: Obj = {"role": "assistant"}
    if turn.texts:
        result["content"] = content_of(turn.texts, writing, listed=turn.listed)
    elif not own:
        # OpenAI refuses an empty array beside calls (Cursor sends one: archestra#7375). It sends null itself.
        result["content"] = None
    if name:
        result["name"] = name
    if turn.refusals:
        result["refusal"] = "\n\n".join(turn.refusals)
    if turn.audio:
        result["audio"] = turn.audio
    if turn.thoughts or turn.given or writing.target.reasoning_field:
        result |= reasoning.write(turn.thoughts, writing.target, turn.given, calls=bool(turn.calls))
    if turn.calls:
        result["tool_calls"] = turn.calls
    given = {k: v for k, v in (turn.given or {}).items() if k not in reasoning.MEMBERS}
    return result | turn.legacy | given, turn.called


def _add_rare(part: Part, turn: _Turn, writing: Writing, where: str) -> None:
    match part:
        case Refusal(text, extras) if (given := kept(extras)) is not None:
            turn.texts.append({"type": "refusal", "refusal": text, **given})
        case Refusal(text):
            # Only OpenAI's own servers know `refusal`.
            if writing.compatible:
                turn.texts.append({"type": "text", "text": text})
            else:
                turn.refusals.append(text)
        case Opaque(raw, "audio") if is_own(raw) and is_object(raw.value):  # a member, not a part
            turn.audio = raw.value
        case Opaque(raw) if is_own(raw):
            turn.texts.append(raw.value)
        case Media(raw=raw) if writing.own and is_own(raw):
            turn.texts.append(raw.value)
        case Media() if turn.holds("images"):
            pass
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
        result["extra_content"] = reasoning.with_seal(None, call.seal.data)
    return result


def _given_call(call: ToolCall, given: Obj, writing: Writing) -> Obj:
    """A call as a Chat client spelled it."""
    key, text = ("custom", "input") if call.kind == "custom" else ("function", "arguments")
    inner: Obj = {"name": writing.names.out(call.name)}
    if call.arguments:
        inner[text] = call.arguments
    inner |= given[key]
    result: Obj = {"id": writing.id(call.id)} | given | {key: inner}
    if call.seal is not None and goes_back(call.seal, writing.target):
        result["extra_content"] = reasoning.with_seal(given.get("extra_content"), call.seal.data)
    return result


def _custom_call(call: ToolCall, id: str, name: str, writing: Writing) -> Obj:
    if not writing.compatible:
        return {"id": id, "type": "custom", "custom": {"name": name, "input": call.arguments}}
    # For other servers, a freeform input is the only member of an object.
    arguments = _encode({"input": call.arguments}).decode()
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
