"""OpenAI Chat Completions, stream and whole, to the neutral form. Only choice 0 is read."""

from collections.abc import Iterable, Iterator

from .. import sse
from ..shape import Json, ReducedAnswer, ReducedCall, counts, entries, error_message, inner, load_object

_STOPS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}


def stream(body: bytes) -> ReducedAnswer:
    return answer_of_chunks(_chunks(body))


def whole(body: bytes) -> ReducedAnswer:
    return answer_of(load_object(body))


def _chunks(body: bytes) -> Iterator[Json]:
    for event in sse.events(body):
        if event.data == "[DONE]":
            return
        yield load_object(event.data)


def answer_of_chunks(chunks: Iterable[Json]) -> ReducedAnswer:
    answer = ReducedAnswer()
    calls: dict[int, ReducedCall] = {}
    for chunk in chunks:
        _read_head(answer, chunk)
        for choice in entries(chunk, "choices"):
            _read_choice(answer, choice, calls)
        if chunk.get("error"):
            answer.fail(error_message(chunk["error"]))
            break
    answer.calls = list(calls.values())
    return answer


def answer_of(completion: Json) -> ReducedAnswer:
    answer = ReducedAnswer()
    if completion.get("error"):
        answer.fail(error_message(completion["error"]))
        return answer
    _read_head(answer, completion)
    choice = completion["choices"][0]
    message = choice["message"]
    _read_message(answer, message)
    for entry in entries(message, "tool_calls"):
        answer.calls.append(_call(entry))
    answer.stop = _stop(choice["finish_reason"], answer)
    return answer


def _read_head(answer: ReducedAnswer, chunk: Json) -> None:
    answer.id = answer.id or chunk.get("id")
    answer.model = answer.model or chunk.get("model")
    if chunk.get("usage"):
        answer.usage = usage_of(chunk["usage"])


def _read_choice(answer: ReducedAnswer, choice: Json, calls: dict[int, ReducedCall]) -> None:
    if choice["index"] != 0:
        return
    delta = choice["delta"]
    _read_message(answer, delta)
    for fragment in entries(delta, "tool_calls"):
        _add_fragment(calls, fragment)
    if choice.get("finish_reason"):
        answer.stop = _stop(choice["finish_reason"], answer)


def _read_message(answer: ReducedAnswer, message: Json) -> None:
    answer.text += message.get("content") or ""
    answer.refusal += message.get("refusal") or ""
    answer.thinking += message.get("reasoning_content") or message.get("reasoning") or ""
    for detail in entries(message, "reasoning_details"):
        opaque = detail.get("signature") or detail.get("data")
        if opaque:
            answer.opaque.append(opaque)


def _add_fragment(calls: dict[int, ReducedCall], fragment: Json) -> None:
    index = fragment["index"]
    seen = calls.get(index)
    new = _call(fragment)
    if seen is None:
        calls[index] = new
        return
    seen.id = seen.id or new.id
    seen.name = seen.name or new.name
    seen.raw += new.raw


def _call(entry: Json) -> ReducedCall:
    """A call, or a fragment of a call; later fragments only have arguments."""
    call_id = entry.get("id") or ""
    if "custom" in entry:
        custom = entry["custom"]
        return ReducedCall(call_id, custom.get("name") or "", custom["input"], "custom")
    function = inner(entry, "function")
    return ReducedCall(call_id, function.get("name") or "", function.get("arguments") or "")


def _stop(reason: str, answer: ReducedAnswer) -> str:
    if reason == "stop" and answer.refusal:
        return "refusal"
    return _STOPS.get(reason, reason)


def usage_of(usage: Json) -> dict[str, int]:
    prompt = inner(usage, "prompt_tokens_details")
    completion = inner(usage, "completion_tokens_details")
    return counts(
        input=usage.get("prompt_tokens"),
        output=usage.get("completion_tokens"),
        cached_input=prompt.get("cached_tokens"),
        cache_write=prompt.get("cache_write_tokens"),
        reasoning=completion.get("reasoning_tokens"),
    )
