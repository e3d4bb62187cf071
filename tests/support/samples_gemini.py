"""The scenarios as generativelanguage.googleapis.com sends them."""

from collections.abc import Iterator
from itertools import count

from dragoman.conform.shape import Json, ReducedAnswer, compact, parse_object, wire

from .scenarios import ERROR_MESSAGE, CustomCall, Part, Refusal, Scenario, Text, Thinking, ToolCall

ID = "pVUYaaHOMdWo1e8P7dKdyAU"
MODEL = "gemini-3-flash"
CALL_IDS = ["k3v9x2qa", "m7t1z8wb", "p5r4y6nc"]
ERROR_BODY = compact(
    {"error": {"code": 429, "message": ERROR_MESSAGE, "status": "RESOURCE_EXHAUSTED"}}
).encode()
ERROR_STATUS = 429
_FINISH = {
    "end_turn": "STOP",
    "tool_use": "STOP",
    "max_tokens": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "PROHIBITED_CONTENT",
}
_SKIPPED = {
    "interleaved",
    "redacted",
    "custom_tool",
    "max_tokens_tool",
    "error_tool",
    "stop_sequence",
}


def can_say(kind: str) -> bool:
    return kind not in _SKIPPED


def expect(scenario: Scenario) -> ReducedAnswer:
    answer = ReducedAnswer(
        text=scenario.joined(Text, Refusal),
        thinking=scenario.joined(Thinking),
        calls=scenario.calls(_ids(scenario) or ["@0"]),
        stop="content_filter" if scenario.stop == "refusal" else scenario.stop,
        id=ID,
        model=MODEL,
        opaque=scenario.opaque(),
    )
    for call in answer.calls:
        call.raw = compact(parse_object(call.raw))
    usage = scenario.usage
    answer.usage = {"input": usage.input, "output": usage.output}
    if usage.cached:
        answer.usage["cached_input"] = usage.cached
    if usage.reasoning:
        answer.usage["reasoning"] = usage.reasoning
    if scenario.error:
        answer.fail(scenario.error)
        answer.usage["output"] = 0
    return answer


def stream(scenario: Scenario) -> bytes:
    return b"".join(f"data: {wire(chunk)}\r\n\r\n".encode() for chunk in _chunks(scenario))


def whole(scenario: Scenario) -> bytes | None:
    if scenario.error:
        return None
    parts = [_whole_part(part, pieces) for part, pieces in _streamed(scenario)]
    return compact(_chunk(parts, scenario, _FINISH[scenario.stop])).encode()


def _chunks(scenario: Scenario) -> Iterator[Json]:
    steps = [piece for _, pieces in _streamed(scenario) for piece in pieces]
    for step in steps[:-1]:
        yield _chunk([step], scenario)
    if not scenario.error:
        yield _chunk([steps[-1]], scenario, _FINISH[scenario.stop])
        return
    yield _chunk([steps[-1]], scenario)
    yield {"error": {"code": 503, "message": scenario.error, "status": "UNAVAILABLE"}}


def _chunk(parts: list[Json], scenario: Scenario, finish: str | None = None) -> Json:
    candidate: Json = {"content": {"role": "model", "parts": parts}, "index": 0}
    usage = scenario.usage
    metadata: Json = {"promptTokenCount": usage.input, "totalTokenCount": usage.input}
    if usage.cached:
        metadata["cachedContentTokenCount"] = usage.cached
    metadata["promptTokensDetails"] = [{"modality": "TEXT", "tokenCount": usage.input}]
    if finish:
        candidate["finishReason"] = finish
        metadata["candidatesTokenCount"] = usage.output - usage.reasoning
        metadata["totalTokenCount"] = usage.input + usage.output
        if usage.reasoning:
            metadata["thoughtsTokenCount"] = usage.reasoning
    head = {"candidates": [candidate], "usageMetadata": metadata}
    return head | {"modelVersion": MODEL, "responseId": ID}


def _ids(scenario: Scenario) -> list[str]:
    """Before Gemini 3 calls often had no id. A lone call here has none, either."""
    calls = [part for part in scenario.parts if isinstance(part, ToolCall)]
    return CALL_IDS if len(calls) > 1 or scenario.opaque() else []


def _streamed(scenario: Scenario) -> Iterator[tuple[Part, list[Json]]]:
    """Each part of the answer with the wire parts that carry it, one per chunk."""
    ids = _ids(scenario)
    place = count()
    opaque = scenario.opaque()
    for part in scenario.parts:
        pieces = list(_pieces(part, ids, place))
        # The signature sits on the first call; without a call, on the last text.
        if opaque and (isinstance(part, ToolCall) or part is scenario.parts[-1]):
            pieces[-1]["thoughtSignature"] = opaque.pop()
        yield part, pieces


def _pieces(part: Part, ids: list[str], place: "count[int]") -> Iterator[Json]:
    match part:
        case Text() | Refusal():
            yield from ({"text": piece} for piece in part.pieces)
        case Thinking():
            yield from ({"text": piece, "thought": True} for piece in part.pieces)
        case ToolCall():
            head = {"id": ids[next(place)]} if ids else {}
            yield {"functionCall": {**head, "name": part.name, "args": parse_object(part.raw)}}
        case CustomCall():
            raise ValueError("Gemini has no freeform calls")


def _whole_part(part: Part, pieces: list[Json]) -> Json:
    if isinstance(part, ToolCall):
        return pieces[0]
    return pieces[-1] | {"text": "".join(piece["text"] for piece in pieces)}
