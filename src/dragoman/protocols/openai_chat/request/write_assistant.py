"""Write an assistant turn as one Chat message: all its text, then all its calls."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ....model.messages import Media, Message, Opaque, Part, Refusal, Text, Thinking, ToolCall
from ...base import Target
from ...common.fields import Obj, is_object
from ..own import goes_back, is_own
from . import reasoning
from .shared import Writing
from .unwrap import MessageExtras
from .write_parts import Content, content_of, drop_citations

_encode = msgspec.json.Encoder().encode


class _Turn:
    """The parts of an assistant turn, sorted by the members of a Chat message."""

    __slots__ = ("audio", "called", "calls", "given", "listed", "own", "refusals", "texts", "thoughts")

    def __init__(self) -> None:
        self.texts: list[Content] = []
        self.refusals: list[str] = []
        self.thoughts: list[Thinking] = []
        self.calls: list[Obj] = []
        self.called: dict[str, ToolCall] = {}
        self.audio: Obj | None = None
        self.own = False
        """Is it a message of a Chat client? Then it is the only one of the turn."""
        self.listed = False
        self.given: Obj = {}
        """The unknown members of that message."""

    def add(self, message: Message, index: int, writing: Writing) -> None:
        """Add the message at `index` of the request."""
        given = writing.kept(message.extras)
        if given is not None and isinstance(message.extras, MessageExtras):
            self.own, self.listed, self.given = True, message.extras.listed, given
            if message.extras.echoed:
                text = "index and parsed_arguments in tool_calls are the SDK's own and were left out"
                writing.notices.warn("echoed-fields-dropped", f"messages[{index}].tool_calls", text)
        for at, part in enumerate(message.parts):
            # Compare types: `isinstance` on a msgspec struct goes through its metaclass and is much slower.
            if type(part) is Text:
                if part.text or self.listed:
                    self.texts.append(part)
                if part.citations and "annotations" not in self.given:
                    drop_citations(writing, index, at)
            elif type(part) is ToolCall:
                self.called[part.id] = part
                self._add_call(part, writing)
            elif type(part) is Thinking:
                self.thoughts.append(part)
            else:
                _add_rare(part, self, writing, f"messages[{index}].parts[{at}]")

    def reasoning(self, target: Target) -> Obj:
        if self.own:
            return reasoning.as_given(self.given, self.thoughts, target)
        if self.thoughts or target.reasoning_field:
            return reasoning.write(self.thoughts, target, calls=bool(self.calls))
        return {}

    def _add_call(self, call: ToolCall, writing: Writing) -> None:
        given = writing.kept(call.extras)
        if given is not None and "function_call" in given:  # the deprecated form
            self.given = self.given | given
        else:
            self.calls.append(_call(call, given, writing))


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
    if not (turn.own or turn.texts or turn.refusals or turn.calls or turn.audio):
        return None, turn.called
    result: Obj = {"role": "assistant"}
    if turn.texts:
        result["content"] = content_of(turn.texts, writing, listed=turn.listed)
    elif not turn.own:
        # OpenAI refuses an empty array beside calls (Cursor sends one: archestra#7375). It sends null itself.
        result["content"] = None
    if name:
        result["name"] = name
    if turn.refusals:
        result["refusal"] = "\n\n".join(turn.refusals)
    if turn.audio:
        result["audio"] = turn.audio
    result |= turn.reasoning(writing.target)
    if turn.calls:
        result["tool_calls"] = turn.calls
    given = {k: v for k, v in turn.given.items() if k not in reasoning.MEMBERS}
    return result | given, turn.called


def _add_rare(part: Part, turn: _Turn, writing: Writing, where: str) -> None:
    match part:
        case Refusal(text, extras) if (given := writing.kept(extras)) is not None:
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
        case Media() if "images" not in turn.given:
            turn.texts.append({"type": "text", "text": f"[{part.kind}]"})
            message = f"openai-chat does not accept {part.kind} in assistant messages"
            writing.notices.warn("assistant-media-dropped", where, message)
        case Media():
            pass
        case _:
            drop_opaque(part, writing, where)


def drop_opaque(part: Part, writing: Writing, where: str) -> None:
    what = f"{part.type!r} of {part.raw.protocol}" if isinstance(part, Opaque) else "this"
    writing.notices.warn("opaque-dropped", where, f"openai-chat does not support {what}")


def _call(call: ToolCall, given: Obj | None, writing: Writing) -> Obj:
    """Write a call. `given`: what a Chat client's call holds beside its neutral values."""
    key, text, words = "function", "arguments", call.arguments
    if call.kind == "custom" and not writing.compatible:
        key, text = "custom", "input"
    elif call.kind == "custom":
        # For other servers, a freeform input is the only member of an object.
        words = _encode({"input": words}).decode()
    if given is None or key not in given:  # not Chat's, or its kind was changed
        # The original text of the arguments: encoding them again could change numbers, and the prompt cache
        # would miss. llama.cpp refuses an empty string.
        given = {"type": key, key: {text: words or ("" if key == "custom" else "{}")}}
    inner = {"name": writing.names.out(call.name, call.namespace), **({text: words} if words else {})}
    result: Obj = {"id": writing.id(call.id), **given, key: inner | given[key]}
    if call.seal is not None and goes_back(call.seal, writing.target):
        result["extra_content"] = reasoning.with_seal(given.get("extra_content"), call.seal.data)
    return result
