"""Compaction for upstreams without it: the model writes a summary, the client gets it as a compaction item.

Codex asks for compaction (`compaction_trigger`) when its context is nearly full. Only OpenAI's own endpoint
answers that, so for every other upstream Dragoman asks the model for a summary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

import msgspec

from ..model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    Carried,
    CitationAdded,
    End,
    Event,
    Failed,
    FailureKind,
    Ping,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Unknown,
    UsageSeen,
)
from ..model.messages import Message, Opaque, Part, Request, Text, ToolChoice

_PROMPT = (
    "The conversation has become too long. Write a summary that replaces it. The work continues from your "
    "summary alone, so write down: what the user wants and every constraint they gave; decisions and their "
    "reasons; what was done and what came of it; exact names of files, functions, commands, ids and values "
    "that still matter; errors that are not solved; what remains to be done, in order. Write the summary "
    "only. Do not call tools and do not continue the work."
)


def summarising(request: Request, trigger: str) -> Request:
    """Build the request for a summary. `trigger` is the type of the item that asks for compaction.

    The tools stay in the request. Anthropic refuses a history with tool calls if `tools` is missing, and a
    changed tool list would invalidate the prompt cache.
    """
    messages = [message for message in request.messages if not _is_trigger(message, trigger)]
    settings = msgspec.structs.replace(
        request.settings,
        compact=False,
        format=None,
        tool_choice=ToolChoice("none") if request.tools else None,
    )
    return request.changed(
        messages=(*messages, Message("user", (Text(_PROMPT),))), settings=settings, extras=None
    )


def _is_trigger(message: Message, trigger: str) -> bool:
    return any(isinstance(part, Opaque) and part.type == trigger for part in message.parts)


class SummaryStage:
    """Collects the text of an answer. At its end, the client gets the text as one compaction part."""

    def __init__(self, compaction_part: Callable[[str, str], Part], seed: str) -> None:
        self._compaction_part = compaction_part
        self._seed = seed
        self._text_blocks: set[int] = set()
        self._pieces: list[str] = []

    def process(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            match event:
                case BlockStart(block, Text(text)):
                    self._text_blocks.add(block)
                    self._pieces.append(text)
                case TextDelta(block, text) if block in self._text_blocks:
                    self._pieces.append(text)
                case End():
                    out += self._finished(event)
                case Start() | UsageSeen() | Failed():
                    out.append(event)
                case (
                    BlockStart() | TextDelta() | ArgumentsDelta() | CitationAdded() | Sealed() | BlockEnd()
                    | Ping() | Carried() | Unknown()
                ):  # fmt: skip
                    pass  # a summary holds no reasoning and no calls
                case _:
                    assert_never(event)
        return out

    def _finished(self, end: End) -> list[Event]:
        summary = "".join(self._pieces).strip()
        if end.stop not in (Stop.END, Stop.STOP_SEQUENCE, Stop.TOOL):
            # The client replaces the whole conversation by the summary: a cut one would lose a part of it.
            return [_failed(f"the model stopped before its summary was complete ({end.stop.value})")]
        if not summary:
            return [_failed("the model wrote no summary")]
        part = self._compaction_part(summary, self._seed)
        return [BlockStart(0, part), BlockEnd(0), End(Stop.END)]


def _failed(why: str) -> Failed:
    return Failed(
        FailureKind.UPSTREAM, f"the conversation could not be compacted: {why}", code="compaction_failed"
    )
