"""Laws 43 and 44: memory does not grow with an answer, and text is sent as it arrives."""

import gc
import tracemalloc
from typing import Any

import pytest
from support.answers import MINTED, TOOLS
from support.exchanges import exchange, run
from support.wires import CURSOR, GEMINI, RESPONSES

from dragoman.conform import neutral
from dragoman.model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    End,
    FailureKind,
    Start,
    Stop,
    TextDelta,
)
from dragoman.model.messages import Text, Thinking, ToolCall
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

ALL = list(PROTOCOLS)
PAIRS = [pytest.param(a, b, id=f"{a}-to-{b}") for a in ALL for b in CLIENTS]


def without(*protocols: str) -> list[Any]:
    return [pair for pair in PAIRS if not set(protocols) & set(pair.values)]


WORD = "word "


class Upstream:
    """An upstream that sends one event at a time."""

    def __init__(self, protocol: str) -> None:
        self._encoder = PROTOCOLS[protocol].stream_encoder(MINTED)

    def says(self, *events: Any) -> bytes:
        return self._encoder.encode(list(events))


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("part", [Text(), Thinking()], ids=["text", "thinking"])
def test_44_text_is_sent_as_it_arrives(upstream: str, client: str, part: Any) -> None:
    it, says = exchange(upstream, client, TOOLS), Upstream(upstream).says
    said = it.feed(says(Start(model="m"), BlockStart(0, part)))
    for _ in range(20):
        said += it.feed(says(TextDelta(0, WORD)))
        assert said.count(WORD.encode()) == _ + 1
    assert not it.over


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_44_only_a_possible_start_of_a_mark_is_held(upstream: str, client: str) -> None:
    it, says = exchange(upstream, client, TOOLS), Upstream(upstream).says
    said = it.feed(says(Start(model="m"), BlockStart(0, Text()), TextDelta(0, "so ")))
    said += it.feed(says(TextDelta(0, "far <")))
    assert b"so " in said
    assert b"far " in said
    said += it.feed(says(TextDelta(0, " b is true")))
    assert b"b is true" in said


# Gemini and Cursor send a call in one piece.
@pytest.mark.parametrize(("upstream", "client"), without(GEMINI, CURSOR))
def test_44_arguments_are_sent_as_they_arrive(upstream: str, client: str) -> None:
    it, says = exchange(upstream, client, TOOLS), Upstream(upstream).says
    said = it.feed(says(Start(model="m"), BlockStart(0, ToolCall(id="c1", name="store"))))
    said += it.feed(says(ArgumentsDelta(0, '{"key": 1, "note": "')))
    for count in range(1, 20):
        said += it.feed(says(ArgumentsDelta(0, WORD)))
        assert said.count(WORD.encode()) == count


@pytest.mark.parametrize("upstream", ALL)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("start", [b"data: {", b'{"a": "', b'[{"a": "', b": comment", b'data: {"a":\n'])
def test_43_an_endless_frame_is_refused_at_the_bound(upstream: str, client: str, start: bytes) -> None:
    it = exchange(upstream, client, max_frame=10_000)
    got, fed = it.feed(start), 0
    while not it.over and fed < 100_000:
        got += it.feed(b"data: x\n" * 100 if b"\n" in start else b"x" * 800)
        fed += 800
    assert fed <= 11_000
    assert it.failure is not None
    assert it.failure.kind is FailureKind.UPSTREAM
    assert "10000 bytes" in it.failure.message
    assert neutral.reduce(client, got, stream=True)["stop"] == "error"


def grown(upstream: str, client: str, part: Any, delta: Any, count: int) -> int:
    """How many bytes the exchange keeps after `count` deltas.

    Memory is measured for the whole process, so other allocations disturb it. The smallest of several
    measurements counts.
    """
    return min(_grown(upstream, client, part, delta, count) for _ in range(3))


def _grown(upstream: str, client: str, part: Any, delta: Any, count: int) -> int:
    it, says = exchange(upstream, client, TOOLS), Upstream(upstream).says
    it.feed(says(Start(model="m"), BlockStart(0, part)))
    one = says(delta)
    for _ in range(20):
        it.feed(one)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for _ in range(count):
        it.feed(one)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert not it.over
    return after - before


# The last event of Responses repeats the whole answer, so the exchange keeps it.
@pytest.mark.parametrize(("upstream", "client"), without(RESPONSES))
def test_43_text_is_not_kept(upstream: str, client: str) -> None:
    kept = grown(upstream, client, Text(), TextDelta(0, WORD * 20), 1500)
    assert kept < 1500 * len(WORD * 20) / 10


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("upstream", [RESPONSES])
def test_43_responses_keeps_at_most_a_few_copies_of_the_text(upstream: str, client: str) -> None:
    size = len(WORD * 20)
    assert grown(upstream, client, Text(), TextDelta(0, WORD * 20), 2000) < 2000 * size * 6


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_a_long_answer_arrives_whole(upstream: str, client: str) -> None:
    it, says = exchange(upstream, client, TOOLS), Upstream(upstream).says
    deltas = [TextDelta(0, f"{number} ") for number in range(3000)]
    body = says(Start(model="m"), BlockStart(0, Text()), *deltas, BlockEnd(0), End(Stop.END))
    said = neutral.reduce(client, run(it, [body[:5000], body[5000:]]), stream=True)
    assert said["text"] == "".join(f"{number} " for number in range(3000))
