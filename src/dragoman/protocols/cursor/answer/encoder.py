"""Encode events in Cursor's own JSON: one object per frame, or one array of the same objects.

- `{"text"}` and `{"thinking": {"text"}}` for each delta.
- `{"partial_tool_call"}` when the name of a call is known, `{"tool_call_v2"}` when the call is complete.
- At the end `{"finish_reason"}` and, if the client asked for it, `{"usage"}`, both with Chat's values.
- `[DONE]` after an answer that did not fail.

Cursor's protocol has no form for a whole answer, so a body is the array of the same objects.
"""

from __future__ import annotations

from typing import assert_never

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
    Usage,
    UsageSeen,
)
from ....model.messages import (
    Media,
    Opaque,
    Part,
    Refusal,
    Search,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ....wire.frames import escape_separators, json_string
from ...base import AnswerContext
from ...common.collect import Answer, BlockBuilder
from ...common.fields import Obj
from ...openai_chat.answer.objects import error_body, finish_reason, usage_object
from .params import tool_call, tool_number

_json = msgspec.json.Encoder().encode
_TEXT = b'data: {"text":'
_THINKING = b'data: {"thinking":{"text":'


class StreamEncoder:
    """Writes one answer as frames with one object each."""

    def __init__(self, context: AnswerContext) -> None:
        self._context = context
        self._thinking: set[int] = set()
        self._calls: dict[int, BlockBuilder] = {}
        self._called = 0
        self._usage = Usage()

    def encode(self, events: list[Event]) -> bytes:
        out: list[bytes] = []
        for event in events:
            if type(event) is TextDelta:
                self._text(event, out)
            else:
                self._other_event(event, out)
        return b"".join(out)

    def _text(self, event: TextDelta, out: list[bytes]) -> None:
        thought = event.block in self._thinking
        text = json_string(event.text)
        out += (_THINKING, text, b"}}\n\n") if thought else (_TEXT, text, b"}\n\n")

    def _other_event(self, event: Event, out: list[bytes]) -> None:
        match event:
            case TextDelta():
                self._text(event, out)
            case ArgumentsDelta() | BlockEnd():
                self._in_block(event, out)
            case BlockStart(block, part):
                self._open(block, part, out)
            case UsageSeen(usage):
                self._usage = self._usage.updated(usage)
            case End():
                out += map(_frame, ending(event, self._usage, self._context))
                out.append(b"data: [DONE]\n\n")
            case Failed():
                out += (b"data: ", error_body(event), b"\n\n")
            case Start() | CitationAdded() | Sealed() | Ping() | Carried() | Unknown():
                pass  # Cursor's protocol has no place for them
            case _:
                assert_never(event)

    def _open(self, block: int, part: Part, out: list[bytes]) -> None:
        if isinstance(part, ToolCall):
            self._calls[block] = BlockBuilder(part)
            # Cursor shows the tool's name while the arguments are still being written.
            out.append(_frame(announced(part, self._called)))
            self._called += 1
        elif isinstance(part, Thinking):
            self._thinking.add(block)

    def _in_block(self, event: ArgumentsDelta | BlockEnd, out: list[bytes]) -> None:
        call = self._calls.get(event.block)
        if call is None:
            return
        if isinstance(event, ArgumentsDelta):
            call.pieces.append(event.text)
            return
        del self._calls[event.block]
        part = call.finished()
        if event.complete and isinstance(part, ToolCall):
            out.append(_frame({"tool_call_v2": tool_call(part)}))


def _frame(value: Obj) -> bytes:
    return b"data: " + escape_separators(_json(value)) + b"\n\n"


def announced(call: ToolCall, index: int) -> Obj:
    """The object that announces a call when its name is known."""
    partial = {
        "tool": tool_number(call.name),
        "tool_call_id": call.id,
        "name": call.name,
        "tool_index": index,
    }
    return {"partial_tool_call": partial}


def ending(event: End, usage: Usage, context: AnswerContext) -> list[Obj]:
    """The last objects: the finish reason, and the usage if the client asked for it."""
    end: list[Obj] = [{"finish_reason": finish_reason(event.stop, refused=False)}]
    if context.include_usage and usage.known:
        end.append({"usage": usage_object(usage)})
    return end


def render(answer: Answer, context: AnswerContext) -> bytes:
    """Write the whole answer: the objects of a stream, each text in one piece."""
    assert answer.end is not None
    objects: list[Obj] = []
    called = 0
    for part in answer.parts:
        match part:
            case Text(text) | Refusal(text) if text:
                objects.append({"text": text})
            case Thinking(text) if text:
                objects.append({"thinking": {"text": text}})
            case ToolCall():
                objects += (announced(part, called), {"tool_call_v2": tool_call(part)})
                called += 1
            case Text() | Refusal() | Thinking() | Media() | ToolResult() | Opaque() | Search():
                pass  # an empty text, or a part that Cursor's protocol does not have
            case _:
                assert_never(part)
    return escape_separators(_json(objects + ending(answer.end, answer.usage, context)))
