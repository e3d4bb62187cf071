"""The item that a Responses client is getting, and its parts, until the final response repeats it.

An item holds what Dragoman writes, apart from the members of the upstream's own item. So it can be written
twice, each time with the members of that frame: in `output_item.done` and in the final response.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import msgspec

from ....model.messages import (
    Citation,
    Extras,
    Opaque,
    Part,
    Refusal,
    Text,
    Thinking,
    ToolCall,
)
from ....wire.frames import escape_separators
from ...common.extras import merged
from ...common.fields import Obj, is_array, is_object
from . import objects
from .forms import ARGUMENTS, INPUT, OTHER, REFUSAL, SUMMARY, TEXT, Form, Origin

_json = msgspec.json.Encoder().encode
IDENTITY = ("id", "type", "call_id", "name", "namespace", "role")
"""The members that must not change between `added` and `done`: OpenAI's SDK checks them."""
_LISTS = ("content", "summary")
_STATUSES = ("in_progress", "completed", "incomplete")


class State(Enum):
    """The life of an item, and of each part."""

    NEW = "new"
    """The client has not seen it."""
    ADDED = "added"
    """The client has its `added` event, and perhaps deltas."""
    DONE = "done"
    """The client has all of it. The final response repeats it."""


class OpenPart:
    """A part of an item: a text, a refusal, a part of reasoning, or the arguments of a call."""

    __slots__ = (
        "at", "citations", "extras", "form", "frames", "head", "middle", "once", "own", "pieces", "place",
        "state", "tail", "whole",
    )  # fmt: skip

    def __init__(self, form: Form, at: int, place: int, *, own: bool, whole: Obj | None = None) -> None:
        self.form = form
        self.own = own
        """The upstream's item has this part: its deltas have the members that the upstream gave them."""
        self.at = at
        """The upstream's index of the part."""
        self.place = place
        """The client's index of the part."""
        self.whole = whole
        """A part without neutral meaning, as it came."""
        self.state = State.NEW
        self.pieces: list[str] = []
        self.citations: list[Citation] = []
        self.frames: dict[str, Obj] = {}
        """The upstream's frames about the part, by type."""
        self.head = self.middle = self.tail = b""
        """The bytes of a delta: before the sequence number, between it and the text, after the text."""
        self.extras: Extras | None = None
        """The members that `tail` was made for."""
        self.once = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def prepare_deltas(self, where: Obj) -> None:
        """Make the bytes that all deltas have. `where` is the place of the part."""
        kind = f"{self.form.family}.delta".encode()
        self.head = b'event: %b\ndata: {"type":"%b","sequence_number":' % (kind, kind)
        # The item id may be the upstream's.
        self.middle = escape_separators(b"," + _json({**where, "delta": ""})[1 : -len(b'""}')])
        self.set_tail(None, None)

    def set_tail(self, extras: Extras | None, ahead: Obj | None) -> None:
        """Make the bytes after the text, from the delta's members and those that came ahead of it."""
        self.extras = extras
        # Members that came ahead go out once. Then `tail` has to be made again.
        self.once = ahead is not None
        if not self.own:
            members = required(self.form)
        else:
            members = {} if extras is None else extras.members
            if ahead is not None:
                members = {**ahead, **members}
        rest = b",%b\n\n" % _json(members)[1:] if members else b"}\n\n"
        self.tail = rest if rest.isascii() else escape_separators(rest)

    def entry(self, text: str, given: Any) -> Obj:
        """The part with `text`. `given` is the upstream's own part; None: it has none."""
        form = self.form
        if self.whole is not None:
            same = is_object(given) and given.get("type") == self.whole.get("type")
            return given if same else self.whole
        written: Obj = {"type": form.type, form.member: text}
        notes = [objects.annotation(citation) for citation in self.citations] if text else []
        if not is_object(given):
            return objects.with_notes(written, notes) if form is TEXT else written
        entry = merged(written, given)
        own = entry.get("annotations")
        if notes and (not is_array(own) or len(own) < len(notes)):
            entry["annotations"] = notes
        return entry


