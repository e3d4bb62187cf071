"""The laws of OpenAI Responses.

A stream is response.created, then items. Each item is added once, filled by the events of its kind, and done
once. Items may overlap. Then completed, incomplete or failed ends the stream and repeats the done items as
its output. Or an error event ends it at any point. After failed or an error, items may stay open.
"""

from __future__ import annotations

from ..shape import Json, is_array, is_object
from .base import Complaints, Law
from .framing import (
    CALL_JSON,
    JSON,
    SHAPE,
    STREAM,
    UTF8,
    events,
    filled,
    finished_call,
    json_object,
    whole_object,
)
from .openai_chat import ERROR as CHAT_ERROR
from .openai_chat import check_error
from .openai_responses_items import CALL_NAME, ITEM_ID, ITEM_ONCE, LAWS_OF_ITEMS, StreamedItem

# What breaks without each law was tried with openai-python 3.49: RuntimeError if another event comes first.
CREATED = Law("created-first", "response.created comes first, once, and without output")
EVENT_NAME = Law("event-name", "the name of an event is its type")
NUMBERED = Law("sequence-number", "sequence_number counts 0, 1, 2, …")
HEAD = Law("response-head", "object, id, model, created_at and output are present")
# RuntimeError, as with GitHub Copilot, which changes the ids in every event.
CONSTANT = Law("constant-id", "the response id never changes")
STATUS = Law("status", "the status fits the event, and an incomplete response has a reason")
# RuntimeError if an index is used twice.
OUTPUT_INDEX = Law("output-index", "items are numbered 0, 1, 2, …")
# With an empty output in `response.completed`, the final response is empty, although all items were streamed.
OUTPUT = Law("output-is-items", "the output of the last event is the list of the done items")
CALL_ID = Law("call-id", "every call has a unique call_id")
# Codex runs every call that is done.
CUT_CALL = Law("cut-call", "a completed response has no call that was cut off")
USAGE = Law("usage", "token counts are present, and total_tokens is their sum")
TERMINAL = Law(
    "terminal-event", "completed, incomplete, failed or error ends the stream, with nothing after it"
)
ERROR = CHAT_ERROR

_RESPONSE = (HEAD, STATUS, CALL_ID, CALL_NAME, CALL_JSON, CUT_CALL, USAGE, ERROR)
FAILED_ANSWER = b'"output"'
LAWS_OF_STREAMS = (
    *STREAM,
    CREATED,
    EVENT_NAME,
    NUMBERED,
    CONSTANT,
    OUTPUT_INDEX,
    *LAWS_OF_ITEMS,
    OUTPUT,
    TERMINAL,
    *_RESPONSE,
)
LAWS_OF_BODIES = (UTF8, JSON, SHAPE, *_RESPONSE)

_TERMINAL = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
}
_LIFECYCLE = {
    "response.created": {"in_progress", "queued"},
    "response.queued": {"queued"},
    "response.in_progress": {"in_progress"},
} | {kind: {status} for kind, status in _TERMINAL.items()}


def check_stream(body: bytes) -> Complaints:
    complaints = Complaints()
    stream = _Stream(complaints)
    for number, event in enumerate(events(body, complaints)):
        complaints.at(f"event {number} ({event.name})", event.raw, event.offset)
        value = json_object(event.data, complaints)
        if value is None:
            continue
        complaints.unless(event.name == value.get("type"), EVENT_NAME, f"its type is {value.get('type')}")
        complaints.unless(value.get("sequence_number") == number, NUMBERED, f"its number is not {number}")
        with complaints.reading(SHAPE):
            stream.feed(value)
    complaints.at_end(body)
    complaints.unless(stream.ended, TERMINAL, "no terminal event")
    return complaints


def check_whole(body: bytes) -> Complaints:
    complaints = Complaints()
    value = whole_object(body, complaints)
    if value is None:
        return complaints
    with complaints.reading(SHAPE):
        if "output" not in value:
            check_error(complaints, value)
        else:
            running = value.get("background") is True and value["status"] in ("queued", "in_progress")
            finished = value["status"] in _TERMINAL.values()
            complaints.unless(finished or running, STATUS, "it is not finished")
            _check_response(complaints, value)
            _check_end(complaints, value)
    return complaints


