"""Encode the model's answer as the bytes that a server of the protocol sends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ...model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    End,
    Event,
    Failed,
    Ping,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from ...model.messages import (
    Media,
    Opaque,
    Part,
    Refusal,
    Request,
    Search,
    Settings,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from ...protocols.base import AnswerContext, WireProtocol
from ...protocols.common.collect import collect
from ...protocols.registry import protocol
from . import replies
from .replies import Reply, Step, Wait

PIECE = 12
"""Characters per delta: about three tokens."""


class ReplyContext(msgspec.Struct, frozen=True, kw_only=True):
    """One request and everything else that its reply depends on."""

    protocol: str
    request: Request
    body: bytes = b""
    seed: str = "0"
    """Every id of the answer is made of this text."""
    created: int = 0
    attempt: int = 1
    """How often the same request came, including this time."""
    turn: tuple[Part, ...] | None = None
    """What the model says in this turn. None: the scripted agent decides."""

    @property
    def stream(self) -> bool:
        return self.request.stream

    @property
    def wire(self) -> WireProtocol:
        return protocol(self.protocol)

    @property
    def answer_context(self) -> AnswerContext:
        usage = self.request.include_usage or not self.stream
        return AnswerContext(
            id=self.seed, created=self.created, model=self.request.model, include_usage=usage
        )

    def with_ids(self, parts: Sequence[Part]) -> list[Part]:
        """The parts, each call with an id like those of the protocol's servers."""
        prefix = self.wire.server.call_ids
        return [
            msgspec.structs.replace(part, id=f"{prefix}{self.seed}{number:02}")
            if isinstance(part, ToolCall)
            else part
            for number, part in enumerate(parts)
        ]


def encode_reply(
    context: ReplyContext, parts: Sequence[Part], *, stop: Stop | None = None, piece: int = PIECE
) -> Reply:
    """A reply with these parts, as a stream or as one body, as the client requested."""
    parts, end = fitted(parts, context.request.settings, stop)
    return send(context, [*opening(context), *blocks(parts, piece), *ending(parts, end)])


def send(context: ReplyContext, events: Iterable[Event | Wait]) -> Reply:
    """A reply with these events, encoded like the protocol's own servers do."""
    if context.stream:
        return Reply(steps=tuple(frames(context, events)), content_type=replies.STREAM)
    answer = collect(event for event in events if not isinstance(event, Wait))
    if answer.failed is not None:
        return fail(context, answer.failed)
    return replies.body(context.wire.render(answer, context.answer_context))


def fail(context: ReplyContext, failure: Failed, **headers: str) -> Reply:
    """An HTTP error in the protocol's form."""
    data = context.wire.error_body(failure, f"req_{context.seed}")
    return replies.body(data, status=failure.status, **headers)


def frames(context: ReplyContext, events: Iterable[Event | Wait]) -> Iterator[Step]:
    """One step for every event that has bytes on this wire."""
    for event, data in encoded(context, events):
        if isinstance(event, Wait):
            yield event
        elif data:
            yield data


def encoded(context: ReplyContext, events: Iterable[Event | Wait]) -> Iterator[tuple[Event | Wait, bytes]]:
    """Every event with its bytes. Some events have none on this wire."""
    encoder = context.wire.stream_encoder(context.answer_context)
    start: list[Event] = []
    for event in events:
        if isinstance(event, Wait):
            yield event, b""
        elif isinstance(event, Start):
            # Encode it together with the first usage: Anthropic sends both in message_start.
            start = [event]
        else:
            yield event, encoder.encode([*start, event])
            start = []


def opening(context: ReplyContext) -> list[Event]:
    start = Start(model=context.request.model, created=context.created)
    return [start, UsageSeen(Usage(input=prompt_tokens(context.request), output=1)), Ping()]


def blocks(parts: Sequence[Part], piece: int = PIECE, first: int = 0) -> Iterator[Event]:
    for number, part in enumerate(parts, first):
        yield from block(number, part, piece)


def block(number: int, part: Part, piece: int = PIECE, *, complete: bool = True) -> Iterator[Event]:
    """The events of one part, with deltas of `piece` characters."""
    match part:
        case ToolCall(arguments=text):
            yield BlockStart(number, msgspec.structs.replace(part, arguments=""))
            yield from (ArgumentsDelta(number, bit) for bit in _bits(text, piece))
        case Text(text) | Refusal(text):
            yield BlockStart(number, type(part)())
            yield from (TextDelta(number, bit) for bit in _bits(text, piece))
        case Thinking(text, seal):
            yield BlockStart(number, Thinking(seal=seal))
            yield from (TextDelta(number, bit) for bit in _bits(text, piece))
        case _:
            yield BlockStart(number, part)
    yield BlockEnd(number, complete)


def ending(parts: Sequence[Part], end: End) -> list[Event]:
    thought = [part for part in parts if isinstance(part, Thinking)]
    counts = Usage(output=max(1, tokens(parts)), reasoning=tokens(thought) if thought else None)
    return [UsageSeen(counts), end]


def fitted(parts: Sequence[Part], settings: Settings, stop: Stop | None = None) -> tuple[list[Part], End]:
    """The parts, cut at the client's stop sequences and max_tokens, and the stop reason."""
    kept: list[Part] = []
    for part in parts:
        if isinstance(part, Text):
            text, end = _bounded(part.text, settings)
            kept.append(Text(text))
            if end is not None:
                return kept, end
        else:
            kept.append(part)
    called = any(isinstance(part, ToolCall) for part in kept)
    return kept, End(stop or (Stop.TOOL if called else Stop.END))


def _bounded(text: str, settings: Settings) -> tuple[str, End | None]:
    found = [(text.find(word), word) for word in settings.stop if word and word in text]
    if found:
        place, word = min(found)
        return text[:place], End(Stop.STOP_SEQUENCE, word)
    most = settings.max_tokens
    if most is not None and len(text) > 4 * most:
        return text[: 4 * most], End(Stop.MAX_TOKENS)
    return text, None


def tokens(parts: Iterable[Part]) -> int:
    """An estimate: one token for every four characters."""
    return sum(1 + _length(part) // 4 for part in parts)


def prompt_tokens(request: Request) -> int:
    messages = sum(3 + tokens(message.parts) for message in request.messages)
    offered = sum(8 + (len(t.description or "") + len(str(t.schema or ""))) // 4 for t in request.tools)
    return 3 + messages + offered


def _length(part: Part) -> int:
    match part:
        case Text(text) | Refusal(text) | Thinking(text):
            return len(text)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case ToolResult():
            return sum(map(_length, part.parts))
        case Media():
            return 4 * 258  # Gemini counts 258 tokens for an image
        case Opaque():
            return len(str(part.raw.parsed))
        case Search():
            return len(part.query)


def _bits(text: str, piece: int) -> Iterator[str]:
    return (text[start : start + piece] for start in range(0, len(text), piece))
