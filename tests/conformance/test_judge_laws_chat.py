"""Each law of OpenAI Chat Completions, and a stream or body that breaks it."""

import copy
import json
from typing import Any

import pytest
from support.edited_streams import Events, Spoil, spoiled
from support.sample_streams import SAMPLES
from support.unbroken_laws import unbroken
from support.wires import CHAT

from dragoman.conform import laws

USAGE = -2
FINISH = -3


def choice(event: Any) -> Any:
    return event["choices"][0]


def delta(event: Any) -> Any:
    return event["choices"][0]["delta"]


def fragment(event: Any) -> Any:
    return event["choices"][0]["delta"]["tool_calls"][0]


def reindex(events: Events, by: int) -> None:
    for event in events[1:FINISH]:
        fragment(event)["index"] += by


def same_id(events: Events) -> None:
    for event in events[1:FINISH]:
        if "id" in fragment(event):
            fragment(event)["id"] = "call_1"


def swap(events: Events, a: int, b: int) -> None:
    events[a], events[b] = events[b], events[a]


STREAMS: dict[str, tuple[str, Spoil, str]] = {
    "id changes": ("text", lambda e: e[2].update(id="x"), "id changed"),
    "created changes": ("text", lambda e: e[2].update(created=1), "created changed"),
    "model changes": ("text", lambda e: e[2].update(model="x"), "model changed"),
    "object changes": ("text", lambda e: e[2].update(object=""), "object changed"),
    "wrong object": ("text", lambda e: e[0].update(object="x"), "object is not"),
    "empty id": ("text", lambda e: e[0].update(id=""), "no id"),
    "empty model": ("text", lambda e: e[0].update(model=None), "no model"),
    "no created": ("text", lambda e: e[0].update(created="x"), "not a time"),
    "no choices": ("text", lambda e: e[1].pop("choices"), "malformed"),
    "no delta": ("text", lambda e: choice(e[1]).pop("delta"), "malformed"),
    "no finish_reason key": ("text", lambda e: choice(e[1]).pop("finish_reason"), "malformed"),
    "no choice ever": ("text", lambda e: e.__delitem__(slice(0, USAGE)), "no choice at all"),
    "choice 1 first": ("text", lambda e: choice(e[0]).update(index=1), "out of turn"),
    "no role": ("text", lambda e: delta(e[0]).pop("role"), "role None"),
    "role twice": ("text", lambda e: delta(e[1]).update(role="assistant"), "role 'assistant'"),
    "content is a list": ("text", lambda e: delta(e[1]).update(content=[]), "neither text nor"),
    "tool index 1": ("tool", lambda e: reindex(e, 1), "out of turn"),
    "no tool index": ("tool", lambda e: fragment(e[1]).pop("index"), "malformed"),
    "no tool id": ("tool", lambda e: fragment(e[1]).update(id=""), "without an id"),
    "no tool type": ("tool", lambda e: fragment(e[1]).pop("type"), "malformed"),
    "no tool name": ("tool", lambda e: fragment(e[1])["function"].update(name=""), "a name"),
    "arguments an object": (
        "tool",
        lambda e: fragment(e[1])["function"].update(arguments={}),
        "arguments is not text",
    ),
    "id again": ("tool", lambda e: fragment(e[2]).update(id="x"), "id in a later"),
    "type again": ("tool", lambda e: fragment(e[2]).update(type="function"), "type in a later"),
    "name again": ("tool", lambda e: fragment(e[2])["function"].update(name=""), "name in a l"),
    "same id": ("parallel", same_id, "the same id"),
    "cut call": ("tool", lambda e: e.__delitem__(FINISH - 1), "without a JSON object"),
    "no finish": ("text", lambda e: e.__delitem__(FINISH), "finish_reason is None"),
    "unknown finish": ("text", lambda e: choice(e[FINISH]).update(finish_reason="x"), "is 'x'"),
    "two finishes": ("text", lambda e: e.insert(FINISH, e[FINISH]), "after the finish_reason"),
    "text after the finish": ("text", lambda e: swap(e, FINISH, FINISH - 1), "after the finish"),
    "stop with a call": (
        "tool",
        lambda e: choice(e[FINISH]).update(finish_reason="stop"),
        "stop beside a tool call",
    ),
    "tool_calls without one": (
        "text",
        lambda e: choice(e[FINISH]).update(finish_reason="tool_calls"),
        "tool_calls without a call",
    ),
    "usage not last": ("text", lambda e: swap(e, USAGE, FINISH), "after the usage"),
    "usage total": ("text", lambda e: e[USAGE]["usage"].update(total_tokens=1), "not the sum"),
    "no [DONE]": ("text", lambda e: e.pop(), "no [DONE]"),
    "two [DONE]": ("text", lambda e: e.append("[DONE]"), "after [DONE]"),
    "[DONE] before usage": ("text", lambda e: swap(e, USAGE, -1), "after [DONE]"),
    "going on after an error": ("error", lambda e: e.append(e[1]), "after an error"),
    "error is a string": ("error", lambda e: e[-1].update(error="boom"), "malformed"),
    "error without a message": ("error", lambda e: e[-1]["error"].update(message=""), "message"),
    "error without a type": ("error", lambda e: e[-1]["error"].update(type=None), "no type"),
    "error after the finish": (
        "text",
        lambda e: e.insert(USAGE, {"error": {"message": "x", "type": "y"}}),
        "an error after the finish_reason",
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_broken_stream_is_noticed(name: str) -> None:
    kind, spoil, complaint = STREAMS[name]
    stream = spoiled(CHAT, SAMPLES[CHAT][kind].stream, spoil)
    found = laws.check(CHAT, stream, stream=True)
    assert any(complaint in str(broken) for broken in found), found


def test_an_event_has_no_name() -> None:
    stream = b"event: message\n" + SAMPLES[CHAT]["text"].stream
    assert [*map(str, laws.check(CHAT, stream, stream=True))] == ["event 0: has a name: message"]


def two_choices(events: Events) -> None:
    opening, finish = copy.deepcopy([events[0], events[FINISH]])
    choice(opening)["index"] = choice(finish)["index"] = 1
    events.insert(FINISH, finish)
    events.insert(1, opening)


FINE: dict[str, tuple[str, Spoil]] = {
    "[DONE] after an error": ("error", lambda e: e.append("[DONE]")),
    "an error alone": ("error", lambda e: e.__delitem__(slice(-1))),
    "no usage": ("text", lambda e: e.pop(USAGE)),
    "the usage in the last chunk of the choice": (
        "text",
        lambda e: e[FINISH].update(usage=e.pop(USAGE)["usage"]),
    ),
    "two choices": ("text", two_choices),
}


@pytest.mark.parametrize("name", FINE)
def test_an_allowed_variant_breaks_no_law(name: str) -> None:
    kind, spoil = FINE[name]
    stream = spoiled(CHAT, SAMPLES[CHAT][kind].stream, spoil)
    assert laws.check(CHAT, stream, stream=True) == []


BODIES: dict[str, tuple[str, Spoil, str]] = {
    "wrong object": ("text", lambda c: c.update(object="chat.completion.chunk"), "object"),
    "no choices": ("text", lambda c: c.update(choices=[]), "no choice at all"),
    "wrong index": ("text", lambda c: choice(c).update(index=1), "out of turn"),
    "wrong role": ("text", lambda c: choice(c)["message"].update(role="x"), "role"),
    "no content": ("text", lambda c: choice(c)["message"].pop("content"), "no content"),
    "no finish_reason": ("text", lambda c: choice(c).update(finish_reason=None), "is None"),
    "stop with a call": ("tool", lambda c: choice(c).update(finish_reason="stop"), "beside"),
    "usage total": ("text", lambda c: c["usage"].update(total_tokens=0), "not the sum"),
    "arguments an object": (
        "tool",
        lambda c: choice(c)["message"]["tool_calls"][0]["function"].update(arguments={}),
        "arguments is not text",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_broken_body_is_noticed(name: str) -> None:
    kind, spoil, complaint = BODIES[name]
    completion = json.loads(SAMPLES[CHAT][kind].whole or b"")
    spoil(completion)
    found = laws.check(CHAT, json.dumps(completion).encode(), stream=False)
    assert any(complaint in str(broken) for broken in found), found


@pytest.mark.parametrize("error", ["x", {"message": ""}, {"message": "x"}, {"type": "x"}])
def test_a_broken_error_body_is_noticed(error: Any) -> None:
    assert laws.check(CHAT, json.dumps({"error": error}).encode(), stream=False)


def test_every_law_is_broken_by_something_here() -> None:
    elsewhere = {"no-event-names"}  # broken by other tests above
    assert unbroken(CHAT, STREAMS, BODIES) == elsewhere
