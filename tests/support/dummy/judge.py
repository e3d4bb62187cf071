"""The laws of the dummy protocol, and the reduction of its answers."""

from typing import Any

from dragoman.conform import sse
from dragoman.conform.laws import framing
from dragoman.conform.laws.base import Complaints, Law
from dragoman.conform.shape import Json, ReducedAnswer, ReducedCall, counts, load_object

BEGINS = Law("begins-once", "a stream begins with `begin`, and with nothing but an error else")
ENDS = Law("ends-once", "a stream ends with `end` or `error`, and nothing follows")
LAWS_OF_STREAMS = (*framing.STREAM, framing.CALL_JSON, BEGINS, ENDS)
LAWS_OF_BODIES = (framing.UTF8, framing.JSON, framing.SHAPE, framing.CALL_JSON)

_STOPS = {
    "done": "end_turn",
    "call": "tool_use",
    "length": "max_tokens",
    "refused": "refusal",
    "filtered": "content_filter",
}


def check_stream(body: bytes) -> Complaints:
    complaints = Complaints()
    found = [framing.json_object(event.data, complaints) for event in framing.events(body, complaints)]
    values = [value for value in found if value is not None]
    if not values:
        complaints.add(ENDS, "there are no events")
        return complaints
    complaints.unless("begin" in values[0] or "error" in values[0], BEGINS, str(values[0]))
    complaints.unless(not any("begin" in value for value in values[1:]), BEGINS, "it begins twice")
    last = [number for number, value in enumerate(values, 1) if "end" in value or "error" in value]
    complaints.unless(last == [len(values)], ENDS, f"ends at {last} of {len(values)}")
    _check_calls(stream(body), complaints)
    return complaints


def check_whole(body: bytes) -> Complaints:
    complaints = Complaints()
    value = framing.whole_object(body, complaints)
    if value is not None:
        complaints.unless("answer" in value or "error" in value, framing.SHAPE, "neither answer nor error")
        _check_calls(whole(body), complaints)
    return complaints


def _check_calls(answer: ReducedAnswer, complaints: Complaints) -> None:
    for call in answer.calls:
        if call.complete and answer.error is None:
            framing.finished_call(complaints, call.name, call.raw)


def stream(body: bytes) -> ReducedAnswer:
    answer, blocks = ReducedAnswer(), dict[int, Any]()
    for event in sse.events(body):
        _feed(answer, blocks, load_object(event.data))
    for block in blocks.values():
        if isinstance(block, ReducedCall):
            answer.calls.append(block)
    return answer


def _feed(answer: ReducedAnswer, blocks: dict[int, Any], value: Json) -> None:
    match value:
        case {"begin": id, "model": model}:
            answer.id, answer.model = id, model
        case {"open": block, "kind": "call"}:
            blocks[block] = ReducedCall(value["id"], value["tool"])
        case {"open": block, "kind": kind}:
            blocks[block] = kind
        case {"more": block, "text": text}:
            _grow(answer, blocks[block], text)
        case {"done": block, "whole": complete}:
            if isinstance(blocks[block], ReducedCall):
                blocks[block].complete = complete
        case {"count": count}:
            answer.usage |= _usage(count)
        case {"end": end}:
            answer.stop = _STOPS[end]
        case {"error": error}:
            answer.fail(error["message"])


def _grow(answer: ReducedAnswer, block: Any, text: str) -> None:
    if isinstance(block, ReducedCall):
        block.raw += text
    else:
        name = {"thought": "thinking"}.get(block, block)
        setattr(answer, name, getattr(answer, name) + text)


def _usage(count: Json) -> dict[str, int]:
    return counts(
        input=count.get("in"),
        cached_input=count.get("cached"),
        output=count.get("out"),
        reasoning=count.get("thought"),
    )


def whole(body: bytes) -> ReducedAnswer:
    value = load_object(body)
    answer = ReducedAnswer()
    if "error" in value:
        answer.fail(value["error"]["message"])
        return answer
    for part in value["answer"]:
        if part["kind"] == "call":
            answer.calls.append(ReducedCall(part["id"], part["tool"], part["text"]))
        else:
            _grow(answer, part["kind"], part["text"])
    answer.id, answer.model, answer.stop = value["id"], value["model"], _STOPS[value["end"]]
    answer.usage = _usage(value["count"])
    return answer
