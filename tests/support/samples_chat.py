"""The scenarios as OpenAI-style /chat/completions endpoints send them."""

from collections.abc import Iterator
from itertools import zip_longest

from dragoman.conform.shape import Json, ReducedAnswer, compact, wire

from .scenarios import ERROR_MESSAGE, CustomCall, Refusal, Scenario, Text, Thinking, ToolCall

ID = "chatcmpl-CZr8bVnN3pXlq0vYwWkq5s1RjT2aF"
MODEL = "gpt-5.1-2025-11-13"
CREATED = 1763213221
CALL_IDS = [
    "call_8rW2kq1mVbXz0Yt7LpNc5dHa",
    "call_Q3nJfU6sEoIg9Kx4RyBv1TmZ",
    "call_h5CwD2uAlPjS8eGi7OqFrN0M",
]
ERROR_BODY = compact(
    {
        "error": {
            "message": ERROR_MESSAGE,
            "type": "requests",
            "param": None,
            "code": "rate_limit_exceeded",
        }
    }
).encode()
ERROR_STATUS = 429
_FINISH = {
    "end_turn": "stop",
    "refusal": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "content_filter": "content_filter",
}
_SKIPPED = {"redacted", "stop_sequence"}


def can_say(kind: str) -> bool:
    return kind not in _SKIPPED


def expect(scenario: Scenario) -> ReducedAnswer:
    answer = ReducedAnswer(
        text=scenario.joined(Text),
        thinking=scenario.joined(Thinking),
        refusal=scenario.joined(Refusal),
        calls=scenario.calls(CALL_IDS),
        stop=scenario.stop,
        id=ID,
        model=MODEL,
    )
    usage = scenario.usage
    answer.usage = {
        "input": usage.input,
        "output": usage.output,
        "cached_input": usage.cached,
        "cache_write": usage.cache_write,
        "reasoning": usage.reasoning,
    }
    if scenario.error:
        answer.fail(scenario.error)
        answer.usage = {}
    return answer


def stream(scenario: Scenario) -> bytes:
    frames = [*_chunks(scenario), "[DONE]"]
    if scenario.error:
        frames[-1] = compact({"error": _error(scenario.error)})
    return "".join(f"data: {frame}\n\n" for frame in frames).encode()


def whole(scenario: Scenario) -> bytes | None:
    if scenario.error:
        return None
    message: Json = {
        "role": "assistant",
        "content": scenario.joined(Text) or None,
        "refusal": scenario.joined(Refusal) or None,
        "annotations": [],
    }
    if scenario.joined(Thinking):
        message["reasoning_content"] = scenario.joined(Thinking)
    calls = [
        _named(place, call.kind, call.name, call.raw) for place, call in enumerate(scenario.calls(CALL_IDS))
    ]
    if calls:
        message["tool_calls"] = calls
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _FINISH[scenario.stop],
    }
    head = _head() | {"object": "chat.completion"}
    return compact(head | {"choices": [choice], "usage": _usage(scenario)}).encode()


def _chunks(scenario: Scenario) -> Iterator[str]:
    yield _chunk({"role": "assistant", "content": "", "refusal": None})
    for delta in _deltas(scenario):
        yield _chunk(delta)
    if scenario.error:
        return
    yield _chunk({}, _FINISH[scenario.stop])
    yield wire(_head() | {"choices": [], "usage": _usage(scenario)})


def _deltas(scenario: Scenario) -> Iterator[Json]:
    place = 0
    waiting: list[list[Json]] = []
    for part in scenario.parts:
        match part:
            case Text():
                yield from ({"content": piece} for piece in part.pieces)
            case Refusal():
                yield from ({"refusal": piece} for piece in part.pieces)
            case Thinking():
                yield from ({"reasoning_content": piece} for piece in part.pieces)
            case ToolCall() | CustomCall():
                waiting.append(_fragments(part, place))
                place += 1
    for fragment in _ordered(waiting, interleaved=scenario.interleaved):
        yield {"tool_calls": [fragment]}


def _ordered(calls: list[list[Json]], *, interleaved: bool) -> Iterator[Json]:
    if not interleaved:
        for call in calls:
            yield from call
        return
    for turn in zip_longest(*calls):
        yield from (fragment for fragment in turn if fragment is not None)


def _fragments(part: ToolCall | CustomCall, place: int) -> list[Json]:
    if isinstance(part, CustomCall):
        first = _named(place, "custom", part.name, "")
        rest = [{"custom": {"input": piece}} for piece in part.pieces]
    else:
        first = _named(place, "function", part.name, "")
        rest = [{"function": {"arguments": fragment}} for fragment in part.fragments]
    return [{"index": place, **fragment} for fragment in (first, *rest)]


def _named(place: int, kind: str, name: str, raw: str) -> Json:
    key = "arguments" if kind == "function" else "input"
    return {"id": CALL_IDS[place], "type": kind, kind: {"name": name, key: raw}}


def _head() -> Json:
    return {
        "id": ID,
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": MODEL,
        "service_tier": "default",
        "system_fingerprint": "fp_e819e3438b",
    }


def _chunk(delta: Json, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return wire(_head() | {"choices": [choice], "usage": None, "obfuscation": "Xq3"})


def _usage(scenario: Scenario) -> Json:
    usage = scenario.usage
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _error(message: str) -> Json:
    return {"message": message, "type": "server_error", "param": None, "code": None}