class _Stream:
    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.id: str | None = None
        self.items: dict[int, StreamedItem] = {}
        self.ended: str | None = None
        self.seen: set[str] = set()

    def feed(self, event: Json) -> None:
        kind: str = event["type"]
        complain = self.complain
        complain.unless(self.ended is None, TERMINAL, f"comes after {self.ended}")
        if kind == "error":
            self.ended = kind
            # OpenAI documents a flat error event and sends a nested one. The SDK raises only on the nested
            # form, and treats a flat one before response.created as a broken stream.
            nested = event.get("error")
            complain.unless(nested or self.seen, ERROR, "comes before response.created and is not nested")
            complain.unless(filled((nested or event)["message"]), ERROR, "no message")
            return
        complain.unless(self.seen or kind == "response.created", CREATED, "comes before response.created")
        if kind in _LIFECYCLE:
            self._lifecycle(kind, event["response"])
        elif kind == "response.output_item.added":
            self._add(event)
        elif "output_index" in event:
            self._item(event)
        self.seen.add(kind)

    def _lifecycle(self, kind: str, response: Json) -> None:
        complain = self.complain
        complain.unless(kind not in self.seen, CREATED, "comes twice")
        complain.unless(response["status"] in _LIFECYCLE[kind], STATUS, f"status {response['status']!r}")
        complain.unless(self.id in (None, response["id"]), CONSTANT, "the response id changed")
        self.id = response["id"]
        _check_response(complain, response)
        if kind not in _TERMINAL:
            complain.unless(not self.items and not response["output"], CREATED, "has output already")
            return
        self.ended = kind
        _check_end(complain, response)
        if kind != "response.failed":
            self._check_output(response["output"])

    def _check_output(self, output: list[Json]) -> None:
        for index, item in self.items.items():
            self.complain.unless(item.done is not None, ITEM_ONCE, f"item {index} is still open")
        done = [item.done for _, item in sorted(self.items.items()) if item.done is not None]
        repeated = len(output) == len(done) and all(map(_agree, output, done))
        self.complain.unless(repeated, OUTPUT, "output is not the list of the done items")

    def _add(self, event: Json) -> None:
        index, item = event["output_index"], event["item"]
        self.complain.unless(index == len(self.items), OUTPUT_INDEX, f"output_index {index} out of turn")
        for other in self.items.values():
            self.complain.unless(other.id != item["id"], ITEM_ID, f"item id {item['id']!r} is used twice")
        self.items[index] = StreamedItem(item, self.complain)

    def _item(self, event: Json) -> None:
        item = self.items.get(event["output_index"])
        self.complain.unless(item, ITEM_ONCE, f"item {event['output_index']} was never added")
        if item is not None:
            item.feed(event)


def _agree(one: object, other: object) -> bool:
    """Are the members equal that both have? A server may write an item with more members in one place."""
    if is_object(one) and is_object(other):
        return all(_agree(one[name], other[name]) for name in one.keys() & other.keys())
    if is_array(one) and is_array(other):
        return len(one) == len(other) and all(map(_agree, one, other))
    return one == other


def _check_response(complaints: Complaints, response: Json) -> None:
    complaints.unless(response["object"] == "response", HEAD, "object is not response")
    complaints.unless(filled(response["id"]), HEAD, "no id")
    complaints.unless(filled(response["model"]), HEAD, "no model")
    complaints.unless(isinstance(response["created_at"], (int, float)), HEAD, "created_at is not a time")
    complaints.unless(is_array(response["output"]), HEAD, "output is not a list")


def _check_end(complaints: Complaints, response: Json) -> None:
    status = response["status"]
    if status == "failed":
        complaints.unless(filled(response["error"]["message"]), ERROR, "failed without a message")
    if status == "incomplete":
        complaints.unless(filled(response["incomplete_details"]["reason"]), STATUS, "no reason given")
    _check_calls(complaints, response["output"], status)
    usage = response.get("usage")
    if usage is not None:
        total = usage["input_tokens"] + usage["output_tokens"]
        complaints.unless(usage["total_tokens"] == total, USAGE, "total_tokens is not the sum")
        for name in ("input_tokens_details", "output_tokens_details"):
            complaints.unless(is_object(usage[name]), USAGE, f"no {name}")


def _check_calls(complaints: Complaints, output: list[Json], status: str) -> None:
    calls = [item for item in output if item["type"] in ("function_call", "custom_tool_call")]
    ids = [call["call_id"] for call in calls]
    complaints.unless(all(filled(call_id) for call_id in ids), CALL_ID, "a call without a call_id")
    complaints.unless(len(set(ids)) == len(ids), CALL_ID, "two calls have the same call_id")
    for call in calls:
        complaints.unless(filled(call["name"]), CALL_NAME, "a call without a name")
        cut = call.get("status", "completed") != "completed"
        complaints.unless(
            not cut or status != "completed", CUT_CALL, f"cut call {call['name']} in a completed response"
        )
        if call["type"] == "function_call" and not cut:
            finished_call(complaints, call["name"], call["arguments"])
