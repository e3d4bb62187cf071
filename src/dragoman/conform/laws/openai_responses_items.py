"""The laws of one item of a Responses stream: its deltas add up to the done item."""

from __future__ import annotations

from ..shape import Json, entries
from .base import Complaints, Law
from .framing import filled

ITEM_ID = Law("item-id", "every item has a unique id, and its events carry it")
ITEM_ONCE = Law("item-once", "an item is added once, then filled, then done once")
ITEM_STABLE = Law("item-stable", "an item keeps its id, type, name, call_id and role")
EVENT_KIND = Law("event-kind", "an event fits the kind of its item")
EMPTY_START = Law("empty-start", "an item and a part start empty")
PARTS = Law("part-order", "parts are numbered 0, 1, 2, …, one open at a time, each added, filled and done")
DELTAS = Law("deltas-add-up", "the deltas add up to the done text, the done part and the done item")
NO_EMPTY_PART = Law("no-empty-part", "no part is empty at its end")
CALL_NAME = Law("call-name", "a call has a name and a call_id from its start")

LAWS_OF_ITEMS = (
    ITEM_ID,
    ITEM_ONCE,
    ITEM_STABLE,
    EVENT_KIND,
    EMPTY_START,
    PARTS,
    DELTAS,
    NO_EMPTY_PART,
)

# The members of each kind of item that deltas fill.
_EMPTY_AT_START: dict[str, tuple[str, ...]] = {
    "message": ("content",),
    "reasoning": ("summary",),
    "function_call": ("arguments",),
    "custom_tool_call": ("input",),
}
_IDENTITY = ("id", "type", "call_id", "name", "namespace", "role")
# The event family of a call, by the type of its item: (name, field that holds the text).
_CALLS = {
    "function_call": ("response.function_call_arguments", "arguments"),
    "custom_tool_call": ("response.custom_tool_call_input", "input"),
}
# The event families of parts: (index field, item type, field of the text).
_PARTS = {
    "response.content_part": "content_index",
    "response.reasoning_summary_part": "summary_index",
}
_TEXTS = {
    "response.output_text": ("content_index", "output_text", "text"),
    "response.refusal": ("content_index", "refusal", "refusal"),
    "response.reasoning_text": ("content_index", "reasoning_text", "text"),
    "response.reasoning_summary_text": ("summary_index", "summary_text", "text"),
}

_KINDS = frozenset(kind for _, kind, _ in _TEXTS.values())
_FAMILIES = frozenset(_PARTS) | frozenset(_TEXTS) | {name for name, _ in _CALLS.values()}


