"""Check one item of a Responses stream for the pass-through: its end must repeat the streamed content."""

from __future__ import annotations

from typing import Any

from ...common.fields import is_object
from . import wire

CALLS = {"function_call": "arguments", "custom_tool_call": "input"}

# Families of events: the kind of content, and the member of `.done` with the whole content.
_ARGUMENTS = {
    "response.function_call_arguments": ("function_call", "arguments"),
    "response.custom_tool_call_input": ("custom_tool_call", "input"),
}
_TEXTS = {
    "response.output_text": ("content_index", "output_text", "text"),
    "response.refusal": ("content_index", "refusal", "refusal"),
    "response.reasoning_text": ("content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text": ("summary_index", "summary_text", "text"),
}
_PARTS = {
    "response.content_part": "content_index",
    "response.reasoning_summary_part": "summary_index",
}


# The item types in which each family of events may occur.
_HOLDERS = {
    "response.output_text": ("message",),
    "response.refusal": ("message",),
    "response.content_part": ("message", "reasoning"),
    "response.reasoning_text": ("reasoning",),
    "response.reasoning_summary_text": ("reasoning",),
    "response.reasoning_summary_part": ("reasoning",),
}
_FAMILIES = _ARGUMENTS.keys() | _TEXTS.keys() | _PARTS.keys() | {"response.output_item"}


def belongs_to_item(kind: str) -> bool:
    """Does an event of this type belong to an item?"""
    return kind.rpartition(".")[0] in _FAMILIES


class PartCheck:
    """Checks a content part, a summary, or the arguments of a call."""

    def __init__(self, kind: str = "") -> None:
        self.kind = kind
        self.pieces: list[str] = []
        self.whole: str | None = None
        self.closed = False

    def grow(self, delta: Any) -> bool:
        if not isinstance(delta, str) or self.whole is not None:
            return False
        self.pieces.append(delta)
        return True

    def end(self, whole: Any) -> bool:
        again, self.whole = self.whole is not None, whole
        return not again and whole == "".join(self.pieces)


class ItemCheck:
    """Checks one item from `added` to `done`."""

    def __init__(self, item: wire.AnswerItem) -> None:
        self.identity = identity(item)
        self.kind = item.type
        self.done = False
        self.raw = b""
        """The item in its `done` event."""
        self._call = PartCheck()
        self._parts: dict[tuple[str, int], PartCheck] = {}

    def passes(self, event: wire.ResponsesEvent) -> bool:
        family, _, step = event.type.rpartition(".")
        if self.done or (event.item_id is not None and event.item_id != self.identity[0]):
            return False
        if family in _ARGUMENTS:
            return self._arguments(*_ARGUMENTS[family], event, step)
        if family in _HOLDERS and self.kind not in _HOLDERS[family]:
            return False
        if family in _PARTS:
            return self._part(_PARTS[family], event, step)
        if family in _TEXTS:
            return self._text(*_TEXTS[family], event, step)
        return True

    def finish(self, item: wire.AnswerItem, raw: bytes) -> bool:
        self.done = True
        self.raw = raw
        if identity(item) != self.identity:
            return False
        if self.kind in CALLS:
            whole = item.arguments if self.kind == "function_call" else item.input
            return item.status == "completed" and isinstance(whole, str) and self._call.whole == whole
        if {"message": item.content, "reasoning": item.summary}.get(self.kind, ()) is None:
            return False  # clients access this member without a check
        final = [("content_index", n, c) for n, c in enumerate(item.content or ())]
        final += [("summary_index", n, c) for n, c in enumerate(item.summary or ())]
        parts = {(index, number): (c.type, c.refusal or c.text) for index, number, c in final}
        return parts == {key: (part.kind, part.whole) for key, part in self._parts.items()}

    def _arguments(self, kind: str, field: str, event: wire.ResponsesEvent, step: str) -> bool:
        if kind != self.kind or event.item_id is None:
            return False
        if step == "delta":
            return self._call.grow(event.delta)
        whole = event.arguments if field == "arguments" else event.input
        return bool(whole) and self._call.end(whole)  # empty arguments must become `{}`

    def _part(self, index: str, event: wire.ResponsesEvent, step: str) -> bool:
        number = event.content_index if index == "content_index" else event.summary_index
        part = event.part
        if not is_object(part) or number is None or event.item_id is None:
            return False
        before = [p for (name, _), p in self._parts.items() if name == index]
        if step == "added":
            self._parts[index, number] = PartCheck(str(part.get("type")))
            # As with items, a client would count content in `added` twice.
            empty = part.get("text") in (None, "") and part.get("refusal") in (None, "")
            return empty and number == len(before) and all(p.closed for p in before)
        check = self._parts.get((index, number))
        if check is None or check.closed:
            return False
        check.closed = True
        text = part.get("refusal" if check.kind == "refusal" else "text")
        return bool(text) and part.get("type") == check.kind and check.whole == text

    def _text(self, index: str, kind: str, field: str, event: wire.ResponsesEvent, step: str) -> bool:
        number = event.content_index if index == "content_index" else event.summary_index
        if number is None or event.item_id is None:
            return False
        if kind == "reasoning_text" and (index, number) not in self._parts:
            # Servers of OpenAI's open models send no `content_part` events for it. DeepSeek sends them.
            self._parts[index, number] = PartCheck(kind)
            self._parts[index, number].closed = True
        check = self._parts.get((index, number))
        if check is None or check.kind != kind:
            return False
        if step == "delta":
            return check.grow(event.delta)
        if step == "done":
            return check.end(event.refusal if field == "refusal" else event.text)
        return True


def identity(item: wire.AnswerItem) -> tuple[str | None, ...]:
    return item.id, item.type, item.call_id, item.name, item.namespace, item.role


def starts_empty(item: wire.AnswerItem) -> bool:
    """Is an added item empty? Clients append the deltas, so they would count initial content twice."""
    match item.type:
        case "message":
            return item.content == [] and item.role == "assistant"
        case "reasoning":
            return item.summary == [] and not item.content
        case "function_call":
            return item.arguments == ""
        case "custom_tool_call":
            return item.input == ""
        case _:
            return True
