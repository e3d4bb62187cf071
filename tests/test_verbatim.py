"""Between equal protocols the upstream's own bytes pass verbatim until something must be mended."""

from typing import Any

import msgspec
import pytest
from support.exchanges import exchange, run, sliced
from support.sample_streams import SAMPLES, TOOLS
from support.wires import RESPONSES

from dragoman.conform import laws, neutral
from dragoman.protocols.registry import PROTOCOLS

# Why these samples cannot pass verbatim to a strict client.
REBUILT = {("openai-chat", "interleaved"), ("openai-chat", "custom_tool")}
CLEAN = [
    (name, kind)
    for name in PROTOCOLS
    for kind in ("text", "unicode", "tool", "parallel", "thinking_tool", "usage", "max_tokens", "refusal")
    # tests/protocols/test_openai_responses_kept.py has the Responses samples.
    if kind in SAMPLES[name] and name != RESPONSES
]


def payloads(data: bytes) -> list[bytes]:
    frames = data.replace(b"\r\n", b"\n").split(b"\n\n")
    return [frame.partition(b"data: ")[2] for frame in frames if b"data: " in frame]


@pytest.mark.parametrize(("name", "kind"), CLEAN)
@pytest.mark.parametrize("size", [1, 50, 1 << 20])
def test_clean_streams_pass_as_they_are(name: str, kind: str, size: int) -> None:
    data = SAMPLES[name][kind].stream
    got = run(exchange(name, name, TOOLS), sliced(data, size))
    assert payloads(got) == payloads(data)


@pytest.mark.parametrize(("name", "kind"), CLEAN)
def test_clean_bodies_pass_as_they_are(name: str, kind: str) -> None:
    body = SAMPLES[name][kind].whole
    if body is not None:
        assert run(exchange(name, name, TOOLS, stream=False), [body]) == body


def chat(*deltas: dict[str, object], finish: str = "tool_calls") -> bytes:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "vendor": {"x": 1}}
    frames = [head | {"choices": [{"index": 0, "delta": d, "finish_reason": None}]} for d in deltas]
    frames.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return b"".join(b"data: " + msgspec.json.encode(f) + b"\n\n" for f in frames) + b"data: [DONE]\n\n"


def test_verbatim_frames_and_rebuilt_frames_are_one_legal_stream() -> None:
    start = {"index": 0, "id": "x", "type": "function", "function": {"name": "read_file", "arguments": ""}}
    rest = {"index": 0, "function": {"arguments": '{"path": "a", "limit": "3"}'}}
    data = chat(
        {"role": "assistant", "content": ""},
        {"content": "Reading."},
        {"tool_calls": [start]},
        {"tool_calls": [rest]},
    )
    got = run(exchange("openai-chat", "openai-chat", TOOLS), sliced(data, 40))
    assert laws.check("openai-chat", got, stream=True) == []
    said = neutral.reduce("openai-chat", got, stream=True)
    assert said["tool_calls"][0]["arguments"] == {"path": "a", "limit": 3}
    assert payloads(got)[:2] == payloads(data)[:2], "arguments that needed no mending are unchanged"


def test_a_wrong_stop_reason_does_not_pass() -> None:
    call = {
        "index": 0,
        "id": "x",
        "type": "function",
        "function": {"name": "read_file", "arguments": '{"path": "a"}'},
    }
    data = chat({"role": "assistant", "content": ""}, {"tool_calls": [call]}, finish="stop")
    got = run(exchange("openai-chat", "openai-chat", TOOLS), [data])
    assert neutral.reduce("openai-chat", got, stream=True)["stop"] == "tool_use"


def read(data: bytes) -> list[Any]:
    return [msgspec.json.decode(payload) for payload in payloads(data)]


def responses(number: int, kind: str, **fields: object) -> bytes:
    value = {"type": kind, "sequence_number": number, **fields}
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(value))