class StreamedItem:
    """One output item, from its added event to its done event."""

    def __init__(self, added: Json, complaints: Complaints) -> None:
        self.added = added
        self.id: str = added["id"]
        self.kind: str = added["type"]
        self.complain = complaints
        self.done: Json | None = None
        self.parts: dict[tuple[str, int], _Part] = {}
        self.raw = ""
        self.raw_done: str | None = None
        complaints.unless(filled(self.id), ITEM_ID, "an item without an id")
        for name in _EMPTY_AT_START.get(self.kind, ()):
            complaints.unless(name in added and not added[name], EMPTY_START, f"{name} is not empty yet")
        for name in ("call_id", "name"):
            if self.kind in _CALLS:
                complaints.unless(filled(added[name]), CALL_NAME, f"a call without a {name}")

    def feed(self, event: Json) -> None:
        kind: str = event["type"]
        self.complain.unless(self.done is None, ITEM_ONCE, "its item is done already")
        if kind == "response.output_item.done":
            self._finish(event["item"])
            return
        family, _, step = kind.rpartition(".")
        # OpenAI's own events about a shell call have no `item_id`.
        item_id = event["item_id"] if family in _FAMILIES else event.get("item_id", self.id)
        self.complain.unless(item_id == self.id, ITEM_ID, f"item_id is not {self.id}")
        if family in _PARTS:
            self._part_event(event, _PARTS[family], step)
        elif family in _TEXTS:
            self._text_event(event, family, step)
        elif family in _FAMILIES:
            self._call_event(event, family, step)

    def _part_event(self, event: Json, index: str, step: str) -> None:
        key = (index, event[index])
        if step == "added":
            before = [part for (name, _), part in self.parts.items() if name == index]
            self.complain.unless(event[index] == len(before), PARTS, f"{index} out of turn")
            self.complain.unless(all(part.closed for part in before), PARTS, "a part is still open")
            self.parts[key] = _Part(event["part"], self.complain)
        elif key not in self.parts:
            self.complain.add(PARTS, f"part {event[index]} was never added")
        else:
            self.parts[key].close(event["part"])

    def _text_event(self, event: Json, family: str, step: str) -> None:
        index, kind, field = _TEXTS[family]
        key = (index, event[index])
        if family == "response.reasoning_text" and key not in self.parts:
            # Servers of OpenAI's open models stream reasoning text without content_part events.
            self.parts[key] = _Part({"type": kind, field: ""}, self.complain)
            self.parts[key].closed = True
        part = self.parts.get(key)
        if part is None or part.kind != kind:
            self.complain.add(PARTS, f"no part {event[index]} of type {kind} is open")
        elif step == "delta":
            part.add(event["delta"])
        elif step == "done":
            part.end(event[field])

    def _call_event(self, event: Json, family: str, step: str) -> None:
        name, field = _CALLS.get(self.kind, ("", ""))
        self.complain.unless(name == family, EVENT_KIND, f"does not belong to a {self.kind}")
        if name != family:
            return
        self.complain.unless(self.raw_done is None, ITEM_ONCE, f"{field} are done already")
        if step == "delta":
            self.raw += event["delta"]
        else:
            self.raw_done = event[field]
            self.complain.unless(self.raw == self.raw_done, DELTAS, f"the deltas are not the {field}")

    def _finish(self, done: Json) -> None:
        self.done = done
        for name in _IDENTITY:
            self.complain.unless(
                self.added.get(name) == done.get(name), ITEM_STABLE, f"{name} changed since it was added"
            )
        if self.kind in _CALLS:
            self._finish_call(done)
        elif self.kind == "message":
            self._finish_parts("content_index", done["content"])
        elif self.kind == "reasoning":
            self._finish_parts("summary_index", done["summary"])
            self._finish_parts("content_index", entries(done, "content"))

    def _finish_call(self, done: Json) -> None:
        _, field = _CALLS[self.kind]
        self.complain.unless(done[field] == self.raw, DELTAS, f"the deltas are not the done {field}")
        if done.get("status") == "completed":
            self.complain.unless(self.raw_done is not None, DELTAS, f"no done event for its {field}")

    def _finish_parts(self, index: str, final: list[Json]) -> None:
        parts = [part for (name, _), part in sorted(self.parts.items()) if name == index]
        self.complain.unless(all(part.closed for part in parts), PARTS, "a part is still open")
        streamed = [(part.kind, part.text) for part in parts]
        expected = [(part["type"], part.get("text", part.get("refusal", ""))) for part in final]
        self.complain.unless(streamed == expected, DELTAS, "its parts are not what was streamed")


class _Part:
    def __init__(self, start: Json, complaints: Complaints) -> None:
        self.kind: str = start["type"]
        self.field = "refusal" if self.kind == "refusal" else "text"
        self.complain = complaints
        self.text = ""
        self.ended = False
        self.closed = False
        complaints.unless(not start.get(self.field), EMPTY_START, "the part is not empty yet")

    def add(self, delta: str) -> None:
        self.complain.unless(not self.ended, PARTS, "the text is done already")
        self.text += delta

    def end(self, text: str) -> None:
        self.complain.unless(not self.ended, PARTS, "the text is done already")
        self.complain.unless(text == self.text, DELTAS, "the deltas are not the done text")
        self.ended = True

    def close(self, part: Json) -> None:
        self.complain.unless(not self.closed, PARTS, "the part is done already")
        if self.kind not in _KINDS:
            self.closed = True
            return  # a kind of part without text
        self.complain.unless(self.ended, PARTS, "the text of the part is not done")
        self.complain.unless(part["type"] == self.kind, ITEM_STABLE, "the part changed its type")
        self.complain.unless(part.get(self.field) == self.text, DELTAS, "the part is not its deltas")
        self.complain.unless(self.text, NO_EMPTY_PART, "an empty part")
        self.closed = True
