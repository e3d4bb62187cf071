"""The scenarios as OpenAI's /v1/responses sends them."""

from collections.abc import Iterator
from itertools import zip_longest

from dragoman.conform.shape import Json, ReducedAnswer, compact, wire

from .scenarios import ERROR_MESSAGE, CustomCall, Part, Refusal, Scenario, Text, Thinking, ToolCall

ID = "resp_0a3c61d7f2b84e9500691855a5d6bc8196b2c4f0e1d2a3b4c5"
MODEL = "gpt-5.1-codex-2025-11-13"
CALL_IDS = [
    "call_2bXz0Yt7LpNc5dHa8rW2kq1m",
    "call_oIg9Kx4RyBv1TmZQ3nJfU6sE",
    "call_lPjS8eGi7OqFrN0Mh5CwD2uA",
]
ERROR_BODY = compact(
    {
        "error": {
            "message": ERROR_MESSAGE,
            "type": "tokens",
            "param": None,
            "code": "rate_limit_exceeded",
        }
    }
).encode()
ERROR_STATUS = 429
_PREFIX = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
}
_REASONS = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}
_SKIPPED = {"stop_sequence"}


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
        opaque=scenario.opaque(),
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
    frames: list[str] = []
    for number, event in enumerate(_events(scenario)):
        data = wire(event | {"sequence_number": number})
        frames.append(f"event: {event['type']}\ndata: {data}\n\n")
    return "".join(frames).encode()


def whole(scenario: Scenario) -> bytes | None:
    return None if scenario.error else compact(_finished(scenario)).encode()


def _events(scenario: Scenario) -> Iterator[Json]:
    for kind in ("response.created", "response.in_progress"):
        yield {"type": kind, "response": _response("in_progress")}
    bodies = [_item_events(index, item, part) for index, item, part in _items(scenario)]
    if scenario.error:
        # The last item is still open when the error comes.
        bodies[-1] = bodies[-1][: -_closing(scenario.parts[-1])]
    yield from _ordered(bodies, interleaved=scenario.interleaved)
    if scenario.error and scenario.has_cut_call:
        yield {"type": "error", "code": "server_error", "message": scenario.error, "param": None}
        return
    response = _finished(scenario)
    yield {"type": f"response.{response['status']}", "response": response}


def _ordered(bodies: list[list[Json]], *, interleaved: bool) -> Iterator[Json]:
    if not interleaved:
        for body in bodies:
            yield from body
        return
    for turn in zip_longest(*bodies):
        yield from (event for event in turn if event is not None)


def _finished(scenario: Scenario) -> Json:
    if scenario.error:
        error = {"code": "server_error", "message": scenario.error}
        return _response("failed") | {"error": error}
    reason = _REASONS.get(scenario.stop)
    response = _response("incomplete" if reason else "completed")
    response["output"] = [item for _, item, _ in _items(scenario)]
    response["incomplete_details"] = {"reason": reason} if reason else None
    usage = scenario.usage
    response["usage"] = {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
    return response


def _response(status: str) -> Json:
    return {
        "id": ID,
        "object": "response",
        "created_at": 1763213221,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "max_output_tokens": None,
        "model": MODEL,
        "output": [],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None,
        "metadata": {},
    }


def _items(scenario: Scenario) -> list[tuple[int, Json, Part]]:
    found: list[tuple[int, Json, Part]] = []
    calls = iter(CALL_IDS)
    for index, part in enumerate(scenario.parts):
        item = _item(part, calls)
        prefix = _PREFIX[item["type"]]
        last = index == len(scenario.parts) - 1
        cut = last and scenario.stop in _REASONS
        head = {"id": f"{prefix}_0a3c61d7f2b84e950069185{index:x}"}
        if item["type"] != "reasoning":
            item["status"] = "incomplete" if cut else "completed"
        found.append((index, head | item, part))
    return found


def _item(part: Part, call_ids: Iterator[str]) -> Json:
    match part:
        case Text() | Refusal():
            content = [_part(part, "".join(part.pieces))]
            return {"type": "message", "role": "assistant", "content": content}
        case Thinking():
            text = "".join(part.pieces)
            summary = [{"type": "summary_text", "text": text}] if text else []
            return {"type": "reasoning", "summary": summary, "encrypted_content": part.opaque}
        case ToolCall():
            call = {"type": "function_call", "call_id": next(call_ids), "name": part.name}
            return call | {"arguments": part.raw}
        case CustomCall():
            call = {"type": "custom_tool_call", "call_id": next(call_ids), "name": part.name}
            return call | {"input": part.raw}


def _part(part: Text | Refusal, text: str) -> Json:
    if isinstance(part, Refusal):
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}


def _closing(part: Part) -> int:
    """How many events close an item of this kind."""
    return 3 if isinstance(part, Text | Refusal) else 2


def _item_events(index: int, item: Json, part: Part) -> list[Json]:
    place = {"item_id": item["id"], "output_index": index}
    return [
        {"type": "response.output_item.added", "output_index": index, "item": _opened(item)},
        *({**event, **place} for event in _body(part)),
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _opened(item: Json) -> Json:
    empty: Json = {"content": [], "summary": [], "arguments": "", "input": ""}
    opened = {key: empty.get(key, value) for key, value in item.items()}
    if "status" in item:
        opened["status"] = "in_progress"
    if "encrypted_content" in item:
        # The copy in the added event is not the whole one.
        opened["encrypted_content"] = item["encrypted_content"][:20]
    return opened


def _body(part: Part) -> list[Json]:
    match part:
        case Text() | Refusal():
            return _message_body(part)
        case Thinking():
            return _summary_body(part) if part.pieces else []
        case ToolCall():
            return _call_body("function_call_arguments", "arguments", part.fragments)
        case CustomCall():
            return _call_body("custom_tool_call_input", "input", part.pieces)


def _message_body(part: Text | Refusal) -> list[Json]:
    text = "".join(part.pieces)
    place = {"content_index": 0}
    if isinstance(part, Refusal):
        name, key, extra = "response.refusal", "refusal", {}
    else:
        name, key, extra = "response.output_text", "text", {"logprobs": []}
    deltas = [
        {"type": f"{name}.delta", "delta": piece, "obfuscation": "k2", **place, **extra}
        for piece in part.pieces
    ]
    return [
        {"type": "response.content_part.added", "part": _part(part, ""), **place},
        *deltas,
        {"type": f"{name}.done", key: text, **place, **extra},
        {"type": "response.content_part.done", "part": _part(part, text), **place},
    ]


def _summary_body(part: Thinking) -> list[Json]:
    text = "".join(part.pieces)
    place = {"summary_index": 0}
    name = "response.reasoning_summary"
    empty, full = ({"type": "summary_text", "text": value} for value in ("", text))
    return [
        {"type": f"{name}_part.added", "part": empty, **place},
        *({"type": f"{name}_text.delta", "delta": piece, **place} for piece in part.pieces),
        {"type": f"{name}_text.done", "text": text, **place},
        {"type": f"{name}_part.done", "part": full, **place},
    ]


def _call_body(name: str, key: str, pieces: tuple[str, ...]) -> list[Json]:
    return [
        *({"type": f"response.{name}.delta", "delta": piece} for piece in pieces),
        {"type": f"response.{name}.done", key: "".join(pieces)},
    ]