def test_reasoning_without_content_passes_between_responses() -> None:
    """OpenAI wants the item back by its id, and refuses a message without it."""
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "in_progress",
        "output": [],
    }
    thought = {"id": "rs_1", "type": "reasoning", "summary": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
    done = {**message, "status": "completed", "content": [part]}
    where = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    final = {**response, "status": "completed", "output": [thought, done]}
    stream = [
        responses(0, "response.created", response=response),
        responses(1, "response.output_item.added", output_index=0, item=thought),
        responses(2, "response.output_item.done", output_index=0, item=thought),
        responses(3, "response.output_item.added", output_index=1, item=message),
        responses(4, "response.content_part.added", **where, part={**part, "text": ""}),
        responses(5, "response.output_text.delta", **where, delta="Hi", logprobs=[]),
        responses(6, "response.output_text.done", **where, text="Hi", logprobs=[]),
        responses(7, "response.content_part.done", **where, part=part),
        responses(8, "response.output_item.done", output_index=1, item=done),
        responses(9, "response.completed", response=final),
    ]
    got = run(exchange("openai-responses", "openai-responses", TOOLS), stream)
    assert read(got) == read(b"".join(stream))


def test_the_id_of_an_empty_item_is_not_used_again() -> None:
    """An upstream repeats an id: the first item has no content and passes, the second one is rebuilt."""
    response = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "in_progress",
        "output": [],
    }
    empty = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    none = {**empty, "status": "completed"}
    part = {"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}
    done = {**none, "content": [part]}
    where = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    final = {**response, "status": "completed", "output": [none, done]}
    stream = [
        responses(0, "response.created", response=response),
        responses(1, "response.output_item.added", output_index=0, item=empty),
        responses(2, "response.output_item.done", output_index=0, item=none),
        responses(3, "response.output_item.added", output_index=1, item=empty),
        responses(4, "response.output_text.delta", **where, delta="Hi", logprobs=[]),
        responses(5, "response.output_item.done", output_index=1, item=done),
        responses(6, "response.completed", response=final),
    ]
    got = run(exchange("openai-responses", "openai-responses", TOOLS), stream)
    assert read(got)[:3] == read(b"".join(stream[:3]))
    assert laws.check("openai-responses", got, stream=True) == []


@pytest.mark.parametrize("content", ["false", "0", "{}", "[]"])
def test_content_that_is_not_text_does_not_pass(content: str) -> None:
    head = (
        '{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":'
    )
    deltas = [f'{{"role":"assistant","content":{content}}}', '{"content":"hi"}', "{}"]
    frames = [f'data: {head}{delta},"finish_reason":null}}]}}\n\n' for delta in deltas]
    frames[-1] = frames[-1].replace("null", '"stop"') + "data: [DONE]\n\n"
    out = run(exchange("openai-chat", "openai-chat", []), [frame.encode() for frame in frames])
    assert f'"content":{content}'.encode() not in out
    assert b'"content":"hi"' in out


def test_line_separators_in_the_name_of_an_item_are_escaped() -> None:
    item = {"id": "a\u2028b", "type": "message", "role": "assistant", "content": []}
    frames = [
        responses(0, "response.output_item.added", output_index=0, item=item),
        responses(1, "response.output_text.delta", output_index=0, content_index=0, delta="hi"),
    ]
    out = run(exchange("openai-responses", "openai-responses", []), frames)
    assert b'"delta":"hi"' in out
    assert "\u2028".encode() not in out


@pytest.mark.parametrize("text", [True, "hi", 0, []])
def test_a_part_that_is_not_empty_at_its_start_does_not_pass(text: object) -> None:
    response = {"id": "r", "object": "response", "created_at": 1, "model": "m", "output": []}
    item = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "status": "in_progress"}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    frames = [
        responses(0, "response.created", response={**response, "status": "in_progress"}),
        responses(1, "response.output_item.added", output_index=0, item=item),
        responses(2, "response.content_part.added", part=part, **place),
        responses(3, "response.output_text.delta", delta="hi", **place),
    ]
    out = run(exchange("openai-responses", "openai-responses", []), frames)
    added = next(payload for payload in payloads(out) if b"content_part.added" in payload)
    assert msgspec.json.decode(added)["part"]["text"] == ""


def test_a_body_without_an_end_does_not_pass() -> None:
    usage = {"promptTokenCount": 57, "candidatesTokenCount": 23, "totalTokenCount": 80}
    body = {"candidates": None, "usageMetadata": usage, "modelVersion": "m", "responseId": "r1"}
    got = run(exchange("gemini", "gemini", [], stream=False), [msgspec.json.encode(body)])
    assert laws.check("gemini", got, stream=False) == []
    assert set(msgspec.json.decode(got)) == {"error"}


def anthropic(*events: dict[str, object]) -> list[bytes]:
    return [b"event: %s\ndata: %s\n\n" % (str(e["type"]).encode(), msgspec.json.encode(e)) for e in events]


ASKED: dict[str, object] = {"type": "message", "role": "assistant", "content": [], "stop_sequence": None}
BEGIN: dict[str, object] = {
    "type": "message_start",
    "message": {
        **ASKED,
        "id": "msg_1",
        "model": "m",
        "stop_reason": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}


def ending(reason: str) -> list[dict[str, object]]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]


