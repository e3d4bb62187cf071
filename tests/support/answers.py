"""Hypothesis strategies for answers, and their well-formed streams in each protocol.

The generated answers suit every protocol and need no mending: calls fit the schema of `store`, no two are
equal, and the text holds no markup.
"""

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from dragoman.conform.shape import Json
from dragoman.model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    End,
    Event,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from dragoman.model.messages import Refusal, Seal, Text, Thinking, ToolCall
from dragoman.protocols.base import AnswerContext
from dragoman.protocols.common.collect import collect
from dragoman.protocols.registry import PROTOCOLS

from .scenarios import TOOLS
from .wires import CHAT

MINTED = AnswerContext(id="u1", created=1_700_000_000, model="made-up")
TOOL = "store"
SEAL = "c2VhbGVk"

_LETTERS = "abc XYZ.,'\"\\\n\té\u2028\u2029\u0085東😀"


@dataclass(frozen=True, slots=True)
class GeneratedBlock:
    """One block: its kind and its fragments."""

    kind: str
    pieces: tuple[str, ...]
    seal: str | None = None
    cut: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class GeneratedAnswer:
    """A whole answer."""

    blocks: tuple[GeneratedBlock, ...]
    usage: Usage
    stop: Stop

    def joined(self, *kinds: str) -> str:
        return "".join(block.text for block in self.blocks if block.kind in kinds)

    def calls(self) -> list[str]:
        return [block.text for block in self.blocks if block.kind == "call"]


def texts() -> st.SearchStrategy[str]:
    return st.text(st.sampled_from(_LETTERS), min_size=1, max_size=12)


@st.composite
def pieces(draw: st.DrawFn, text: str) -> tuple[str, ...]:
    """`text`, cut anywhere."""
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=4)))
    found = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return tuple(piece for piece in found if piece)


@st.composite
def arguments(draw: st.DrawFn, number: int) -> str:
    """Arguments of `store`, spelled in one of the ways JSON allows."""
    value: Json = {"key": draw(st.sampled_from([0, -7, 10**22])) + number}
    if draw(st.booleans()):
        value["note"] = draw(texts())
    if draw(st.booleans()):
        value["nested"] = draw(
            st.dictionaries(texts(), st.none() | st.integers() | texts() | st.floats(-9, 9))
        )
    separators = draw(st.sampled_from([(",", ":"), (", ", ": ")]))
    return json.dumps(value, ensure_ascii=draw(st.booleans()), separators=separators)


@st.composite
def _block(draw: st.DrawFn, number: int, kinds: list[str]) -> GeneratedBlock:
    kind = draw(st.sampled_from(kinds))
    if kind == "call":
        return GeneratedBlock(kind, draw(arguments(number).flatmap(pieces)))
    seal = draw(st.sampled_from([None, f"{SEAL}{number:04}"])) if kind == "thinking" else None
    return GeneratedBlock(kind, draw(texts().flatmap(pieces)), seal)


@st.composite
def spoken(
    draw: st.DrawFn, kinds: str = "text thinking call", stops: tuple[Stop, ...] = ()
) -> GeneratedAnswer:
    """A complete answer with one of `stops` as its stop reason."""
    count = draw(st.integers(1, 4))
    blocks = tuple(draw(_block(number, kinds.split())) for number in range(count))
    # Wires without blocks merge adjacent blocks of one kind.
    blocks = tuple(
        b for n, b in enumerate(blocks) if b.kind == "call" or not n or blocks[n - 1].kind != b.kind
    )
    calls = any(block.kind == "call" for block in blocks)
    stop = draw(st.sampled_from(stops)) if stops else Stop.TOOL if calls else Stop.END
    return GeneratedAnswer(blocks, draw(_usage()), stop)


def _usage() -> st.SearchStrategy[Usage]:
    counts = st.integers(0, 5000)
    return st.builds(
        Usage, input=counts, cache_read=counts, output=st.integers(50, 5000), reasoning=st.integers(0, 50)
    )


def events(answer: GeneratedAnswer, protocol: str) -> list[Event]:
    out: list[Event] = [Start("", "made-up", MINTED.created)]
    for number, block in enumerate(answer.blocks):
        out += _events_of(number, block, protocol)
    return [*out, UsageSeen(answer.usage), End(answer.stop)]


def _events_of(number: int, block: GeneratedBlock, protocol: str) -> list[Event]:
    delta: Any = TextDelta
    end: list[Event] = [BlockEnd(number, complete=not block.cut)]
    match block.kind:
        case "call":
            part: Any = ToolCall(id=f"call_{number}", name=TOOL)
            delta = ArgumentsDelta
        case "thinking":
            part = Thinking()
            if block.seal is not None:
                end.insert(0, Sealed(number, own_seal(block.seal, protocol)))
        case "refusal":
            part = Refusal()
        case _:
            part = Text()
    return [BlockStart(number, part), *(delta(number, piece) for piece in block.pieces), *end]


def own_seal(data: str, protocol: str) -> Seal:
    """A seal in the protocol's own format."""
    if protocol == CHAT:
        data = json.dumps([{"type": "reasoning.encrypted", "data": data}])
    return Seal(protocol, data)


def stream(answer: GeneratedAnswer, protocol: str) -> bytes:
    """The answer as the stream of an upstream of `protocol`."""
    return PROTOCOLS[protocol].stream_encoder(MINTED).encode(events(answer, protocol))


def whole(answer: GeneratedAnswer, protocol: str) -> bytes:
    """The answer as one body."""
    return PROTOCOLS[protocol].render(collect(events(answer, protocol)), MINTED)


__all__ = [
    "MINTED",
    "SEAL",
    "TOOL",
    "TOOLS",
    "GeneratedAnswer",
    "GeneratedBlock",
    "events",
    "own_seal",
    "spoken",
    "stream",
    "whole",
]
