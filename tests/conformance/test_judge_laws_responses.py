"""Each law of OpenAI Responses, and a stream or body that breaks it."""

import json
from typing import Any

import pytest
from support.edited_streams import Events, Spoil, first, place, spoiled
from support.sample_streams import SAMPLES
from support.unbroken_laws import unbroken
from support.wires import RESPONSES

from dragoman.conform import laws

ADDED = "response.output_item.added"
DONE = "response.output_item.done"
ARGUMENTS = "response.function_call_arguments"
TEXT = "response.output_text"
PART = "response.content_part"


def added(events: Events) -> Any:
    return first(events, ADDED)["item"]


def done(events: Events) -> Any:
    return first(events, DONE)["item"]


def last(events: Events) -> Any:
    return events[-1]["response"]


def drop(events: Events, kind: str) -> None:
    del events[place(events, kind)]


def again(events: Events, kind: str) -> None:
    where = place(events, kind)
    events.insert(where, events[where])


def swap(events: Events, kind: str, by: int = 1) -> None:
    where = place(events, kind)
    events[where], events[where + by] = events[where + by], events[where]


def both(events: Events, **change: Any) -> None:
    """Change an item in its done event and in the final output."""
    for item in (done(events), last(events)["output"][0]):
        item.update(change)


def same_item_id(events: Events) -> None:
    for event in events:
        if "item_id" in event:
            event["item_id"] = "fc_1"
        if "item" in event:
            event["item"]["id"] = "fc_1"


def same_call_id(events: Events) -> None:
    for event in events:
        if "item" in event:
            event["item"]["call_id"] = "call_1"
    for item in last(events)["output"]:
        item["call_id"] = "call_1"


def empty_part(events: Events) -> None:
    events[:] = [e for e in events if e["type"] != f"{TEXT}.delta"]
    first(events, f"{TEXT}.done")["text"] = ""
    first(events, f"{PART}.done")["part"]["text"] = ""
    for item in (done(events), last(events)["output"][0]):
        item["content"][0]["text"] = ""


def broken_arguments(events: Events) -> None:
    drop(events, f"{ARGUMENTS}.delta")
    raw = "".join(e["delta"] for e in events if e["type"] == f"{ARGUMENTS}.delta")
    first(events, f"{ARGUMENTS}.done")["arguments"] = raw
    both(events, arguments=raw)


