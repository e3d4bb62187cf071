"""A conversation as Responses input items.

Messages that came over this protocol go back as they came (`raw`). All others are written
anew: one message becomes as many items as it has calls, results and thoughts between its words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Literal

from ....messages import (
    Media,
    Message,
    Opaque,
    Refusal,
    Role,
    Seal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    plain_text,
)
from ...base import Target
from ...breakpoints import trim_openai_marks
from ...fields import Obj, is_array
from ...ids import for_upstream
from ...names import ToolNames
from ...notices import Notices
from ...turns import marked_parts, missing_result, note_prefill
from ..items import NAME
from .raw import IDS, restored, returnable
from .write_parts import PartWriter

CallKind = Literal["function", "custom"]

_ITEM_IDS = {"function": "fc_", "custom": "ctc_"}
_SAID_BY_MODEL = ("reasoning", "function_call", "custom_tool_call")


def call_kinds(messages: Iterable[Message]) -> dict[str, CallKind]:
    """Of every call among them, by its id, whether it is a freeform tool's."""
    return {p.id: p.kind for m in messages for p in m.parts if isinstance(p, ToolCall)}


def answered(messages: Iterable[Message]) -> set[str]:
    """The calls that have a result among them."""
    return {p.call_id for m in messages for p in m.parts if isinstance(p, ToolResult)}


class ItemWriter:
    """Writes the messages of one request."""

    def __init__(
        self,
        messages: Sequence[Message],
        target: Target,
        names: ToolNames,
        notices: Notices,
        kinds: Mapping[str, CallKind],
    ) -> None:
        """`kinds` of the calls whose results may not tell."""
        self._messages = messages
        self._target = target
        self._names = names
        self._notices = notices
        self._kinds = kinds

    def as_they_came(self, parts: PartWriter, first: int) -> list[Any]:
        """The messages from `first` on: those of this protocol unchanged, the rest written anew."""
        items: list[Any] = []
        for index, message in enumerate(self._messages[first:], first):
            if message.raw is not None and message.raw.protocol == NAME:
                items += self._returned(message)
            else:
                items += self._written(message, parts, f"messages[{index}]")
        return items

    def anew(self, parts: PartWriter, first: int) -> list[Obj]:
        """The messages from `first` on, for an upstream that has never seen them."""
        items, _ = self.stretch(parts, range(first, len(self._messages)), answered(self._messages))
        note_prefill(self._messages, self._notices)
        trim_openai_marks((part for item in items for part in _parts_of(item)), self._notices)
        return items

    def stretch(
        self, parts: PartWriter, places: range, answered: Set[str]
    ) -> tuple[list[Obj], list[ToolCall]]:
        """The messages at `places`, and the calls that are not among those `answered`, which now have a
        result that says so."""
        items: list[Obj] = []
        missing: list[ToolCall] = []
        unanswered: list[ToolCall] = []
        for index in places:
            message = self._messages[index]
            if message.role != "assistant":
                missing += unanswered
                results = (missing_result(call, self._notices) for call in unanswered)
                items += [self._result(result, parts, "") for result in results]
                unanswered.clear()
            items += self._written(message, parts, f"messages[{index}]")
            calls = (p for p in message.parts if isinstance(p, ToolCall))
            unanswered += [call for call in calls if call.id not in answered]
        return _without_lone_reasoning(items), missing

    def _returned(self, message: Message) -> list[Any]:
        """A message as it came; a call's own seal, if it has one, stands before it."""
        assert message.raw is not None
        item = message.raw.value
        if isinstance(item, str):
            item = {"type": "message", "role": "user", "content": item}
        seals = (p.seal for p in message.parts if isinstance(p, ToolCall))
        reasoning = [_reasoning("", s) for s in seals if s and returnable(s, self._target)]
        kept = restored(item, self._target)
        return reasoning if kept is None else [*reasoning, kept]

    def _written(self, message: Message, parts: PartWriter, where: str) -> list[Obj]:
        if message.name:
            self._notices.say("message-name-dropped", where, "messages cannot carry a name")
        items: list[Obj] = []
        content: list[Obj] = []
        for part in message.parts:
            if isinstance(part, (Text, Refusal, Media)):
                content += self._content(part, message.role, parts, where)
                continue
            between = self._items(part, parts, where)
            if between:
                items += _message_item(message.role, content)
                content = []
            items += between
        return items + _message_item(message.role, content)

    def _content(self, part: Text | Refusal | Media, role: Role, parts: PartWriter, where: str) -> list[Obj]:
        if isinstance(part, (Text, Refusal)) and not part.text:
            return []
        if role != "assistant":
            # A refusal is a model's; in anybody else's mouth it is words.
            return [parts.input(Text(part.text) if isinstance(part, Refusal) else part, where)]
        if isinstance(part, Text):
            return [parts.output_text(part, where)]
        if isinstance(part, Refusal):
            return [{"type": "refusal", "refusal": part.text}]
        message = f"a {part.kind} made by a model cannot be sent back"
        self._notices.say("assistant-media-dropped", where, message)
        return []

    def _items(
        self, part: Thinking | ToolCall | ToolResult | Opaque, parts: PartWriter, where: str
    ) -> list[Obj]:
        match part:
            case Thinking():
                return self._sealed(part.text, part.seal)
            case ToolCall():
                return [*self._sealed("", part.seal), self._call(part)]
            case ToolResult():
                return [self._result(part, parts, where)]
            case Opaque():
                return self._opaque(part, where)

    def _sealed(self, text: str, seal: Seal | None) -> list[Obj]:
        """Reasoning goes back to who sealed it; without a seal it is dropped, never made text."""
        return [_reasoning(text, seal)] if seal and returnable(seal, self._target) else []

    def _opaque(self, part: Opaque, where: str) -> list[Obj]:
        if part.raw.protocol == NAME:
            return [part.raw.value]
        message = f"{part.type or 'a part'} of {part.raw.protocol} has no counterpart"
        self._notices.say("opaque-dropped", where, message)
        return []

    def _call(self, call: ToolCall) -> Obj:
        custom = call.kind == "custom"
        item: Obj = {"type": "custom_tool_call" if custom else "function_call"}
        id = (call.extras or {}).get("id")
        # An item id with another prefix is refused, and it may be left out.
        if isinstance(id, str) and id.startswith(_ITEM_IDS[call.kind]) and len(id) <= IDS.longest:
            item["id"] = id
        item["call_id"] = self._id(call.id)
        if call.namespace:
            item["namespace"] = call.namespace
        item["name"] = self._names.out(call.name, call.namespace)
        if custom:
            item["input"] = call.arguments
        else:
            item["arguments"] = call.arguments or "{}"
        return item

    def _result(self, result: ToolResult, parts: PartWriter, where: str) -> Obj:
        # Other protocols do not tell a freeform tool's result from a function's; its call does.
        kind = self._kinds.get(result.call_id, result.kind)
        name = "custom_tool_call_output" if kind == "custom" else "function_call_output"
        output = _output(result, parts, where)
        return {"type": name, "call_id": self._id(result.call_id), "output": output}

    def _id(self, id: str) -> str:
        return for_upstream(id, self._target.ids or IDS)


