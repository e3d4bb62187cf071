"""From what the model wants to say to what its server sends, in the words of each protocol."""

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
"""Characters per delta, about as many as a token or three."""


class Scene(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and all that its answer may depend on."""

    protocol: str
    request: Request
    body: bytes = b""
    seed: str = "0"
    """Letters and digits that every id of the answer is made of."""
    created: int = 0
    attempt: int = 1
    """How often this very request came, this time included."""

    @property
    def stream(self) -> bool:
        return self.request.stream

    @property
    def wire(self) -> WireProtocol:
        return protocol(self.protocol)

    @property
    def context(self) -> AnswerContext:
        usage = self.request.include_usage or not self.stream
        return AnswerContext(
            id=self.seed, created=self.created, model=self.request.model, include_usage=usage
        )

    def with_ids(self, parts: Sequence[Part]) -> list[Part]:
        """Every call with an id such as this protocol's servers give."""
        prefix = self.wire.server.call_ids
        return [
            msgspec.structs.replace(part, id=f"{prefix}{self.seed}{number:02}")
            if isinstance(part, ToolCall)
            else part
            for number, part in enumerate(parts)
        ]


def say(scene: Scene, parts: Sequence[Part], *, stop: Stop | None = None, piece: int = PIECE) -> Reply:
    """The answer that consists of `parts`, streamed or whole as it was asked for."""
    parts, end = fitted(parts, scene.request.settings, stop)
    return send(scene, [*opening(scene), *blocks(parts, piece), *ending(parts, end)])


def send(scene: Scene, events: Iterable[Event | Wait]) -> Reply:
    """Events as the protocol's own server would send them."""
    if scene.stream:
        return Reply(steps=tuple(frames(scene, events)), content_type=replies.STREAM)
    answer = collect(event for event in events if not isinstance(event, Wait))
    if answer.failed is not None:
        return fail(scene, answer.failed)
    return replies.body(scene.wire.render(answer, scene.context))


def fail(scene: Scene, failure: Failed, **headers: str) -> Reply:
    """An HTTP error in the protocol's own words."""
    data = scene.wire.error_body(failure, f"req_{scene.seed}")
    return replies.body(data, status=failure.status, **headers)


def frames(scene: Scene, events: Iterable[Event | Wait]) -> Iterator[Step]:
    """One step for every event that has something to say."""
    for event, data in encoded(scene, events):
        if isinstance(event, Wait):
            yield event
        elif data:
            yield data


def encoded(scene: Scene, events: Iterable[Event | Wait]) -> Iterator[tuple[Event | Wait, bytes]]:
    """Every event with its bytes, of which there may be none."""
    encoder = scene.wire.stream_encoder(scene.context)
    start: list[Event] = []
    for event in events:
        if isinstance(event, Wait):
            yield event, b""
        elif isinstance(event, Start):
            # It goes together with the first counts, since Anthropic says both in one event.
            start = [event]
        else:
            yield event, encoder.encode([*start, event])
            start = []


def opening(scene: Scene) -> list[Event]:
    start = Start(model=scene.request.model, created=scene.created)
    return [start, UsageSeen(Usage(input=prompt_tokens(scene.request), output=1)), Ping()]


def blocks(parts: Sequence[Part], piece: int = PIECE, first: int = 0) -> Iterator[Event]:
    for number, part in enumerate(parts, first):
        yield from block(number, part, piece)


def block(number: int, part: Part, piece: int = PIECE, *, complete: bool = True) -> Iterator[Event]:
    """A part growing piece by piece."""
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
    """The parts as far as the client's bounds let them come, and why they end there."""
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
    """About as many tokens as the parts have: one for every four characters."""
    return sum(1 + _length(part) // 4 for part in parts)


def prompt_tokens(request: Request) -> int:
    said = sum(3 + tokens(message.parts) for message in request.messages)
    offered = sum(8 + (len(t.description or "") + len(str(t.schema or ""))) // 4 for t in request.tools)
    return 3 + said + offered


def _length(part: Part) -> int:
    match part:
        case Text(text) | Refusal(text) | Thinking(text):
            return len(text)
        case ToolCall():
            return len(part.name) + len(part.arguments)
        case ToolResult():
            return sum(map(_length, part.parts))
        case Media():
            return 4 * 258  # what Gemini counts for a picture
        case Opaque():
            return len(str(part.raw.parsed))


def _bits(text: str, piece: int) -> Iterator[str]:
    return (text[start : start + piece] for start in range(0, len(text), piece))