def test_a_turn_that_pauses_with_a_call_passes_between_anthropics() -> None:
    """The client runs the call, and the paused turn continues with its result."""
    tool = {"type": "tool_use", "id": "toolu_1", "name": "list_sessions", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"limit": 3}'}
    frames = anthropic(
        BEGIN,
        {"type": "content_block_start", "index": 0, "content_block": tool},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "content_block_stop", "index": 0},
        *ending("pause_turn"),
    )
    tools = [{"name": "list_sessions", "parameters": {"properties": {"limit": {"type": "integer"}}}}]
    assert run(exchange("anthropic", "anthropic", tools), frames) == b"".join(frames)


def test_a_paused_turn_with_a_mended_call_stops_for_tool_use() -> None:
    """The call must run before the turn can continue, and a client runs calls only for this stop reason."""
    tool = {"type": "tool_use", "id": "toolu_1", "name": "list_sessions", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"limit": "3"}'}
    frames = anthropic(
        BEGIN,
        {"type": "content_block_start", "index": 0, "content_block": tool},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "content_block_stop", "index": 0},
        *ending("pause_turn"),
    )
    tools = [{"name": "list_sessions", "parameters": {"properties": {"limit": {"type": "integer"}}}}]
    out = run(exchange("anthropic", "anthropic", tools), frames)
    assert laws.check("anthropic", out, stream=True) == []
    said = neutral.reduce("anthropic", out, stream=True)
    assert (said["stop"], said["tool_calls"][0]["arguments"]) == ("tool_use", {"limit": 3})


@pytest.mark.parametrize(
    "strange",
    [
        {"index": 7},
        {"index": 0, "delta": {"partial_json": " "}},
        {"index": 0, "delta": {"type": "text_delta"}},
    ],
)
def test_a_block_of_an_unknown_type_is_opened_once(strange: dict[str, object]) -> None:
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    piece = {"type": "input_json_delta", "partial_json": '{"query":"q"}'}
    frames = anthropic(
        BEGIN,
        {"type": "content_block_start", "index": 0, "content_block": search},
        {"type": "content_block_delta", "index": 0, "delta": piece},
        {"type": "content_block_delta", **strange},
        {"type": "content_block_stop", "index": 0},
        *ending("end_turn"),
    )
    out = run(exchange("anthropic", "anthropic", []), frames)
    assert laws.check("anthropic", out, stream=True) == []


THINKS = {
    "type": "content_block_start",
    "index": 0,
    "content_block": {"type": "thinking", "thinking": "", "signature": ""},
}
THOUGHT = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Hm."}}
STRAY = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hm."}}
PING = {"type": "ping"}


@pytest.mark.parametrize("signature", ["c2lnbmF0dXJl", ""])
@pytest.mark.parametrize(
    ("before", "after"), [([], [PING, THOUGHT]), ([THOUGHT], [PING, THOUGHT]), ([THOUGHT], [PING, STRAY])]
)
def test_a_signature_goes_out_once_at_the_end_of_its_block(
    before: list[dict[str, object]], after: list[dict[str, object]], signature: str
) -> None:
    delta = {"type": "signature_delta", "signature": signature}
    signed = {"type": "content_block_delta", "index": 0, "delta": delta}
    stop = {"type": "content_block_stop", "index": 0}
    frames = anthropic(BEGIN, THINKS, *before, signed, *after, stop, *ending("end_turn"))
    out = run(exchange("anthropic", "anthropic", []), frames)
    assert laws.check("anthropic", out, stream=True) == []
    assert out.count(b"signature_delta") == (1 if signature else 0)


@pytest.mark.parametrize("id", ["", None])
def test_an_empty_call_id_does_not_pass(id: str | None) -> None:
    head: dict[str, object] = {"modelVersion": "m", "responseId": "r1"}
    call = {"functionCall": {"id": id, "name": "read_file", "args": {"path": "a"}}}
    candidates = [
        {"content": {"role": "model", "parts": [call]}, "index": 0},
        {"content": {"role": "model", "parts": [{"text": ""}]}, "index": 0, "finishReason": "STOP"},
    ]
    frames = [b"data: %s\r\n\r\n" % msgspec.json.encode(head | {"candidates": [c]}) for c in candidates]
    assert laws.check("gemini", run(exchange("gemini", "gemini", TOOLS), frames), stream=True) == []


def test_a_shrinking_output_token_count_does_not_pass() -> None:
    text = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {"type": "text_delta", "text": "Hi"}
    frames = anthropic(
        BEGIN,
        text,
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {"output_tokens": 0},
        },
        {"type": "message_stop"},
    )
    out = run(exchange("anthropic", "anthropic", []), frames)
    assert laws.check("anthropic", out, stream=True) == []
