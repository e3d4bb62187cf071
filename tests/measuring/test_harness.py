"""The bench rejects wrong answers, and its reference programs give correct ones."""

from typing import Any

import pytest

from bench.answers import ANTHROPIC, CHAT, RESPONSES, STAMP, body, stream
from bench.floors import naive, responses
from bench.load import steady, unchunked
from bench.shapes import Shape
from bench.verify import wrong

SHAPE = Shape(texts=5, fragments=4, arguments=120)
PROTOCOLS = [CHAT, ANTHROPIC]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_correct_answer_is_accepted(protocol: str) -> None:
    assert wrong(protocol, SHAPE, b"".join(stream(protocol, SHAPE)), streamed=True) == ""
    assert wrong(protocol, SHAPE, body(protocol, SHAPE), streamed=False) == ""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_that_misses_an_event_is_rejected(protocol: str) -> None:
    events = stream(protocol, SHAPE)
    matters = [number for number, event in enumerate(events) if _matters(event)]
    assert len(matters) >= SHAPE.events + 2
    for number in matters:
        cut = b"".join(events[:number] + events[number + 1 :])
        assert wrong(protocol, SHAPE, cut, streamed=True)


def _matters(event: bytes) -> bool:
    words = (b'"content":"', b'"name"', b'"arguments":"', b"_delta", b"message_", b"[DONE]", b'"tool_calls"}')
    beginnings = (b'"content":""', b"message_start")
    return any(word in event for word in words) and not any(word in event for word in beginnings)


def test_a_paced_answer_must_have_every_stamp_in_order() -> None:
    shape = Shape(texts=3, fragments=0, every_ms=10)
    events = stream(CHAT, shape)
    stamped = [
        event.replace(STAMP.encode(), b"%d:12345678901;" % (at - 1)) for at, event in enumerate(events)
    ]
    assert wrong(CHAT, shape, b"".join(stamped), streamed=True) == ""
    assert wrong(CHAT, shape, b"".join([*stamped[:2], *stamped[3:]]), streamed=True) == "2 of 3 events"


@pytest.mark.parametrize(("client", "floor"), [(ANTHROPIC, naive), (RESPONSES, responses)])
def test_floor_b_translates(client: str, floor: Any) -> None:
    translation = floor.Translation("m")
    data = b"".join(stream(CHAT, SHAPE))
    out = translation.start + b"".join(translation.feed(data[at : at + 7]) for at in range(0, len(data), 7))
    assert wrong(client, SHAPE, out, streamed=True) == ""
    assert data.count(b"\n\n") == len(stream(CHAT, SHAPE))


def test_chunks_are_joined() -> None:
    assert unchunked(b"3\r\nabc\r\n10;x=y\r\n0123456789abcdef\r\n0\r\n\r\n") == b"abc0123456789abcdef"


def test_delays_are_those_of_events_while_all_streams_are_open() -> None:
    ms = 1_000_000
    early = [(0, 1 * ms), (10 * ms, 12 * ms), (20 * ms, 23 * ms)]
    late = [(9 * ms, 10 * ms), (19 * ms, 20 * ms), (29 * ms, 30 * ms)]
    assert sorted(steady([early, late, []])) == [1.0, 2.0, 3.0]
    assert steady([[], []]) == []
