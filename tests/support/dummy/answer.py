"""Reads and writes answers of the dummy protocol.

The events of a stream: `{"begin", "model"}`, then `{"open": 0, "kind", "id", "tool"}`, `{"more": 0, "text"}`
and `{"done": 0, "whole"}` for each block, `{"count": {…}}`, and last `{"end"}` or `{"error"}`.
"""

from typing import Any

import msgspec

from dragoman.model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    End,
    Event,
    Failed,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from dragoman.model.messages import Part, Refusal, Text, Thinking, ToolCall
from dragoman.protocols.base import AnswerContext
from dragoman.protocols.common import failures
from dragoman.protocols.common.collect import Answer
from dragoman.protocols.facts import Obj
from dragoman.wire.frames import Frame, one_line

_KINDS = {Text: "text", Thinking: "thought", Refusal: "refusal", ToolCall: "call"}
_PARTS = {"text": Text, "thought": Thinking, "refusal": Refusal}
_ENDS = {
    Stop.END: "done",
    Stop.TOOL: "call",
    Stop.MAX_TOKENS: "length",
    Stop.REFUSAL: "refused",
    Stop.FILTER: "filtered",
}
_STOPS = {end: stop for stop, end in _ENDS.items()}


class Decoder:
    def __init__(self, issuer: str = "", watched: bool = False) -> None:
        self._calls: set[int] = set()
        self._over = False

    def frame(self, frame: Frame) -> list[Event]:
        if self._over:
            return []
        value: Any = msgspec.json.decode(frame.data)
        events = self._whole(value) if "answer" in value else self._event(value)
        self._over = any(isinstance(event, (End, Failed)) for event in events)
        return events

    def close(self) -> list[Event]:
        return [] if self._over else [failures.cut_off("the answer ended without an end")]

    def _event(self, value: Obj) -> list[Event]:
        match value:
            case {"begin": id, "model": model}:
                return [Start(id, model)]
            case {"open": block}:
                return [BlockStart(block, self._part(block, value))]
            case {"more": block, "text": text}:
                return [(ArgumentsDelta if block in self._calls else TextDelta)(block, text)]
            case {"done": block, "whole": whole}:
                return [BlockEnd(block, whole)]
            case {"count": count}:
                return [UsageSeen(_usage(count))]
            case {"end": end}:
                return [End(_STOPS[end])]
            case _:
                return [failures.from_error(value)]

    def _part(self, block: int, value: Obj) -> Part:
        if value["kind"] != "call":
            return _PARTS[value["kind"]]()
        self._calls.add(block)
        return ToolCall(id=value["id"], name=value["tool"])

    def _whole(self, value: Obj) -> list[Event]:
        events: list[Event] = [Start(value["id"], value["model"])]
        for block, part in enumerate(value["answer"]):
            events += self._event({"open": block, **part})
            events += self._event({"more": block, "text": part["text"]})
            events.append(BlockEnd(block))
        return [*events, UsageSeen(_usage(value["count"])), End(_STOPS[value["end"]])]


def _usage(count: Obj) -> Usage:
    cached = count.get("cached")
    known = count.get("in")
    plain = known if known is None or cached is None else known - cached
    return Usage(input=plain, cache_read=cached, output=count.get("out"), reasoning=count.get("thought"))


class StreamEncoder:
    def __init__(self, context: AnswerContext) -> None:
        self._context = context

    def encode(self, events: list[Event]) -> bytes:
        values = (value for event in events if (value := self._value(event)) is not None)
        return b"".join(b"data: %s\n\n" % one_line(msgspec.json.encode(value)) for value in values)

    def verbatim(self, frame: Frame, events: list[Event]) -> bytes:
        """A frame does not depend on those before it."""
        return b"data: " + one_line(frame.data) + b"\n\n"

    def _value(self, event: Event) -> Obj | None:
        match event:
            case Start(id, model):
                return {"begin": id or self._context.id, "model": model or self._context.model}
            case BlockStart(block, part):
                return {"open": block, **_head(part)}
            case TextDelta(block, text) | ArgumentsDelta(block, text):
                return {"more": block, "text": text}
            case BlockEnd(block, complete):
                return {"done": block, "whole": complete}
            case UsageSeen(usage):
                return {"count": _count(usage)}
            case End(stop):
                return {"end": _ENDS.get(stop, "done")}
            case Failed():
                return _error(event)
            case _:
                return None


def _head(part: Part) -> Obj:
    named = {"id": part.id, "tool": part.name} if isinstance(part, ToolCall) else {}
    return {"kind": _KINDS[type(part)], **named}


def _count(usage: Usage) -> Obj:
    counts = {"in": usage.prompt, "cached": usage.cache_read, "out": usage.output, "thought": usage.reasoning}
    return {name: count for name, count in counts.items() if count is not None}


def render(answer: Answer, context: AnswerContext) -> bytes:
    parts = [{**_head(p), "text": p.arguments if isinstance(p, ToolCall) else p.text} for p in answer.parts]
    assert answer.end is not None
    head = {
        "id": answer.start.id or context.id,
        "model": answer.start.model or context.model,
        "answer": parts,
    }
    end = _ENDS.get(answer.end.stop, "done")
    return msgspec.json.encode({**head, "end": end, "count": _count(answer.usage)})


def _error(failure: Failed) -> Obj:
    return {"error": {"message": failure.message, "code": failure.code, "status": failure.status}}


def error_body(failure: Failed, id: str) -> bytes:
    return msgspec.json.encode({**_error(failure), "request": id})


def is_whole(frame: Obj, event: str) -> bool | None:
    return "answer" in frame if "answer" in frame or "begin" in frame else None


def block_of(frame: Obj) -> int | None:
    return next((frame[name] for name in ("open", "more", "done") if name in frame), None)
