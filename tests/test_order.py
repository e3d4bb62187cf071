"""The order of events: the checker follows the table, and every decoder obeys it."""

from typing import Any

import pytest
from support.sample_streams import SAMPLES

from dragoman.model.errors import Fault, OrderError
from dragoman.model.events import (
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
    Usage,
    UsageSeen,
)
from dragoman.model.messages import (
    Citation,
    Extras,
    Media,
    Opaque,
    Raw,
    Refusal,
    Seal,
    Search,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)
from dragoman.model.order import ANSWER, BLOCK, IN_BLOCK, Order
from dragoman.protocols.registry import PROTOCOLS
from dragoman.wire.reader import FrameReader

PARTS: list[Any] = [
    Text(),
    Refusal(),
    Thinking(),
    ToolCall(id="1", name="f"),
    ToolResult(call_id="1"),
    Media(kind="image"),
    Opaque(Raw("p", {})),
    Search(id="1", query="q"),
]
FAILED = Failed(FailureKind.SERVER, "no")
EVENTS: list[Event] = [
    Start(),
    BlockStart(0, Text()),
    TextDelta(0, "a"),
    ArgumentsDelta(0, "{"),
    CitationAdded(0, Citation()),
    Sealed(0, Seal("p", "s")),
    BlockEnd(0),
    UsageSeen(Usage()),
    Ping(),
    Carried(Extras("p", {})),
    Unknown("p", "x", b"{}"),
    End(Stop.END),
    FAILED,
]
TO_STATE: dict[str, list[Event]] = {"idle": [], "open": [Start()], "over": [FAILED]}


def named(value: object) -> str:
    return type(value).__name__


def in_state(state: str) -> Order:
    order = Order("upstream")
    order.check(TO_STATE[state])
    assert order.state == state
    return order


def test_the_table_covers_every_event_and_part() -> None:
    assert {type(event) for event in EVENTS} == set(Event.__args__)
    assert {type(part) for part in PARTS} == set(BLOCK)
    assert set().union(*BLOCK.values()) == IN_BLOCK


@pytest.mark.parametrize("state", ANSWER)
@pytest.mark.parametrize("event", [e for e in EVENTS if type(e) not in IN_BLOCK], ids=named)
def test_an_event_is_legal_exactly_in_the_states_of_the_table(state: Any, event: Event) -> None:
    order = in_state(state)
    after = ANSWER[state].get(type(event))
    if after is None:
        with pytest.raises(OrderError, match=f"{named(event)} is not allowed while the answer is {state}"):
            order.check([event])
    else:
        order.check([event])
        assert order.state == after


@pytest.mark.parametrize("part", PARTS, ids=named)
@pytest.mark.parametrize("event", [e for e in EVENTS if type(e) in IN_BLOCK], ids=named)
def test_an_open_block_accepts_exactly_the_parts_of_the_table(part: Any, event: Event) -> None:
    order = in_state("open")
    order.check([BlockStart(0, part)])
    if type(event) in BLOCK[type(part)]:
        order.check([event])
        assert (0 in order.open) is (type(event) is not BlockEnd)
    else:
        with pytest.raises(OrderError, match=f"{named(event)} does not fit a {named(part)} block"):
            order.check([event])


@pytest.mark.parametrize("state", ["idle", "over"])
@pytest.mark.parametrize("event", [e for e in EVENTS if type(e) in IN_BLOCK], ids=named)
def test_block_events_are_illegal_outside_an_answer(state: str, event: Event) -> None:
    with pytest.raises(OrderError, match=f"is not allowed while the answer is {state}"):
        in_state(state).check([event])


@pytest.mark.parametrize(
    ("events", "what"),
    [
        ([TextDelta(0, "a")], "TextDelta is for block 0, which is not open"),
        ([BlockStart(0, Text()), BlockStart(0, Text())], "block 0 was opened before"),
        ([BlockStart(0, Text()), BlockEnd(0), BlockStart(0, Text())], "block 0 was opened before"),
        ([BlockStart(1, Text()), BlockStart(0, Text())], "block 0 was opened before"),
        ([BlockStart(0, Text()), BlockEnd(0), BlockEnd(0)], "BlockEnd is for block 0, which is not open"),
        (
            [BlockStart(0, Text()), BlockStart(1, Text()), End(Stop.END)],
            r"End came while blocks \[0, 1\] are open",
        ),
    ],
)
def test_blocks_open_once_and_close_before_the_end(events: list[Event], what: str) -> None:
    with pytest.raises(OrderError, match=f"illegal order: {what}"):
        in_state("open").check(events)


def test_blocks_may_be_open_in_parallel_and_fail_midway() -> None:
    order = in_state("open")
    order.check(
        [BlockStart(0, Text()), BlockStart(3, Thinking()), TextDelta(0, "a"), TextDelta(3, "b"), FAILED]
    )
    assert order.state == "over"


@pytest.mark.parametrize(("fault", "status"), [("upstream", 502), ("dragoman", 500)])
def test_the_error_has_the_fault_and_its_status(fault: Fault, status: int) -> None:
    with pytest.raises(OrderError) as caught:
        Order(fault).check([End(Stop.END)])
    assert (caught.value.fault, caught.value.status) == (fault, status)


def bodies() -> list[Any]:
    return [
        pytest.param(protocol, body, id=f"{protocol}-{kind}-{form}")
        for protocol in PROTOCOLS
        for kind, sample in SAMPLES[protocol].items()
        for form, body in (("stream", sample.stream), ("whole", sample.whole))
        if body is not None
    ]


@pytest.mark.parametrize(("protocol", "body"), bodies())
def test_every_decoder_keeps_the_order_and_ends_once(protocol: str, body: bytes) -> None:
    reader, order = FrameReader(), Order("dragoman")
    decoder = PROTOCOLS[protocol].decoder("", False)
    ends: list[Event] = []
    for frame in [*reader.feed(body), *reader.close()]:
        events = decoder.frame(frame)
        order.check(events)
        ends += [event for event in events if isinstance(event, End | Failed)]
    last = decoder.close()
    order.check(last)
    assert len(ends + last) >= 1
    assert order.state == "over"
    assert not order.open or isinstance((ends + last)[-1], Failed)
    assert decoder.close() == []
