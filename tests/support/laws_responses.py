"""The laws of OpenAI Responses.

Stream: response.created, then items, each added once, filled by its own kinds of events and done
once; then one of completed, incomplete and failed, with the done items repeated as its output. Or
an error event at any point. Items may overlap. After failed or an error, items may stay open.
"""

from .laws_chat import check_error
from .laws_framing import (
    Complaints,
    events,
    filled,
    finished_call,
    json_object,
    whole_object,
)
from .laws_responses_items import Item
from .shape import Json

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


def check_stream(body: bytes) -> list[str]:
    complaints = Complaints()
    stream = _Stream(complaints)
    for number, event in enumerate(events(body, complaints)):
        complaints.place = f"event {number} ({event.name})"
        value = json_object(event.data, complaints)
        if value is None:
            continue
        complaints.unless(event.name == value.get("type"), f"its type is {value.get('type')}")
        complaints.unless(value.get("sequence_number") == number, f"its number is not {number}")
        with complaints.reading():
            stream.feed(value)
    complaints.place = "end"
    complaints.unless(stream.ended, "no terminal event")
    return complaints.found


def check_whole(body: bytes) -> list[str]:
    complaints = Complaints()
    value = whole_object(body, complaints)
    if value is None:
        return complaints.found
    with complaints.reading():
        if "output" not in value:
            check_error(complaints, value)
        else:
            complaints.unless(value["status"] in _TERMINAL.values(), "it is not finished")
            _check_response(complaints, value)
            _check_end(complaints, value)
    return complaints.found


class _Stream:
    def __init__(self, complaints: Complaints) -> None:
        self.complain = complaints
        self.id: str | None = None
        self.items: dict[int, Item] = {}
        self.ended: str | None = None
        self.seen: set[str] = set()

    def feed(self, event: Json) -> None:
        kind: str = event["type"]
        complain = self.complain
        complain.unless(self.ended is None, f"comes after {self.ended}")
        if kind == "error":
            self.ended = kind
            # OpenAI documents it flat and sends it nested; the SDK raises on the nested form only,
            # and takes a flat one before response.created for a broken stream.
            nested = event.get("error")
            complain.unless(nested or self.seen, "comes before response.created and is not nested")
            complain.unless(filled((nested or event)["message"]), "no message")
            return
        complain.unless(self.seen or kind == "response.created", "comes before response.created")
        if kind in _LIFECYCLE:
            self._lifecycle(kind, event["response"])
        elif kind == "response.output_item.added":
            self._add(event)
        elif "output_index" in event:
            self._item(event)
        self.seen.add(kind)

    def _lifecycle(self, kind: str, response: Json) -> None:
        complain = self.complain
        complain.unless(kind not in self.seen, "comes twice")
        complain.unless(response["status"] in _LIFECYCLE[kind], f"status {response['status']!r}")
        complain.unless(self.id in (None, response["id"]), "the response id changed")
        self.id = response["id"]
        _check_response(complain, response)
        if kind not in _TERMINAL:
            complain.unless(not self.items and not response["output"], "has output already")
            return
        self.ended = kind
        _check_end(complain, response)
        if kind != "response.failed":
            self._check_output(response["output"])

    def _check_output(self, output: list[Json]) -> None:
        for index, item in self.items.items():
            self.complain.unless(item.done is not None, f"item {index} is still open")
        done = [item.done for _, item in sorted(self.items.items()) if item.done is not None]
        self.complain.unless(output == done, "output is not the list of the done items")

    def _add(self, event: Json) -> None:
        index, item = event["output_index"], event["item"]
        self.complain.unless(index == len(self.items), f"output_index {index} out of turn")
        for other in self.items.values():
            self.complain.unless(other.id != item["id"], f"item id {item['id']!r} is used twice")
        self.items[index] = Item(item, self.complain)

    def _item(self, event: Json) -> None:
        item = self.items.get(event["output_index"])
        if item is None:
            self.complain.add(f"item {event['output_index']} was never added")
            return
        item.feed(event)


def _check_response(complaints: Complaints, response: Json) -> None:
    complaints.unless(response["object"] == "response", "object is not response")
    complaints.unless(filled(response["id"]), "no id")
    complaints.unless(filled(response["model"]), "no model")
    complaints.unless(isinstance(response["created_at"], int | float), "created_at is not a time")
    complaints.unless(isinstance(response["output"], list), "output is not a list")


def _check_end(complaints: Complaints, response: Json) -> None:
    status = response["status"]
    if status == "failed":
        complaints.unless(filled(response["error"]["message"]), "failed without a message")
    if status == "incomplete":
        complaints.unless(filled(response["incomplete_details"]["reason"]), "no reason given")
    _check_calls(complaints, response["output"], status)
    usage = response.get("usage")
    if usage is not None:
        total = usage["input_tokens"] + usage["output_tokens"]
        complaints.unless(usage["total_tokens"] == total, "total_tokens is not the sum")
        for name in ("input_tokens_details", "output_tokens_details"):
            complaints.unless(isinstance(usage[name], dict), f"no {name}")


def _check_calls(complaints: Complaints, output: list[Json], status: str) -> None:
    calls = [item for item in output if item["type"] in ("function_call", "custom_tool_call")]
    ids = [call["call_id"] for call in calls]
    complaints.unless(all(filled(call_id) for call_id in ids), "a call without a call_id")
    complaints.unless(len(set(ids)) == len(ids), "two calls have the same call_id")
    for call in calls:
        complaints.unless(filled(call["name"]), "a call without a name")
        cut = call.get("status", "completed") != "completed"
        complaints.unless(
            not cut or status != "completed", f"cut call {call['name']} in a completed response"
        )
        if call["type"] == "function_call" and not cut:
            finished_call(complaints, call["name"], call["arguments"])
