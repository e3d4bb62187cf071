"""Encode events for OpenAI Chat clients: a stream of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

import msgspec

from ....model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    Carried,
    CitationAdded,
    End,
    Event,
    Failed,
    Ping,
    Sealed,
    Start,
    TextDelta,
    Unknown,
    UsageSeen,
)
from ....model.messages import (
    SEPARATOR,
    Extras,
    Media,
    Opaque,
    Part,
    Refusal,
    Seal,
    Search,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    members_for,
)
from ....wire.frames import escape_separators
from ...base import AnswerContext
from ...common.extras import merged
from ...common.fields import Obj, is_object
from ..own import NAME
from .chunk import PendingChunk
from .objects import (
    annotation,
    call_object,
    delta_members,
    envelope,
    error_body,
    finish_reason,
    image,
    own_usage,
    reasoning_details,
    reasoning_fields,
)
from .reasoning_text import TEXT_FIELDS

_TAIL = b'},"finish_reason":null}]}\n\n'
_REASONING = b'"reasoning_content":'
# Members of a delta that are lists: they are merged item by item.
_IN_LISTS = frozenset({"tool_calls", "reasoning_details"})
_UNPREPARED = Extras("", {})
_NO_MEMBERS: Obj = {}
_NO_CHOICE = [_NO_MEMBERS]

_json = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


def _inner(members: Obj, without: Sequence[str]) -> bytes:
    """The JSON of members, each with a comma after it."""
    if not members.keys().isdisjoint(without):
        members = {name: value for name, value in members.items() if name not in without}
    return _json(members)[1:-1] + b"," if members else b""


class StreamEncoder:
    """Writes one answer as chunks. The constant parts of a chunk are encoded once."""

    __slots__ = (
        "_around", "_around_extras", "_calls", "_chunk", "_context", "_empty_call", "_envelope", "_fields",
        "_head", "_listed", "_own_frames", "_reasoning", "_reasoning_fields", "_refused", "_silent",
        "_templates", "_thought", "_usage",
    )  # fmt: skip

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._envelope: Obj = {}
        self._head = b""
        """The beginning of every chunk."""
        self._chunk: PendingChunk | None = None
        """A chunk that more events of the same frame may join."""
        self._around: tuple[bytes, bytes] = b"", b""
        """The bytes of a chunk around the text of a delta, with the members of `_around_extras`."""
        self._around_extras: Extras | None = None
        self._templates: dict[int, tuple[bytes, bytes]] = {}
        """By open block: the bytes of a whole chunk before and after the text of a delta."""
        self._own_frames = False
        """Do the events come from a Chat upstream? Then those of one of its chunks share a chunk again."""
        self._reasoning_fields: tuple[str, ...] = ("reasoning_content",)
        """The fields for reasoning whose chunk names none."""
        self._reasoning = _REASONING
        """The start of the field with reasoning, as the upstream names it."""
        self._fields: dict[int, tuple[bytes, bytes]] = {}
        """By open block: the bytes of a delta before and after its text."""
        self._silent: set[int] = set()
        """Thinking blocks without text so far."""
        self._thought = False
        """Has the client got reasoning? A blank line separates it from the next thinking block."""
        self._calls = 0
        self._empty_call: Obj = {"function": {"arguments": ""}}
        """An entry of the last call without arguments."""
        self._refused = False
        self._listed = 0
        self._usage: UsageSeen | None = None

    def encode(self, events: list[Event]) -> bytes:
        if len(events) == 1:
            event = events[0]
            if type(event) is TextDelta or type(event) is ArgumentsDelta:
                return self._delta(event)
            return self._whole(event)
        first = events[0]
        if type(first) is Start:
            self._own_frames = first.extras is not None
        if not self._own_frames:
            return b"".join([self.encode([event]) for event in events])
        out: list[bytes] = []
        for event in events:
            self._write_event(event, out)
        self._flush(out)
        return b"".join(out)

    def _whole(self, event: Event) -> bytes:
        """The chunks of one event."""
        out: list[bytes] = []
        self._write_event(event, out)
        self._flush(out)
        return b"".join(out)

    def _delta(self, event: TextDelta | ArgumentsDelta) -> bytes:
        """The chunk of a delta, from a template if its members fit into one."""
        around = self._templates.get(event.block) if event.extras is self._around_extras else None
        if around is None:
            around = self._template(event)
            if around is None:
                return self._whole(event)
        text = _json(event.text)
        before, after = around
        return before + (text if text.isascii() else escape_separators(text)) + after

    def _template(self, event: TextDelta | ArgumentsDelta) -> tuple[bytes, bytes] | None:
        """The bytes of a chunk before and after the text of a delta; None if they are no constants."""
        fields = self._fields.get(event.block)
        if fields is None or event.block in self._silent:
            return None
        if event.extras is not self._around_extras and not self._prepare(event.extras):
            return None
        before, after = fields
        head, tail = self._around
        before = head + (self._reasoning if before is _REASONING else before)
        self._templates[event.block] = around = before, after + tail
        return around

    def _write_event(self, event: Event, out: list[bytes]) -> None:
        match event:
            case Start():
                self._start(event, out)
            case BlockStart() | BlockEnd() | Sealed() | CitationAdded():
                self._block_event(event, out)
            case UsageSeen():
                self._count(event)
            case Carried(extras):
                self._join({}, extras, out)
            case End():
                self._end(event, out)
            case Failed():
                self._flush(out)
                out += (b"data: ", error_body(event), b"\n\n")
            case TextDelta() | ArgumentsDelta():
                self._join_delta(event, out)
            case Ping() | Unknown():
                pass  # Chat has no pings and no other frames
            case _:
                assert_never(event)

    def _block_event(self, event: BlockStart | BlockEnd | Sealed | CitationAdded, out: list[bytes]) -> None:
        match event:
            case BlockStart(block, part):
                self._open(block, part, event.extras, out)
            case BlockEnd(block):
                self._fields.pop(block, None)
                self._templates.pop(block, None)
                self._silent.discard(block)
            case Sealed(_, seal):
                self._sealed(seal, event.extras, out)
            case CitationAdded(_, citation):
                self._list("annotations", annotation(citation), out)
            case _:
                assert_never(event)

    def _prepare(self, extras: Extras | None) -> bool:
        """Encode the parts of a chunk around its delta. False if some belong into one of its lists."""
        members = self._own(extras)
        choices: list[Obj] = members.get("choices") or _NO_CHOICE
        choice = choices[0]
        delta: Obj = choice.get("delta") or _NO_MEMBERS
        fields = [name for name in TEXT_FIELDS if delta.get(name) == ""] if delta else []
        if len(choices) != 1 or len(fields) > 1 or "index" in choice or not _IN_LISTS.isdisjoint(delta):
            return False
        head = b"%b%b\"choices\":[{\"index\":0,%b\"delta\":{%b" % (
            self._head, _inner(members, ("choices",)), _inner(choice, ("delta",)), _inner(delta, fields)
        )  # fmt: skip
        self._around = escape_separators(head), _TAIL
        self._around_extras = extras
        self._templates.clear()
        self._reasoning = _json(fields[0]) + b":" if fields else _REASONING
        return True

    def _own(self, extras: Extras | None) -> Obj:
        """The members of a Chat upstream's chunk that belong into the client's chunk."""
        members = members_for(NAME, extras)
        if self._context.include_usage or "usage" not in members:
            return members
        # Dragoman asked the upstream for it, not the client.
        return {name: value for name, value in members.items() if name != "usage"}

    def _join_delta(self, event: TextDelta | ArgumentsDelta, out: list[bytes]) -> None:
        """Write a delta into a chunk with other members."""
        if event.block not in self._fields:
            return
        before, after = self._fields[event.block]
        if type(event) is TextDelta and event.block in self._silent:
            self._begin_thinking(event, out)
        if before is _REASONING:
            self._join(reasoning_fields(event.text, event.extras, self._reasoning_fields), event.extras, out)
        else:
            self._join(_decode(b"{%b%b%b}" % (before, _json(event.text), after)), event.extras, out)

    def _join(self, delta: Obj, extras: Extras | None, out: list[bytes]) -> None:
        """Write the members of a delta, in the open chunk if they fit into it."""
        chunk = self._chunk
        if chunk is None or not chunk.takes(delta, extras):
            self._flush(out)
            chunk = self._chunk = PendingChunk()
        chunk.add(delta, extras)
        if not self._own_frames:
            self._flush(out)

    def _flush(self, out: list[bytes]) -> None:
        """Write the open chunk."""
        chunk, self._chunk = self._chunk, None
        if chunk is not None:
            self._write(chunk.delta, chunk.extras, None, out)

    def _write(self, delta: Obj, extras: Extras | None, finish: str | None, out: list[bytes]) -> None:
        members = self._own(extras)
        choices: list[Obj] | None = members.get("choices")
        value: Obj = {**self._envelope}
        # Some chunks of an upstream have no choice, or only one of `n > 1`: then there is none to write.
        foreign = choices is not None and (not choices or "index" in choices[0])
        if not foreign or delta or finish:
            own: Obj = {"index": 0, "delta": delta, "finish_reason": finish}
            value["choices"] = [own, *choices] if foreign and choices else [own]
            if foreign:
                members = {name: given for name, given in members.items() if name != "choices"}
        usage: Any = members.get("usage")
        if is_object(usage) and self._usage is not None:
            value["usage"] = own_usage(self._usage.usage, usage)
            self._usage = None
        if members:
            value = merged(value, members)
            if delta_members(extras).get("tool_calls") and not delta.get("tool_calls"):
                value["choices"][0]["delta"]["tool_calls"] = self._placed(extras)
        out.append(b"data: %b\n\n" % escape_separators(_json(value)))

    def _placed(self, extras: Extras | None) -> list[Obj]:
        """Members of entries of calls whose content is elsewhere. The SDK needs an index, agents a text."""
        last: Obj = {"index": max(0, self._calls - 1), **self._empty_call}
        return [merged(last, call) for call in delta_members(extras)["tool_calls"]]

    def _start(self, event: Start, out: list[bytes]) -> None:
        self._envelope = envelope("chat.completion.chunk", event, self._context)
        self._head = b"data: %b," % _json(self._envelope)[:-1]
        self._around_extras = _UNPREPARED
        # The role is sent once: the SDK would concatenate a second one. OpenAI's first chunk also has text.
        self._own_frames = event.extras is not None
        given = delta_members(event.extras)
        if fields := [name for name in TEXT_FIELDS if given.get(name) == ""]:
            self._reasoning_fields = tuple(fields)
        elif "reasoning_details" in given:
            self._reasoning_fields = ()
        role: Obj = {"role": "assistant"}
        self._join(role if self._own_frames else {**role, "content": ""}, event.extras, out)

    def _open(self, block: int, part: Part, extras: Extras | None, out: list[bytes]) -> None:
        match part:
            case Thinking(_, seal):
                # Not in OpenAI's spec. DeepSeek introduced the field, and most agents read it.
                self._fields[block] = _REASONING, b""
                self._silent.add(block)
                if seal is not None:
                    self._sealed(seal, part.extras, out)
            case Text():
                self._fields[block] = b'"content":', b""
            case Refusal():
                self._fields[block] = b'"refusal":', b""
                self._refused = True
            case ToolCall():
                self._open_call(block, part, extras, out)
            case Media():
                if image(part):
                    self._list("images", image(part), out)
            case ToolResult() | Opaque() | Search():
                pass  # Chat's answers cannot contain them
            case _:
                assert_never(part)
        if extras is not None and type(part) is not ToolCall:
            self._join({}, extras, out)

    def _open_call(self, block: int, part: ToolCall, extras: Extras | None, out: list[bytes]) -> None:
        # Cursor 3.14 crashes on `type: custom` and takes the raw text as function arguments. `Freeform` says
        # which form this client reads.
        custom = part.kind == "custom" and self._context.freeform == "custom"
        inner = b'"custom":{"input":' if custom else b'"function":{"arguments":'
        self._fields[block] = b'"tool_calls":[{"index":%d,%b' % (self._calls, inner), b"}}]"
        self._empty_call = {"custom": {"input": ""}} if custom else {"function": {"arguments": ""}}
        call = call_object(part, "", self._context.freeform)
        call = merged({"index": self._calls, **call}, members_for(NAME, part.extras))
        self._calls += 1
        self._join({"tool_calls": [call]}, extras, out)

    def _begin_thinking(self, event: TextDelta, out: list[bytes]) -> None:
        """The first text of a thinking block follows."""
        self._silent.discard(event.block)
        if self._thought and event.extras is None:
            self._join({"reasoning_content": SEPARATOR}, None, out)
        self._thought = True

    def _sealed(self, seal: Seal, extras: Extras | None, out: list[bytes]) -> None:
        if extras is not None:
            return  # it came in the upstream's own chunks, which the client has
        for detail in reasoning_details(seal):
            self._list("reasoning_details", detail, out)

    def _list(self, field: str, item: Obj, out: list[bytes]) -> None:
        # OpenAI's SDK merges items of unknown lists by their index, and raises without one.
        self._flush(out)
        self._write({field: [{**item, "index": self._listed}]}, None, None, out)
        self._listed += 1

    def _count(self, event: UsageSeen) -> None:
        usage = event.usage if self._usage is None else self._usage.usage.updated(event.usage)
        self._usage = UsageSeen(usage, event.extras)

    def _end(self, event: End, out: list[bytes]) -> None:
        self._flush(out)
        self._write({}, event.extras, finish_reason(event.stop, refused=self._refused), out)
        # After the finish reason, in the last chunk, with empty `choices`: OpenAI's order. Its SDK keeps only
        # the usage of the last chunk.
        counted = self._usage
        if self._context.include_usage and counted is not None and counted.usage.known:
            members = members_for(NAME, counted.extras)
            usage = own_usage(counted.usage, members.get("usage") or {})
            value = merged({**self._envelope, "choices": [], "usage": usage}, members)
            out.append(b"data: %b\n\n" % escape_separators(_json(value)))
        out.append(b"data: [DONE]\n\n")
