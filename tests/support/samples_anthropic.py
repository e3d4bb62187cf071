"""The scenarios as api.anthropic.com sends them."""

from collections.abc import Iterator

from dragoman.conform.shape import Json, ReducedAnswer, compact, parse_object, wire

from .scenarios import ERROR_MESSAGE, CustomCall, Part, Refusal, Scenario, Text, Thinking, ToolCall

ID = "msg_01XFDUDYJgAACzvnptvVoYEL"
MODEL = "claude-sonnet-5-20260801"
CALL_IDS = [
    "toolu_01T1x1fJ34qAmk2tNTrN7Up6",
    "toolu_01A09q90qw90lq917835lq9",
    "toolu_01KqW3mBvTz8yRpLx5dNcHgJ",
]
ERROR_BODY = compact(
    {
        "type": "error",
        "error": {"type": "rate_limit_error", "message": ERROR_MESSAGE},
        "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy",
    }
).encode()
ERROR_STATUS = 429
_SKIPPED = {"interleaved", "custom_tool", "filter"}


def can_say(kind: str) -> bool:
    return kind not in _SKIPPED


def expect(scenario: Scenario) -> ReducedAnswer:
    answer = ReducedAnswer(
        text=scenario.joined(Text, Refusal),
        thinking=scenario.joined(Thinking),
        calls=scenario.calls(CALL_IDS),
        stop=scenario.stop,
        id=ID,
        model=MODEL,
        opaque=scenario.opaque(),
    )
    for call in answer.calls:
        if call.raw == "{}":
            call.raw, call.value = "", {}
    usage = scenario.usage
    answer.usage = {
        "input": usage.input,
        "output": usage.output,
        "cached_input": usage.cached,
        "cache_write": usage.cache_write,
    }
    if usage.reasoning:
        answer.usage["reasoning"] = usage.reasoning
    if scenario.error:
        answer.fail(scenario.error)
        answer.usage["output"] = 1
        answer.usage.pop("reasoning", None)
    return answer


def stream(scenario: Scenario) -> bytes:
    return b"".join(_frame(event) for event in _events(scenario))


def whole(scenario: Scenario) -> bytes | None:
    if scenario.error or scenario.has_cut_call:
        return None
    usage = _usage(scenario, scenario.usage.output)
    if scenario.usage.reasoning:
        usage["output_tokens_details"] = {"thinking_tokens": scenario.usage.reasoning}
    message = _message(usage)
    message |= {"content": [_block(part, CALL_IDS[_place(scenario, part)]) for part in scenario.parts]}
    return compact(message | _ending(scenario)).encode()


def _events(scenario: Scenario) -> Iterator[Json]:
    yield {"type": "message_start", "message": _message(_usage(scenario, 1))}
    last = len(scenario.parts) - 1
    for index, part in enumerate(scenario.parts):
        block = _block(part, CALL_IDS[_place(scenario, part)])
        yield {"type": "content_block_start", "index": index, "content_block": _opened(block)}
        if index == 0:
            yield {"type": "ping"}
        for delta in _deltas(part):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        if scenario.error and index == last:
            error = {"type": "overloaded_error", "message": scenario.error}
            yield {"type": "error", "error": error, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}
            return
        yield {"type": "content_block_stop", "index": index}
    usage = _usage(scenario, scenario.usage.output)
    for name in ("cache_creation", "service_tier"):
        del usage[name]
    if scenario.usage.reasoning:
        usage["output_tokens_details"] = {"thinking_tokens": scenario.usage.reasoning}
    yield {"type": "message_delta", "delta": _ending(scenario), "usage": usage}
    yield {"type": "message_stop"}


def _frame(event: Json) -> bytes:
    return f"event: {event['type']}\ndata: {wire(event)}\n\n".encode()


def _message(usage: Json) -> Json:
    return {
        "id": ID,
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(scenario: Scenario, output: int) -> Json:
    usage = scenario.usage
    return {
        "input_tokens": usage.input - usage.cached - usage.cache_write,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    }


def _ending(scenario: Scenario) -> Json:
    ending: Json = {"stop_reason": scenario.stop, "stop_sequence": None}
    if scenario.stop == "stop_sequence":
        ending["stop_sequence"] = "three"
    if scenario.stop == "refusal":
        ending["stop_details"] = {
            "type": "refusal",
            "category": "general_harms",
            "explanation": None,
        }
    return ending


def _place(scenario: Scenario, part: Part) -> int:
    """The index of this call among the calls; 0 for other parts."""
    calls = [other for other in scenario.parts if isinstance(other, ToolCall | CustomCall)]
    return next((place for place, call in enumerate(calls) if call is part), 0)


def _block(part: Part, call_id: str) -> Json:
    match part:
        case Text() | Refusal():
            return {"type": "text", "text": "".join(part.pieces)}
        case Thinking(pieces=()):
            return {"type": "redacted_thinking", "data": part.opaque}
        case Thinking():
            thinking = "".join(part.pieces)
            return {"type": "thinking", "thinking": thinking, "signature": part.opaque}
        case ToolCall():
            value = parse_object(part.raw) or {}
            return {"type": "tool_use", "id": call_id, "name": part.name, "input": value}
        case CustomCall():
            raise ValueError("Anthropic has no freeform calls")


def _opened(block: Json) -> Json:
    """The block of the start event, with empty streamed members."""
    empty: Json = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()}


def _deltas(part: Part) -> Iterator[Json]:
    match part:
        case Text() | Refusal():
            for piece in part.pieces:
                yield {"type": "text_delta", "text": piece}
        case Thinking(pieces=()) | CustomCall():
            return
        case Thinking():
            for piece in part.pieces:
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": part.opaque}
        case ToolCall():
            yield {"type": "input_json_delta", "partial_json": ""}
            # A call without arguments has only the empty fragment.
            for fragment in () if part.raw == "{}" else part.fragments:
                yield {"type": "input_json_delta", "partial_json": fragment}
