"""OpenAI Responses, stream and whole, to the neutral form.

A stream is read item by item, like agents do: `output_item.done` has the final item, and an item without
that event is unfinished. The output list of the last event is not read here; the laws check that it agrees.
"""

from collections.abc import Iterable
from typing import Any

from .. import sse
from ..shape import Json, ReducedAnswer, ReducedCall, counts, error_message, inner, is_object, load_object

_INCOMPLETE = {"max_output_tokens": "max_tokens"}
_TERMINAL = ("response.completed", "response.incomplete", "response.failed")
# Events with a delta of a part: the item's list, the index member, and the member that grows.
_PARTS = {
    "response.output_text.delta": ("content", "content_index", "text"),
    "response.refusal.delta": ("content", "content_index", "refusal"),
    "response.reasoning_text.delta": ("content", "content_index", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index", "text"),
}
_STRINGS = {
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
}
_NEW_PARTS = {
    "response.content_part.added": ("content", "content_index"),
    "response.reasoning_summary_part.added": ("summary", "summary_index"),
}


def stream(body: bytes) -> ReducedAnswer:
    return answer_of_events(load_object(event.data) for event in sse.events(body))


def whole(body: bytes) -> ReducedAnswer:
    return answer_of(load_object(body))


def answer_of_events(events: Iterable[Json]) -> ReducedAnswer:
    reader = _Reader()
    for event in events:
        reader.feed(event)
        if reader.ended:
            break
    return reader.answer()


def answer_of(response: Json) -> ReducedAnswer:
    if "output" not in response:
        answer = ReducedAnswer()
        answer.fail(error_message(response["error"]))
        return answer
    answer = _answer(response, response["output"])
    _close(answer, response)
    return answer


class _Reader:
    def __init__(self) -> None:
        self.items: dict[int, Json] = {}
        self.parts: dict[tuple[int, str, int], Json] = {}
        self.response: Json = {}
        self.error: str | None = None
        self.ended = False

    def feed(self, event: Json) -> None:
        kind: str = event["type"]
        if kind == "error":
            self.error = error_message(event.get("error") or event)
            self.ended = True
        elif kind == "response.output_item.added":
            # Ignore the status here: an item is unfinished until its done event.
            self.items[event["output_index"]] = {**event["item"], "status": "in_progress"}
        elif kind == "response.output_item.done":
            self.items[event["output_index"]] = event["item"]
        elif is_object(event.get("response")):
            self.response = event["response"]
            self.ended = kind in _TERMINAL
        else:
            self._grow(kind, event)

    def _grow(self, kind: str, event: Json) -> None:
        if kind in _STRINGS:
            self.items[event["output_index"]][_STRINGS[kind]] += event["delta"]
        elif kind in _NEW_PARTS:
            place, index = _NEW_PARTS[kind]
            self._part(event, place, index).update(event["part"])
        elif kind in _PARTS:
            place, index, key = _PARTS[kind]
            part = self._part(event, place, index)
            part[key] = part.get(key, "") + event["delta"]

    def _part(self, event: Json, place: str, index: str) -> Json:
        item = self.items[event["output_index"]]
        key = (event["output_index"], place, event[index])
        if key not in self.parts:
            # A reasoning_text delta may come without a content_part.added event.
            self.parts[key] = {"type": "reasoning_text"}
            item[place] = [*(item.get(place) or []), self.parts[key]]
        return self.parts[key]

    def answer(self) -> ReducedAnswer:
        answer = _answer(self.response, list(self.items.values()))
        if self.error is not None:
            answer.fail(self.error)
        elif self.ended:
            _close(answer, self.response)
        return answer


def _answer(response: Json, items: list[Json]) -> ReducedAnswer:
    answer = ReducedAnswer(id=response.get("id"), model=response.get("model"))
    answer.usage = _usage(inner(response, "usage"))
    for item in items:
        _read_item(answer, item)
    return answer


def _read_item(answer: ReducedAnswer, item: Json) -> None:
    match item["type"]:
        case "message":
            for part in item["content"]:
                answer.text += part.get("text", "")
                answer.refusal += part.get("refusal", "")
        case "reasoning":
            answer.thinking += _texts(item.get("summary")) or _texts(item.get("content"))
            if item.get("encrypted_content") and item.get("status") != "in_progress":
                answer.opaque.append(item["encrypted_content"])
        case "function_call":
            answer.calls.append(_call(item, item["arguments"], "function"))
        case "custom_tool_call":
            answer.calls.append(_call(item, item["input"], "custom"))
        case _:
            pass


def _call(item: Json, raw: str, kind: str) -> ReducedCall:
    complete = item.get("status", "completed") == "completed"
    return ReducedCall(item["call_id"], item["name"], raw, kind, complete)


def _texts(parts: list[Any] | None) -> str:
    return "".join(part.get("text", "") for part in parts or [])


def _close(answer: ReducedAnswer, response: Json) -> None:
    match response["status"]:
        case "completed":
            answer.stop = _completed(answer)
        case "incomplete":
            reason = response["incomplete_details"]["reason"]
            answer.stop = _INCOMPLETE.get(reason, reason)
        case _:
            answer.fail(error_message(inner(response, "error")))


def _completed(answer: ReducedAnswer) -> str:
    """Responses has no stop reason for a completed answer: derive it from the items."""
    if answer.calls:
        return "tool_use"
    return "refusal" if answer.refusal else "end_turn"


def _usage(usage: Json) -> dict[str, int]:
    details = inner(usage, "input_tokens_details")
    output = inner(usage, "output_tokens_details")
    return counts(
        input=usage.get("input_tokens"),
        output=usage.get("output_tokens"),
        cached_input=details.get("cached_tokens"),
        cache_write=details.get("cache_write_tokens"),
        reasoning=output.get("reasoning_tokens"),
    )
