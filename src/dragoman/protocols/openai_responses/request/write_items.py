"""Write a conversation as Responses input items.

Messages of a Responses client stay unchanged (`raw`). All others are written from their neutral form: text,
calls, results and thoughts of one message become separate items.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.messages import (
    Media,
    Message,
    Opaque,
    Part,
    Refusal,
    Seal,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    members_for,
    plain_text,
)
from ...base import Target
from ...common.cache_breakpoints import trim_openai_marks
from ...common.call_ids import UniqueIds
from ...common.fields import Obj
from ...common.tool_names import ToolNames
from ...common.turns import marked_parts, missing_result, note_prefill
from ..own import NAME, goes_back, is_own
from .restore import IDS, restored
from .write_parts import PartWriter

_TEXT = frozenset({Text})
_PAIRED = frozenset({ToolCall, ToolResult})
_UNSEEN = Thinking()
_ITEM_IDS = {"function": "fc_", "custom": "ctc_"}
_FROM_MODEL = ("reasoning", "function_call", "custom_tool_call")


class ItemWriter:
    """Writes the messages of one request."""

    def __init__(
        self, messages: Sequence[Message], target: Target, names: ToolNames, parts: PartWriter
    ) -> None:
        self._messages = messages
        self._target = target
        self._names = names
        self._parts = parts
        self._notices = parts.notices
        self._ids = UniqueIds(target.ids or IDS)
        self._items: list[Any] = []
        self._has_reasoning = False
        paired = [p for m in messages for p in m.parts if type(p) in _PAIRED]
        # In other protocols, only the call shows whether a result belongs to a freeform tool.
        self._kinds = {p.id: p.kind for p in paired if type(p) is ToolCall}
        self._answered = {p.call_id for p in paired if type(p) is ToolResult}

    def own_items(self, first: int) -> list[Any]:
        """Write the messages from `first` on. Those of a Responses client stay unchanged."""
        for index, message in enumerate(self._messages[first:], first):
            if is_own(message.raw):
                self._return(message)
            else:
                self._write(message, index)
        return self._items

    def translated_items(self, first: int) -> list[Obj]:
        """Write all messages from `first` on from their neutral form."""
        unanswered = self._kinds.keys() - self._answered
        waiting: list[ToolCall] = []
        for index, message in enumerate(self._messages[first:], first):
            if waiting and message.role != "assistant":
                for call in waiting:
                    self._add_result(missing_result(call, self._notices), index)
                waiting = []
            self._write(message, index)
            if unanswered:
                calls = (part for part in message.parts if isinstance(part, ToolCall))
                waiting += [call for call in calls if call.id in unanswered]
        note_prefill(self._messages, self._notices)
        trim_openai_marks(self._parts.marked, self._notices)
        return _without_lone_reasoning(self._items) if self._has_reasoning else self._items

    def _return(self, message: Message) -> None:
        """Add an original message. The seal of a call comes before it."""
        assert message.raw is not None
        for part in message.parts:
            if isinstance(part, ToolCall):
                self._add_reasoning(_UNSEEN, part.seal)
        item = restored(message.raw, self._target)
        if isinstance(item, str):
            item = {"type": "message", "role": "user", "content": item}
        if item is not None:
            self._items.append(item)

    def _write(self, message: Message, index: int) -> None:
        """Write the message at `index`: its text, and its calls, results and thoughts as separate items."""
        if message.name:
            self._notices.warn("message-name-dropped", f"messages[{index}]", "messages cannot carry a name")
        by_model = message.role == "assistant"
        write_text = self._parts.output_text if by_model else self._parts.input_text
        content: list[Obj] = []
        for part in message.parts:
            if type(part) is Text:
                content += [write_text(part, index)] if part.text else []
                continue
            if type(part) is Refusal or type(part) is Media:
                content += self._parts.rare(part, index, by_model=by_model)
                continue
            before = len(self._items)
            self._add(part, index)
            if content and len(self._items) > before:
                self._items.insert(before, _message_item(message, content))
                content = []
        if content:
            self._items.append(_message_item(message, content))
        elif message.role == "user" and _is_silent(message):
            self._items.append(_message_item(message, ""))

    def _add(self, part: Part, index: int) -> None:
        """Write a part of the message at `index` as a separate item."""
        if type(part) is ToolCall:
            self._add_reasoning(_UNSEEN, part.seal)
            self._items.append(self._call(part))
        elif type(part) is ToolResult:
            self._add_result(part, index)
        elif type(part) is Thinking:
            self._add_reasoning(part, part.seal)
        elif type(part) is Opaque and is_own(part.raw):
            self._items.append(part.raw.parsed)
        elif type(part) is Opaque:
            message = f"{part.type or 'a part'} of {part.raw.protocol} has no counterpart"
            self._notices.warn("opaque-dropped", f"messages[{index}]", message)

    def _add_reasoning(self, thinking: Thinking, seal: Seal | None) -> None:
        """Return reasoning to its issuer. Without a seal it is dropped; it never becomes text."""
        if seal is not None and goes_back(seal, self._target):
            self._has_reasoning = True
            self._items.append(_reasoning(thinking, seal))

    def _call(self, call: ToolCall) -> Obj:
        custom = call.kind == "custom"
        item: Obj = {"type": "custom_tool_call" if custom else "function_call"}
        id = members_for(NAME, call.extras).get("id")
        # OpenAI refuses an item id with another prefix, and does not require one.
        if isinstance(id, str) and id.startswith(_ITEM_IDS[call.kind]) and len(id) <= IDS.max_length:
            item["id"] = id
        item["call_id"] = self._ids.call(call.id)
        if call.namespace:
            item["namespace"] = call.namespace
        item["name"] = self._names.out(call.name, call.namespace)
        if custom:
            item["input"] = call.arguments
        else:
            item["arguments"] = call.arguments or "{}"
        return item

    def _add_result(self, result: ToolResult, index: int) -> None:
        kind = self._kinds.get(result.call_id, result.kind)
        name = "custom_tool_call_output" if kind == "custom" else "function_call_output"
        output = self._output(result, index)
        id = self._ids.result(result.call_id)
        self._items.append({"type": name, "call_id": id, "output": output})

    def _output(self, result: ToolResult, index: int) -> str | list[Obj]:
        """Write an output: text as a string, which every server accepts; a list only if necessary.

        A string cannot hold a cache breakpoint, so the breakpoint is dropped. Agents move the breakpoint with
        every turn, and a string that becomes a list and a string again would change the cached prefix.
        """
        parts = marked_parts(result)
        if _TEXT.issuperset(map(type, parts)):
            return plain_text(parts)
        return [self._parts.input(part, index) for part in parts]


def _is_silent(message: Message) -> bool:
    """Is this an empty prompt, as a client sends it to let the model begin?"""
    return not any(type(part) is not Text or part.text for part in message.parts)


def _message_item(message: Message, content: list[Obj] | str) -> Obj:
    return {"type": "message", "role": message.role, "content": content}


def _reasoning(thinking: Thinking, seal: Seal) -> Obj:
    item: Obj = {"type": "reasoning"}
    # OpenRouter's ids (`rs_tmp_…`, `gen-…`) and others mean nothing to OpenAI. The id is optional.
    if seal.id and seal.id.startswith("rs_"):
        item["id"] = seal.id
    # OpenAI requires `summary`, even if it is empty.
    parts = thinking.summaries or (thinking.text,)
    item["summary"] = [{"type": "summary_text", "text": text} for text in parts if text]
    if seal.data:
        item["encrypted_content"] = seal.data
    return item


def _without_lone_reasoning(items: list[Obj]) -> list[Obj]:
    """Remove reasoning that no item of the model follows: OpenAI refuses it with a 400 (continue#8933).

    It occurs if the call or the text after it could not be sent.
    """
    kept: list[Obj] = []
    for item in reversed(items):
        following = kept[-1] if kept else {}
        by_model = following.get("type") in _FROM_MODEL or following.get("role") == "assistant"
        if by_model or item.get("type") != "reasoning":
            kept.append(item)
    return kept[::-1]
