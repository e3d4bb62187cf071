"""Between equal protocols the client gets the frames of the upstream, equal as JSON except what is mended."""

import json

import msgspec
import pytest
from support import edited_streams
from support.exchanges import exchange, run, sliced
from support.sample_streams import SAMPLES, TOOLS

from dragoman.conform import laws, neutral
from dragoman.protocols.registry import PROTOCOLS

WHOLE = ("text", "unicode", "usage", "max_tokens", "refusal")
HELD = ("tool", "parallel", "thinking_tool")
"""The arguments of a call are held until a key is complete, so they go out in other pieces."""
STREAMS = [(name, kind) for name in PROTOCOLS for kind in WHOLE if kind in SAMPLES[name]]
CALLS = [(name, kind) for name in PROTOCOLS for kind in HELD if kind in SAMPLES[name]]


def payloads(data: bytes) -> list[object]:
    frames = data.replace(b"\r\n", b"\n").split(b"\n\n")
    found = [frame.partition(b"data: ")[2] for frame in frames if b"data: " in frame]
    return [json.loads(payload) if payload[:1] == b"{" else payload for payload in found]


@pytest.mark.parametrize(("name", "kind"), STREAMS)
@pytest.mark.parametrize("size", [1, 50, 1 << 20])
def test_clean_streams_pass_frame_by_frame(name: str, kind: str, size: int) -> None:
    data = SAMPLES[name][kind].stream
    got = run(exchange(name, name, TOOLS), sliced(data, size))
    assert payloads(got) == payloads(data)


@pytest.mark.parametrize(("name", "kind"), CALLS)
@pytest.mark.parametrize("size", [1, 50, 1 << 20])
def test_clean_calls_pass_with_the_same_arguments(name: str, kind: str, size: int) -> None:
    data = SAMPLES[name][kind].stream
    got = run(exchange(name, name, TOOLS), sliced(data, size))
    assert neutral.reduce(name, got, stream=True) == neutral.reduce(name, data, stream=True)


@pytest.mark.parametrize(("name", "kind"), [*STREAMS, *CALLS])
def test_clean_bodies_pass_whole(name: str, kind: str) -> None:
    body = SAMPLES[name][kind].whole
    if body is not None:
        assert json.loads(run(exchange(name, name, TOOLS, stream=False), [body])) == json.loads(body)


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
    assert payloads(got) == payloads(b"".join(stream))


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
    assert payloads(got)[:3] == payloads(b"".join(stream[:3]))
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
    added = next(event for event in edited_streams.split(out) if event["type"].endswith("part.added"))
    assert added["part"]["text"] == ""


def test_a_body_without_an_end_does_not_pass() -> None:
    usage = {"promptTokenCount": 57, "candidatesTokenCount": 23, "totalTokenCount": 80}
    body = {"candidates": None, "usageMetadata": usage, "modelVersion": "m", "responseId": "r1"}
    got = run(exchange("gemini", "gemini", [], stream=False), [msgspec.json.encode(body)])
    assert laws.check("gemini", got, stream=False) == []
    assert set(msgspec.json.decode(got)) == {"error"}


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