def _parts_of(item: Obj) -> list[Obj]:
    content = item.get("content") or item.get("output")
    return content if is_array(content) else []


def _message_item(role: Role, content: list[Obj]) -> list[Obj]:
    return [{"type": "message", "role": role, "content": content}] if content else []


def _reasoning(text: str, seal: Seal) -> Obj:
    item: Obj = {"type": "reasoning"}
    if seal.id and seal.id.startswith("rs_"):
        item["id"] = seal.id
    # `summary` must be there even if there is none.
    item["summary"] = [{"type": "summary_text", "text": text}] if text else []
    if seal.data:
        item["encrypted_content"] = seal.data
    return item


def _output(result: ToolResult, parts: PartWriter, where: str) -> str | list[Obj]:
    """Words as a string, which every server of this protocol takes; a list only where it must be.

    So the cache mark of a result that is a string has no place. Agents move it on every turn, and
    turning a string into a list and back would change the very prefix that it marks.
    """
    said = marked_parts(result)
    if all(isinstance(part, Text) for part in said):
        return plain_text(said)
    return [parts.input(part, where) for part in said]


def _without_lone_reasoning(items: list[Obj]) -> list[Obj]:
    """Reasoning must be followed by what was reasoned about, or the upstream refuses it."""
    kept: list[Obj] = []
    for item in reversed(items):
        following = kept[-1] if kept else {}
        by_model = following.get("type") in _SAID_BY_MODEL or following.get("role") == "assistant"
        if by_model or item["type"] != "reasoning":
            kept.append(item)
    return kept[::-1]
