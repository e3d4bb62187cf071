"""Encode events for Anthropic clients as a stream of named events.

The protocol record sets `serial`, so at most one block is open at a time. Its index is the number of blocks
before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from ....model.events import (
    NO_USAGE,
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
    Usage,
    UsageSeen,
)
from ....model.messages import Extras, Search, Thinking, ToolCall
from ....wire.frames import json_string, one_line
from ...base import AnswerContext
from ...common import sealed_reasoning
from ...common.extras import merged
from ...common.fields import Obj
from ..own import NAME
from ..searches import search_blocks
from .objects import (
    block_object,
    citation_object,
    error_body,
    members,
    message_object,
    stop_fields,
    usage_object,
    written,
)
from .wire import strict_members

# The only keepalive that Anthropic documents.
PING = b'event: ping\ndata: {"type":"ping"}\n\n'

# By type of block: the type of its deltas, and the member with their text.
_GROWTH = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "redacted_thinking": ("", ""),
}
_INPUT_GROWTH = ("input_json_delta", "partial_json")
# Templates: constant JSON is written once, not encoded for every event.
_TEXT_START = (
    b'event: content_block_start\ndata: {"type":"content_block_start","index":%d,'
    b'"content_block":{"type":"text","text":""}}\n\n'
)
_PLAIN_HEAD = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":%d,"delta":{"type":"%b","%b":'
)
_IN_BLOCK = b"event: content_block_"
_NEEDS_CONTENT = ("text", "thinking")


def _frame(value: Obj) -> bytes:
    # Anthropic's SDK skips frames without an event name.
    return b"event: %b\ndata: %b\n\n" % (value["type"].encode(), written(value))


def _delta_head(index: int, growth: tuple[str, str], extras: Obj) -> bytes:
    """The bytes before the text of a delta. The text is the last member of the frame: `}}` follows."""
    kind, field = growth
    delta = {"type": kind, **{key: value for key, value in extras.get("delta", {}).items() if key != field}}
    around = {key: value for key, value in extras.items() if key != "delta"}
    frame = {"type": "content_block_delta", "index": index, **around, "delta": delta}
    return b"%b,%b:" % (_frame(frame)[: -len(b"}}\n\n")], json_string(field))


def _plain_head(index: int, growth: tuple[str, str]) -> bytes:
    kind, field = growth
    return _PLAIN_HEAD % (index, kind.encode(), field.encode())


class StreamEncoder:
    """Writes one answer as named events."""

    __slots__ = (
        "_begun", "_container", "_context", "_ending", "_extras", "_extras_head", "_growth", "_head",
        "_index", "_seal", "_searches", "_sent", "_start", "_usage", "_waiting",
    )  # fmt: skip

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._start: Start | None = None
        """`message_start` waits for the usage in the same frame, which belongs into it."""
        self._begun = False
        self._usage = NO_USAGE
        self._ending: Obj = {}
        """Members of the upstream's latest `message_delta`. The client gets it before the next one, or at the
        end: a `message_delta` after the one with the stop reason would erase the reason in the SDK."""
        self._container: Any = None
        """The container that `message_start` named."""
        self._sent: Usage | None = None
        """The counts that the upstream sent in it. None: it sent none in this protocol."""
        self._index = 0
        self._growth: tuple[str, str] | None = None
        """The kind of the open block's deltas. None: no block is open."""
        self._head = b""
        """The bytes before the text of the next plain delta. Empty while the block waits for content."""
        self._waiting: list[bytes] = []
        """The frames of a text or thinking block without content so far: it must not stay empty, because
        Anthropic refuses it in a request."""
        self._extras: Extras | None = None
        self._extras_head = b""
        """The bytes before the text of a delta with `_extras`."""
        self._seal: Sealed | None = None
        """The signature of the open block. It goes out in one delta, the last one of its block: Anthropic's
        SDK overwrites the signature and does not append."""
        self._searches = 0

    def encode(self, events: list[Event]) -> bytes:
        out: list[bytes] = []
        rest = iter(events)
        for event in rest:
            # The most frequent events first: this runs for every fragment.
            if (
                (type(event) is TextDelta or type(event) is ArgumentsDelta)
                and self._head
                and event.extras is None
            ):
                out += (self._head, json_string(event.text), b"}}\n\n")
            else:
                self._event(event, rest, out)
        if self._start is not None:
            self._message_start(self._start, out)
        return b"".join(out)

    def _event(self, event: Event, rest: Iterator[Event], out: list[bytes]) -> None:
        if self._start is not None and not isinstance(event, UsageSeen | Failed):
            self._message_start(self._start, out)
        match event:
            case TextDelta() | ArgumentsDelta():
                self._grow(event.text, event.extras, out)
            case Carried():
                self._carried(event, rest, out)
            case BlockStart():
                self._open(event, out)
            case BlockEnd():
                self._close(event, out)
            case Sealed():
                self._sealed(event)
            case CitationAdded(_, citation):
                self._begin_block(out)
                delta = {"type": "citations_delta", "citation": citation_object(citation)}
                out.append(self._delta_frame(delta, event.extras))
            case Ping() | Unknown():
                self._aside(event, out)
            case Start() | UsageSeen() | End() | Failed():
                self._message(event, out)
            case _:
                assert_never(event)

    def _message(self, event: Start | UsageSeen | End | Failed, out: list[bytes]) -> None:
        match event:
            case Start():
                self._start = event
            case UsageSeen():
                self._usage_seen(event, out)
            case End():
                self._end(event, out)
            case Failed():
                # A failure before `message_start` needs no start: the SDK raises at an `error` event
                # anywhere.
                self._start = None
                out.append(b"event: error\ndata: " + error_body(event, self._context.id) + b"\n\n")

    def _message_start(self, start: Start, out: list[bytes]) -> None:
        self._begun = True
        kept = members(start.extras)
        usage = usage_object(self._usage, sent=self._sent, needed=("input_tokens", "output_tokens"))
        # Anthropic's SDK fails later if `content` or `usage` is missing.
        message = message_object(start, self._context)
        message |= {"content": [], "stop_reason": None, "stop_sequence": None}
        message["usage"] = merged(usage, self._ending.get("usage", {}))
        out.append(_frame(merged({"type": "message_start", "message": message}, kept)))
        self._start = self._sent = None
        self._ending = {}
        self._container = members(start.extras, "message").get("container")

    def _usage_seen(self, event: UsageSeen, out: list[bytes]) -> None:
        kept = members(event.extras)
        if "delta" in kept:
            self._next_ending(out)
        self._usage = self._usage.updated(event.usage)
        if kept:
            self._ending = merged(kept, self._ending)
            self._sent = event.usage if self._sent is None else self._sent.updated(event.usage)

    def _next_ending(self, out: list[bytes]) -> None:
        """Write a `message_delta` that was not the last one. In an open block, none is allowed."""
        if "delta" in self._ending and self._growth is None:
            self._message_delta({"stop_reason": None, "stop_sequence": None}, out)

    def _message_delta(self, delta: Obj, out: list[bytes]) -> None:
        # It must have `usage`: the SDK reads it without a check.
        usage = usage_object(self._usage, self._searches, sent=self._sent, needed=("output_tokens",))
        frame = {"type": "message_delta", "delta": delta, "usage": usage}
        out.append(_frame(merged(frame, self._ending)))
        self._ending, self._sent = {}, None

    def _end(self, event: End, out: list[bytes]) -> None:
        delta = stop_fields(event, self._ending.get("delta", {}))
        # A message that is complete in its `message_start` has no `message_delta`. The SDK takes the
        # container of ours, and forgets that of the start.
        if "delta" not in self._ending and self._container is not None:
            delta["container"] = self._container
        self._message_delta(delta, out)
        out.append(_frame(merged({"type": "message_stop"}, members(event.extras))))

    def _grow(self, text: str, extras: Extras | None, out: list[bytes]) -> None:
        if self._growth is None:
            return  # a block that Anthropic's answers cannot contain
        self._begin_block(out)
        out += (self._head_with(extras, self._growth), json_string(text), b"}}\n\n")

    def _head_with(self, extras: Extras | None, growth: tuple[str, str]) -> bytes:
        """The bytes before the text of a delta. Upstreams repeat their members in every delta."""
        kept = members(extras)
        if not kept:
            return _plain_head(self._index, growth)
        if extras is not self._extras:
            self._extras = extras
            self._extras_head = _delta_head(self._index, growth, kept)
        return self._extras_head

    def _carried(self, event: Carried, rest: Iterator[Event], out: list[bytes]) -> None:
        """Write members of a delta into the delta that follows, or into a frame without content."""
        kept = members(event.extras)
        if not kept or not self._begun:
            return
        growth = self._growth
        if "type" in kept:  # a frame of its own, which came before the content of the block
            self._add(_frame(kept), out)
            return
        if event.block is None or growth is None or not growth[0]:
            out.append(_frame(_ping(event.extras)))
            return
        following = next(rest, None)
        if (
            isinstance(following, TextDelta | ArgumentsDelta)
            and following.extras is None
            and "type" not in kept.get("delta", {})  # an empty delta of the upstream stays a frame
        ):
            self._grow(following.text, event.extras, out)
            return
        self._add(self._head_with(event.extras, growth) + b'""}}\n\n', out)
        if following is not None:
            self._event(following, rest, out)

    def _delta_frame(self, delta: Obj, extras: Extras | None) -> bytes:
        frame = {"type": "content_block_delta", "index": self._index, "delta": delta}
        return _frame(merged(frame, members(extras)))

    def _add(self, frame: bytes, out: list[bytes]) -> None:
        """Write a frame that is no content."""
        (self._waiting or out).append(frame)

    def _aside(self, event: Ping | Unknown, out: list[bytes]) -> None:
        if not self._begun:
            return  # before `message_start`, the SDK raises an error at any other event
        if isinstance(event, Ping):
            out.append(PING if event.extras is None else _frame(_ping(event.extras)))
        elif event.protocol != NAME:
            return
        elif event.block is None:
            out.append(b"event: %b\ndata: %b\n\n" % (event.event.encode(), one_line(event.data)))
        elif self._growth is not None:
            self._add(_frame({**strict_members(event.data), "type": event.event, "index": self._index}), out)

    def _open(self, event: BlockStart, out: list[bytes]) -> None:
        part = event.part
        self._seal = self._extras = None
        if isinstance(part, ToolCall) and part.seal is not None:
            self._seal_carrier(sealed_reasoning.to_slot(part.seal, NAME, part.id), out)
        if type(part) is Search:
            self._search(part, out)
        block = block_object(part)
        if block is None:
            return
        if isinstance(part, Thinking) and part.seal is not None and not part.seal.redacted:
            self._seal = Sealed(event.block, part.seal)
        kind = block["type"]
        self._growth = _GROWTH.get(kind, _INPUT_GROWTH)
        self._head = b""
        if kind == "text" and len(block) == 2 and event.extras is None:
            self._waiting = [_TEXT_START % self._index]
            return
        frame: Obj = {"type": "content_block_start", "index": self._index, "content_block": block}
        self._waiting = [_frame(merged(frame, members(event.extras)))]
        if kind not in _NEEDS_CONTENT:
            self._begin_block(out)

    def _begin_block(self, out: list[bytes]) -> None:
        """The open block has content: the client gets it."""
        if self._waiting and self._growth is not None:
            out += self._waiting
            self._waiting = []
            self._head = _plain_head(self._index, self._growth)

    def _sealed(self, event: Sealed) -> None:
        earlier = self._seal
        if earlier is not None and earlier.extras is not None:
            kept = merged(members(event.extras), members(earlier.extras))
            event = Sealed(event.block, event.seal, Extras(NAME, kept))
        self._seal = event

    def _close(self, event: BlockEnd, out: list[bytes]) -> None:
        if self._growth is None:
            return
        if self._seal is not None:
            self._begin_block(out)
            signature = sealed_reasoning.to_slot(self._seal.seal, NAME)
            delta = {"type": "signature_delta", "signature": signature}
            out.append(self._delta_frame(delta, self._seal.extras))
        if self._waiting:
            out += [frame for frame in self._waiting if not frame.startswith(_IN_BLOCK)]
        else:
            out.append(self._stop(event.extras))
        self._waiting, self._head, self._growth, self._seal = [], b"", None, None

    def _stop(self, extras: Extras | None = None) -> bytes:
        """End a block. The next one gets the next index."""
        frame = _frame(merged({"type": "content_block_stop", "index": self._index}, members(extras)))
        self._index += 1
        return frame

    def _whole_block(self, block: Obj, delta: Obj | None, out: list[bytes]) -> None:
        out.append(_frame({"type": "content_block_start", "index": self._index, "content_block": block}))
        if delta is not None:
            out.append(self._delta_frame(delta, None))
        out.append(self._stop())

    def _seal_carrier(self, signature: str, out: list[bytes]) -> None:
        """Write an empty thinking block that carries a call's seal: `tool_use` has no slot for one."""
        # Clients send thinking blocks back unchanged, because Anthropic checks their signatures. So the seal
        # returns with the next request. Ids are no place for a seal: they may not be long, and they would
        # reach other providers.
        block = {"type": "thinking", "thinking": "", "signature": ""}
        self._whole_block(block, {"type": "signature_delta", "signature": signature}, out)

    def _search(self, search: Search, out: list[bytes]) -> None:
        """Two blocks: the input of the first comes in a delta, which is where the SDK reads it."""
        call, result = search_blocks(search)
        delta = {"type": "input_json_delta", "partial_json": written(call["input"]).decode()}
        self._whole_block({**call, "input": {}}, delta, out)
        self._whole_block(result, None, out)
        self._searches += 1


def _ping(extras: Extras) -> Obj:
    """An event that clients ignore."""
    return merged({"type": "ping"}, members(extras))
