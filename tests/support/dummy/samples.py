"""The scenarios as an upstream of the dummy protocol sends them."""

from collections.abc import Iterator
from itertools import chain, zip_longest

from dragoman.conform.shape import Json, ReducedAnswer, compact, wire

from ..scenarios import ERROR_MESSAGE, CustomCall, Part, Refusal, Scenario, Text, Thinking, ToolCall

ID, MODEL = "answer-1", "dummy-1"
CALL_IDS = ["d_1", "d_2", "d_3"]
ERROR_BODY = compact({"error": {"message": ERROR_MESSAGE, "code": "slow-down", "status": 429}}).encode()
ERROR_STATUS = 429
_ENDS = {
    "end_turn": "done",
    "tool_use": "call",
    "max_tokens": "length",
    "refusal": "refused",
    "content_filter": "filtered",
}
_KINDS = {Text: "text", Refusal: "refusal", Thinking: "thought", ToolCall: "call"}


def can_say(kind: str) -> bool:
    return kind not in ("custom_tool", "stop_sequence", "redacted")


def expect(scenario: Scenario) -> ReducedAnswer:
    answer = ReducedAnswer(
        text=scenario.joined(Text),
        refusal=scenario.joined(Refusal),
        thinking=scenario.joined(Thinking),
        calls=scenario.calls(CALL_IDS),
        stop=scenario.stop,
        usage={**_named(_count(scenario))},
        id=ID,
        model=MODEL,
    )
    if scenario.error:
        answer.fail(scenario.error)
    return answer


def _named(count: Json) -> Json:
    names = {"in": "input", "cached": "cached_input", "out": "output", "thought": "reasoning"}
    return {names[name]: value for name, value in count.items()}


def _count(scenario: Scenario) -> Json:
    usage = scenario.usage
    some = {"cached": usage.cached, "thought": usage.reasoning}
    return {"in": usage.input, "out": usage.output, **{k: v for k, v in some.items() if v}}


def stream(scenario: Scenario) -> bytes:
    return b"".join(f"data: {wire(value)}\n\n".encode() for value in _events(scenario))


def _events(scenario: Scenario) -> Iterator[Json]:
    yield {"begin": ID, "model": MODEL}
    ids = iter(CALL_IDS)
    blocks = [list(_block(number, part, ids)) for number, part in enumerate(scenario.parts)]
    woven = chain.from_iterable(zip_longest(*blocks) if scenario.interleaved else blocks)
    yield from (value for value in woven if value is not None)
    if scenario.error:
        yield {"error": {"message": scenario.error, "code": "broken", "status": 503}}
        return
    yield {"count": _count(scenario)}
    yield {"end": _ENDS[scenario.stop]}


def _block(number: int, part: Part, ids: Iterator[str]) -> Iterator[Json]:
    assert not isinstance(part, CustomCall)
    yield {"open": number, **_head(part, ids)}
    for text in part.fragments if isinstance(part, ToolCall) else part.pieces:
        yield {"more": number, "text": text}
    yield {"done": number, "whole": not (isinstance(part, ToolCall) and part.cut)}


def _head(part: Part, ids: Iterator[str]) -> Json:
    named = {"id": next(ids), "tool": part.name} if isinstance(part, ToolCall) else {}
    return {"kind": _KINDS[type(part)], **named}


def whole(scenario: Scenario) -> bytes | None:
    if scenario.error or scenario.has_cut_call:
        return None
    ids = iter(CALL_IDS)
    parts = [
        {**_head(part, ids), "text": part.raw if isinstance(part, ToolCall) else "".join(part.pieces)}
        for part in scenario.parts
        if not isinstance(part, CustomCall)
    ]
    value = {"id": ID, "model": MODEL, "answer": parts, "end": _ENDS[scenario.stop]}
    return compact({**value, "count": _count(scenario)}).encode()