class OpenItem:
    """An output item, from its block's start."""

    def __init__(self, part: Part, id: str, origin: Origin | None) -> None:
        self.part = part
        """What the item is: the part of its first block."""
        self.id = id
        self.origin = origin
        """None: the upstream speaks another protocol, or has no such item."""
        self.state = State.NEW
        self.complete = True
        self.seal = part.seal if isinstance(part, Thinking) else None
        self.frames: dict[str, Obj] = {}
        """The upstream's frames about the item, by type."""
        self.parts: list[OpenPart] = []
        self.added: Obj = {}
        """The item in its `added` event."""
        self.done: Obj = {}
        """The item in its `done` event."""

    @property
    def has_deltas(self) -> bool:
        return form_of(self.part, self.origin) is not None

    def keep(self, frames: Iterable[Obj]) -> None:
        """Keep the upstream's frames until the same ones are written for the client."""
        for frame in frames:
            kind: str = frame["type"]
            about_item = kind.startswith("response.output_item.") or not self.parts
            (self if about_item else self.parts[-1]).frames[kind] = frame

    def continues(self, origin: Origin | None) -> bool:
        """Does a block from `origin` belong to this item?"""
        own = self.origin
        if own is None or origin is None or origin.form is None or own.form is None:
            return False
        return (own.item, own.form.item) == (origin.item, origin.form.item) and bool(own.form.list)

    def new_part(self, part: Part, form: Form, origin: Origin | None) -> OpenPart:
        place = sum(known.form.list == form.list for known in self.parts if known.state is not State.NEW)
        whole = part.raw.value if isinstance(part, Opaque) else None
        at = place if origin is None else origin.at
        self.parts.append(OpenPart(form, at, place, own=self.origin is not None, whole=whole))
        return self.parts[-1]

    def drop_empty(self) -> None:
        """Forget the newest part if it got no text. Clients do not expect empty parts."""
        if self.parts and self.parts[-1].form.list and self.parts[-1].state is State.NEW:
            self.frames |= self.parts.pop().frames

    def written_at_start(self) -> Obj:
        """The item for `output_item.added`."""
        frame = self.frames.get("response.output_item.added", {})
        given = frame.get("item")
        if not is_object(given):
            item = objects.item_object(self.part, self.id) or {}
        else:
            item = merged(self._own(), given)
            if self.has_deltas:
                item |= {name: [] for name in _LISTS if is_array(item.get(name))}
            if isinstance(self.part, ToolCall) and item.get("status", "completed") not in _STATUSES:
                item["status"] = "in_progress"
        self.added, self.state = item, State.ADDED
        return item

    def written(self, given: Any) -> Obj:
        """The whole item. `given` is the upstream's own item; None: it has none."""
        if self.origin is None:
            return self._identified(self._foreign())
        if not is_object(given):
            ended = {"status": "completed"} if self.has_deltas and "status" in self.added else {}
            given = self.added | ended
        return self._identified(self._with_content(merged(self._own(), given), given))

    def _own(self) -> Obj:
        """What Dragoman writes of an item of the upstream, without its content."""
        item = objects.item_object(self.part, self.id) or {}
        # A whole item keeps the upstream's members. A status says how far the item is: the upstream knows.
        known = ("id", "type") if isinstance(self.part, Opaque) else item.keys() - {"status"}
        return {name: item[name] for name in item if name in known}

    def _identified(self, item: Obj) -> Obj:
        """`item` with the identity that the client knows."""
        if self.state is State.NEW:
            return item
        for name in IDENTITY:
            if name in self.added:
                item[name] = self.added[name]
            else:
                item.pop(name, None)
        return item

    def _with_content(self, item: Obj, given: Obj) -> Obj:
        """`item` of the upstream with the content that the client got."""
        part = self.part
        if isinstance(part, ToolCall):
            item["input" if part.kind == "custom" else "arguments"] = self.text
            if "status" in item or not self.complete:
                item["status"] = "completed" if self.complete else "incomplete"
            return item
        if not self.has_deltas:
            return item
        for name in _LISTS:
            parts = [part for part in self.parts if part.form.list == name and part.state is not State.NEW]
            if parts or is_array(item.get(name)):
                item[name] = [part.entry(part.text, _entry(given, part)) for part in parts]
        if self.seal is not None:
            item["encrypted_content"] = objects.sealed(self.seal)
        return item

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)

    def _foreign(self) -> Obj:
        """The item of another protocol's answer."""
        part = self.part
        content = [known.entry(known.text, None) for known in self.parts if known.state is not State.NEW]
        if isinstance(part, ToolCall):
            part = msgspec.structs.replace(part, arguments=self.text)
        elif isinstance(part, Thinking):
            part = Thinking(seal=self.seal)
        return objects.whole_item(part, self.id, content, self.complete)


def repeated(item: Any, done: Any) -> Any:
    """`item` in the final response, with the values that the client got when it was done."""
    if is_object(item) and is_object(done):
        return {name: repeated(value, done[name]) if name in done else value for name, value in item.items()}
    if is_array(item) and is_array(done) and len(item) == len(done):
        return [repeated(one, other) for one, other in zip(item, done, strict=True)]
    return done


def _entry(given: Obj, part: OpenPart) -> Any:
    entries = given.get(part.form.list)
    return entries[part.at] if is_array(entries) and part.at < len(entries) else None


def required(form: Form) -> Obj:
    """The members that the SDK requires of events of text."""
    return {"logprobs": []} if form is TEXT else {}


def text_of(part: Part) -> str:
    """The text that a part has at its start. It has none in a stream."""
    match part:
        case Text(text=text) | Refusal(text=text) | Thinking(text=text) | ToolCall(arguments=text):
            return text
        case _:
            return ""


def form_of(part: Part, origin: Origin | None) -> Form | None:
    """The form of the deltas of a part; None if it has none."""
    match part:
        case Text():
            return TEXT
        case Refusal():
            return REFUSAL
        case Thinking():
            return (origin.form if origin is not None else None) or SUMMARY
        case ToolCall(builtin=""):
            return INPUT if part.kind == "custom" else ARGUMENTS
        case Opaque() if origin is not None and origin.form is OTHER:
            return OTHER
        case _:
            return None  # the call of a built-in tool holds an object, which has no deltas
