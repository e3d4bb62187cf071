"""Items of a Responses answer for a Responses client: each has a unique id, is added once and done once."""

from itertools import count
from typing import Any

import msgspec
import pytest
from support.exchanges import exchange, run
from support.sample_streams import TOOLS

from dragoman.conform import laws

RESPONSE = {"id": "r", "object": "response", "created_at": 1, "model": "m", "status": "in_progress"}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
PART = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "in_progress"}
FOUND = {**SEARCH, "status": "completed", "action": {"type": "search", "query": "q"}}

Event = tuple[str, dict[str, Any]]


def added(index: int, item: dict[str, Any]) -> Event:
    return "response.output_item.added", {"output_index": index, "item": item}


def done(index: int, item: dict[str, Any]) -> Event:
    return "response.output_item.done", {"output_index": index, "item": item}


def progress(index: int, id: str) -> Event:
    return "response.web_search_call.searching", {"output_index": index, "item_id": id}


def message(index: int, *deltas: object, item: dict[str, Any] = MESSAGE) -> list[Event]:
    """The events of a message with these text deltas."""
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    text = "".join(delta for delta in deltas if isinstance(delta, str))
    part = {**PART, "text": text}
    return [
        added(index, item),
        ("response.content_part.added", {**place, "part": PART}),
        *[("response.output_text.delta", {**place, "delta": delta, "logprobs": []}) for delta in deltas],
        ("response.output_text.done", {**place, "text": text, "logprobs": []}),
        ("response.content_part.done", {**place, "part": part}),
        done(index, {**item, "status": "completed", "content": [part]}),
    ]


def answered(*events: Event) -> list[dict[str, Any]]:
    """The client's events for an upstream answer with `events`. Asserts that they keep the laws."""
    numbers = count()
    items = {fields["output_index"]: fields["item"] for _, fields in events if "item" in fields}
    final = {**RESPONSE, "status": "completed", "output": list(items.values())}
    whole = [
        ("response.created", {"response": {**RESPONSE, "output": []}}),
        *events,
        ("response.completed", {"response": final}),
    ]
    frames = [
        b"event: %b\ndata: %b\n\n"
        % (kind.encode(), msgspec.json.encode({"type": kind, "sequence_number": next(numbers), **fields}))
        for kind, fields in whole
    ]
    out = run(exchange("openai-responses", "openai-responses", TOOLS), frames)
    assert laws.check("openai-responses", out, stream=True) == []
    return [msgspec.json.decode(frame.partition(b"data: ")[2]) for frame in out.split(b"\n\n") if frame]


def said(events: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in events if event["type"].endswith("_text.delta"))


def ids(events: list[dict[str, Any]]) -> list[str]:
    return [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]


def test_unknown_items_never_share_an_id() -> None:
    found = ids(answered(added(0, SEARCH), done(0, FOUND), added(1, SEARCH), done(1, FOUND)))
    assert len(set(found)) == len(found) == 2
    assert found[0] == "ws_1"


def test_an_unknown_item_never_has_the_id_of_a_message() -> None:
    search = {**FOUND, "id": "msg_1"}
    found = ids(answered(*message(0, "Hi"), added(1, search), done(1, search)))
    assert len(set(found)) == len(found) == 2


@pytest.mark.parametrize("id", ["", None, 5])
def test_an_unknown_item_without_an_id_gets_one(id: object) -> None:
    assert all(ids(answered(added(0, {**SEARCH, "id": id}), done(0, {**FOUND, "id": id}))))


def test_an_unknown_item_without_a_type_keeps_its_first_type() -> None:
    bare = {"id": "ws_1", "status": "completed"}
    events = answered(added(0, SEARCH), done(0, bare))
    assert events[-1]["response"]["output"] == [{**bare, "type": "web_search_call"}]


def test_an_item_is_added_once_beside_a_delta_that_it_cannot_have() -> None:
    late = ("response.output_text.delta", {"output_index": 0, "delta": 5, "item_id": "ws_1"})
    events = answered(added(0, SEARCH), progress(0, "ws_1"), late, done(0, FOUND))
    assert ids(events) == ["ws_1"]
    assert events[-1]["response"]["output"] == [FOUND]


def test_an_item_keeps_the_id_that_it_was_added_with() -> None:
    events = answered(added(0, SEARCH), progress(0, "ws_1"), done(0, {**FOUND, "id": "ws_2"}))
    assert ids(events) == ["ws_1"]
    assert events[-1]["response"]["output"] == [FOUND]


def test_an_item_that_never_ends_is_closed() -> None:
    events = answered(added(0, SEARCH), progress(0, "ws_1"), *message(1, "Hi", 5))
    assert ids(events)[:2] == ["ws_1", "msg_1"]
    assert said(events) == "Hi"


def test_items_in_parallel_are_each_done() -> None:
    other = {**SEARCH, "id": "ws_2"}
    events = answered(
        added(0, SEARCH),
        progress(0, "ws_1"),
        added(1, other),
        progress(1, "ws_2"),
        done(1, {**FOUND, "id": "ws_2"}),
        done(0, FOUND),
        *message(2, "Hi", 5),
    )
    assert said(events) == "Hi"


def test_a_message_without_initial_text_is_added_once() -> None:
    events = answered(*message(0, "", 5, "Hi"))
    assert ids(events) == ["msg_1"]
    assert said(events) == "Hi"


def test_a_message_with_an_unknown_event_before_its_text_is_added_once() -> None:
    start, *rest = message(0, 5, "Hi")
    events = answered(start, ("response.moderated", {"verdict": "fine"}), *rest)
    assert ids(events) == ["msg_1"]


def test_a_message_without_text_stays_without_its_empty_part() -> None:
    """OpenAI refuses reasoning whose message is missing."""
    start, part, delta, *_ = message(0, "")
    place = {"output_index": 0, "item_id": "msg_1"}
    events = answered(start, part, delta, ("response.refusal.delta", {**place, "delta": 5}))
    assert ids(events) == ["msg_1"]
    assert [event for event in events if "content_part" in event["type"]] == []


def test_a_call_without_arguments_is_one_item() -> None:
    """Only the start of the next item shows that `{}` are all of its arguments."""
    call = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "list_sessions"}
    place = {"item_id": "fc_1", "output_index": 0}
    events = answered(
        added(0, {**call, "status": "in_progress", "arguments": ""}),
        ("response.function_call_arguments.delta", {**place, "delta": "{}"}),
        ("response.function_call_arguments.done", {**place, "arguments": "{}"}),
        done(0, {**call, "status": "completed", "arguments": "{}"}),
        *message(1, "Hi", 5),
    )
    assert ids(events) == ["fc_1", "msg_1"]
    assert [item["id"] for item in events[-1]["response"]["output"]] == ["fc_1", "msg_1"]


def test_reasoning_whose_end_has_no_summary_gets_one() -> None:
    thought = {"id": "rs_1", "type": "reasoning", "encrypted_content": "opaque"}
    events = answered(added(0, {**thought, "summary": []}), done(0, thought))
    assert events[-1]["response"]["output"][0]["summary"] == []