STREAMS: dict[str, tuple[str, Spoil, str]] = {
    "no created": ("text", lambda e: e.pop(0), "before response.created"),
    "created twice": ("text", lambda e: e.insert(0, e[0]), "comes twice"),
    "wrong status": ("text", lambda e: e[0]["response"].update(status="completed"), "status"),
    "early output": ("text", lambda e: e[0]["response"].update(output=[{}]), "output already"),
    "late in_progress": ("text", lambda e: e.insert(4, e.pop(1)), "output already"),
    "id changes": ("text", lambda e: last(e).update(id="resp_2"), "response id changed"),
    "no id": ("text", lambda e: [x["response"].update(id="") for x in e if "response" in x], "no"),
    "wrong object": ("text", lambda e: last(e).update(object="x"), "object is not response"),
    "no model": ("text", lambda e: last(e).update(model=""), "no model"),
    "no created_at": ("text", lambda e: last(e).update(created_at=None), "not a time"),
    "output is null": ("text", lambda e: last(e).update(output=None), "output is not a list"),
    "index gap": (
        "text",
        lambda e: [x.update(output_index=1) for x in e if "output_index" in x],
        "out of turn",
    ),
    "item id empty": ("text", lambda e: added(e).update(id=""), "without an id"),
    "item ids alike": ("parallel", same_item_id, "is used twice"),
    "call ids alike": ("parallel", same_call_id, "the same call_id"),
    "never added": ("text", lambda e: drop(e, ADDED), "was never added"),
    "added twice": ("text", lambda e: again(e, ADDED), "out of turn"),
    "done twice": ("text", lambda e: again(e, DONE), "done already"),
    "never done": ("text", lambda e: drop(e, DONE), "is still open"),
    "content at the start": ("text", lambda e: added(e).update(content=[{}]), "not empty yet"),
    "no arguments at the start": ("tool", lambda e: added(e).pop("arguments"), "not empty yet"),
    "early arguments": ("tool", lambda e: added(e).update(arguments="{"), "not empty yet"),
    "no call_id": ("tool", lambda e: added(e).update(call_id=""), "without a call_id"),
    "no name": ("tool", lambda e: added(e).update(name=""), "without a name"),
    "another item_id": ("tool", lambda e: e[4].update(item_id="x"), "item_id is not"),
    "item id changes": ("tool", lambda e: both(e, id="fc_x"), "id changed"),
    "call_id changes": ("tool", lambda e: both(e, call_id="call_x"), "call_id changed"),
    "name changes": ("tool", lambda e: both(e, name="x"), "name changed"),
    "delta lost": ("tool", lambda e: drop(e, f"{ARGUMENTS}.delta"), "deltas are not the"),
    "done differs": (
        "tool",
        lambda e: first(e, f"{ARGUMENTS}.done").update(arguments="{}"),
        "the deltas are not the arguments",
    ),
    "item differs": ("tool", lambda e: both(e, arguments="{}"), "not the done arguments"),
    "no arguments.done": ("tool", lambda e: drop(e, f"{ARGUMENTS}.done"), "no done event"),
    "delta after done": ("tool", lambda e: swap(e, f"{ARGUMENTS}.done", -1), "done already"),
    "arguments in a message": (
        "text",
        lambda e: first(e, f"{TEXT}.delta").update(type=f"{ARGUMENTS}.delta"),
        "does not belong to a message",
    ),
    "broken arguments": ("tool", broken_arguments, "without a JSON object"),
    "cut call in a completed answer": (
        "tool",
        lambda e: both(e, status="incomplete"),
        "in a completed response",
    ),
    "no part": ("text", lambda e: drop(e, f"{PART}.added"), "no part 0 of type output_text"),
    "part index": (
        "text",
        lambda e: [x.update(content_index=1) for x in e if "content_index" in x],
        "content_index out of turn",
    ),
    "part twice": ("text", lambda e: again(e, f"{PART}.added"), "a part is still open"),
    "part never done": ("text", lambda e: drop(e, f"{PART}.done"), "a part is still open"),
    "part done twice": ("text", lambda e: again(e, f"{PART}.done"), "part is done already"),
    "part done unopened": (
        "text",
        lambda e: first(e, f"{PART}.done").update(content_index=1),
        "was never added",
    ),
    "early text": (
        "text",
        lambda e: first(e, f"{PART}.added")["part"].update(text="x"),
        "part is not empty yet",
    ),
    "wrong kind of delta": (
        "text",
        lambda e: first(e, f"{TEXT}.delta").update(type="response.refusal.delta"),
        "of type refusal",
    ),
    "text delta lost": ("text", lambda e: drop(e, f"{TEXT}.delta"), "not the done text"),
    "no text.done": ("text", lambda e: drop(e, f"{TEXT}.done"), "text of the part is not done"),
    "text.done twice": ("text", lambda e: again(e, f"{TEXT}.done"), "text is done already"),
    "text after text.done": ("text", lambda e: swap(e, f"{TEXT}.done", -1), "done already"),
    "part differs": (
        "text",
        lambda e: first(e, f"{PART}.done")["part"].update(text="x"),
        "part is not its deltas",
    ),
    "part type changes": (
        "text",
        lambda e: first(e, f"{PART}.done")["part"].update(type="refusal"),
        "changed its type",
    ),
    "message differs": (
        "text",
        lambda e: done(e)["content"][0].update(text="x"),
        "not what was streamed",
    ),
    "empty part": ("text", empty_part, "an empty part"),
    "summary differs": ("thinking_tool", lambda e: done(e).update(summary=[]), "what was streamed"),
    "output lost": ("text", lambda e: last(e).update(output=[]), "list of the done items"),
    "output differs": (
        "tool",
        lambda e: last(e)["output"][0].update(arguments="{}"),
        "list of the done items",
    ),
    "output reordered": ("parallel", lambda e: last(e)["output"].reverse(), "the done items"),
    "no terminal event": ("text", lambda e: e.pop(), "no terminal event"),
    "two terminal events": ("text", lambda e: e.append(e[-1]), "comes after response.completed"),
    "failed after an error": (
        "error_tool",
        lambda e: e.append({"type": "response.failed", "response": {}}),
        "comes after error",
    ),
    "incomplete without a reason": (
        "max_tokens",
        lambda e: last(e).update(incomplete_details=None),
        "malformed",
    ),
    "failed without an error": ("error", lambda e: last(e).update(error=None), "malformed"),
    "error without a message": ("error_tool", lambda e: e[-1].update(message=""), "no message"),
    "a flat error alone": (
        "error_tool",
        lambda e: e.__delitem__(slice(-1)),
        "before response.created and is not nested",
    ),
    "usage total": ("text", lambda e: last(e)["usage"].update(total_tokens=1), "not the sum"),
    "usage details": (
        "text",
        lambda e: last(e)["usage"].update(input_tokens_details=None),
        "no input_tokens_details",
    ),
    "[DONE]": ("text", lambda e: e.append("[DONE]"), "[DONE]"),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_broken_stream_is_noticed(name: str) -> None:
    kind, spoil, complaint = STREAMS[name]
    stream = spoiled(RESPONSES, SAMPLES[RESPONSES][kind].stream, spoil)
    found = laws.check(RESPONSES, stream, stream=True)
    assert any(complaint in str(broken) for broken in found), found


def test_the_numbers_run_from_zero_without_a_gap() -> None:
    stream = SAMPLES[RESPONSES]["text"].stream
    spoilt = stream.replace(b'"sequence_number":3', b'"sequence_number":4')
    assert [*map(str, laws.check(RESPONSES, spoilt, stream=True))] == [
        "event 3 (response.content_part.added): its number is not 3"
    ]


def test_an_event_is_named_by_its_type() -> None:
    stream = SAMPLES[RESPONSES]["text"].stream.replace(b"event: response.created\n", b"")
    found = laws.check(RESPONSES, stream, stream=True)
    assert [*map(str, found)] == ["event 0 (None): its type is response.created"]


FINE: dict[str, tuple[str, Spoil]] = {
    "an unknown event": ("text", lambda e: e.insert(2, {"type": "response.news"})),
    "no in_progress": ("text", lambda e: e.pop(1)),
    "no usage": ("text", lambda e: last(e).update(usage=None)),
    "a nested error": ("error_tool", lambda e: e[-1].update(error={"message": "x"})),
    "a nested error alone": (
        "error_tool",
        lambda e: e.__setitem__(slice(None), [{"type": "error", "error": {"message": "x"}}]),
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_an_allowed_variant_breaks_no_law(name: str) -> None:
    kind, spoil = FINE[name]
    stream = spoiled(RESPONSES, SAMPLES[RESPONSES][kind].stream, spoil)
    assert laws.check(RESPONSES, stream, stream=True) == []


def reasoning_text(*, full: str) -> Spoil:
    """Open models stream the text of their reasoning, without a part around it."""
    item = {"id": "rs_1", "type": "reasoning", "summary": [], "content": []}
    finished = {**item, "content": [{"type": "reasoning_text", "text": full}]}
    where = {"item_id": "rs_1", "output_index": 0, "content_index": 0}
    name = "response.reasoning_text"

    def spoil(events: Events) -> None:
        events[2:-1] = [
            {"type": ADDED, "output_index": 0, "item": item},
            {"type": f"{name}.delta", "delta": "hm", **where},
            {"type": f"{name}.done", "text": "hm", **where},
            {"type": DONE, "output_index": 0, "item": finished},
        ]
        last(events)["output"] = [finished]

    return spoil


@pytest.mark.parametrize(("full", "fine"), [("hm", True), ("hum", False)])
def test_reasoning_text_needs_no_part(full: str, fine: bool) -> None:
    text = SAMPLES[RESPONSES]["text"].stream
    stream = spoiled(RESPONSES, text, reasoning_text(full=full))
    assert (laws.check(RESPONSES, stream, stream=True) == []) is fine


def shell_call(events: Events) -> None:
    """OpenAI's events about a shell call have an output index, but no item id."""
    item = {"id": "sh_1", "type": "shell_call", "call_id": "c1", "status": "completed", "action": {}}
    where = {"output_index": 0, "command_index": 0}
    events[2:-1] = [
        {"type": ADDED, "output_index": 0, "item": item},
        {"type": "response.shell_call_command.added", "command": "", **where},
        {"type": "response.shell_call_command.delta", "delta": "ls", **where},
        {"type": "response.shell_call_command.done", "command": "ls", **where},
        {"type": DONE, "output_index": 0, "item": item},
    ]
    last(events)["output"] = [item]


def test_events_of_other_items_need_no_item_id() -> None:
    stream = spoiled(RESPONSES, SAMPLES[RESPONSES]["text"].stream, shell_call)
    assert laws.check(RESPONSES, stream, stream=True) == []


BODIES: dict[str, tuple[str, Spoil, str]] = {
    "in progress": ("text", lambda r: r.update(status="in_progress"), "not finished"),
    "wrong object": ("text", lambda r: r.update(object="x"), "object is not response"),
    "output is null": ("text", lambda r: r.update(output=None), "output is not a list"),
    "no call_id": ("tool", lambda r: r["output"][0].update(call_id=""), "without a call_id"),
    "no name": ("tool", lambda r: r["output"][0].update(name=""), "without a name"),
    "no arguments": ("tool", lambda r: r["output"][0].update(arguments=""), "a JSON object"),
    "no reason": ("max_tokens", lambda r: r["incomplete_details"].clear(), "malformed"),
    "usage total": ("text", lambda r: r["usage"].update(total_tokens=1), "not the sum"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_broken_body_is_noticed(name: str) -> None:
    kind, spoil, complaint = BODIES[name]
    response = json.loads(SAMPLES[RESPONSES][kind].whole or b"")
    spoil(response)
    found = laws.check(RESPONSES, json.dumps(response).encode(), stream=False)
    assert any(complaint in str(broken) for broken in found), found


def test_every_law_is_broken_by_something_here() -> None:
    elsewhere = {"event-name", "sequence-number"}  # broken by other tests above
    assert unbroken(RESPONSES, STREAMS, BODIES) == elsewhere
