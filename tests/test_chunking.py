"""The split of the upstream's bytes into reads changes nothing for the client or a listener."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import edited_streams
from support.exchanges import exchange, run, sliced
from support.sample_streams import SAMPLES, TOOLS

from dragoman.conform import corpus
from dragoman.conform.shape import Json
from dragoman.model.events import ArgumentsDelta, Event, TextDelta
from dragoman.protocols.registry import PROTOCOLS

SIZES = [1 << 20, 4096, 300, 97]


def read_per_event(data: bytes) -> list[bytes]:
    """One read per event, cut before its end."""
    return [piece for event in data.split(b"\n\n") for piece in (event + b"\n", b"\n")]


def chat_frame(delta: object, **more: object) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return json.dumps(head | {"choices": [choice]} | more)


def chat(texts: list[str], arguments: list[str]) -> bytes:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "write", "arguments": ""}}
    frames = [chat_frame({"role": "assistant", "content": ""})]
    frames += [chat_frame({"content": text}) for text in texts]
    frames += [chat_frame({"tool_calls": [call]})]
    frames += [chat_frame({"tool_calls": [{"index": 0, "function": {"arguments": a}}]}) for a in arguments]
    frames += [chat_frame({}).replace("null", '"tool_calls"'), "[DONE]"]
    return b"".join(b"data: %s\n\n" % frame.encode() for frame in frames)


def chat_with_repeated_fields(texts: list[str], arguments: list[str]) -> bytes:
    """As some servers write it: every chunk has a role and all text fields, reasoning first."""
    data = chat(texts, arguments)
    thoughts = [{"content": None, "reasoning_content": text} for text in texts]
    thought = b"".join(b"data: %s\n\n" % chat_frame(delta).encode() for delta in thoughts)
    first, rest = data[: data.index(b"\n\n") + 2], data[data.index(b"\n\n") + 2 :]
    again = b'"delta": {"role": "assistant", "reasoning_content": null, "reasoning": "", '
    return first + thought + rest.replace(b'"delta": {"', again + b'"')


def chat_padded(texts: list[str], arguments: list[str]) -> bytes:
    """As OpenAI writes it: padding hides the length of the text. Some padding here is empty."""
    pads = ["Ab3", "", "x9", "zzzzzzzz", "\u00e9", 'a"b', "a\\", "n\n", 'p","choices":[]', "q7", "q8", "q9"]
    out: list[bytes] = []
    for number, event in enumerate(chat(texts, arguments).split(b"\n\n")):
        padding = json.dumps(pads[number * number % len(pads)]).encode()
        out.append(event[:-1] + b',"usage":null,"obfuscation":%s}' % padding if event[-1:] == b"}" else event)
    return b"\n\n".join(out)


def anthropic(texts: list[str], arguments: list[str]) -> bytes:
    def delta(index: int, **fields: str) -> object:
        return {"type": "content_block_delta", "index": index, "delta": fields}

    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
    call = {"type": "tool_use", "id": "toolu_1", "name": "write", "input": {}}
    stop = {"stop_reason": "tool_use", "stop_sequence": None}
    events: list[object] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *(delta(0, type="text_delta", text=text) for text in texts),
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        *(delta(1, type="input_json_delta", partial_json=piece) for piece in arguments),
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": stop, "usage": usage},
        {"type": "message_stop"},
    ]
    frames = [(event["type"], json.dumps(event, ensure_ascii=False)) for event in events]  # type: ignore[index]
    return b"".join(f"event: {name}\ndata: {data}\n\n".encode() for name, data in frames)


def responses(texts: list[str], arguments: list[str]) -> bytes:
    """As OpenAI writes it: every event has a sequence number and padding. One later number is missing."""
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "output": []}
    whole = {"type": "output_text", "annotations": [], "logprobs": [], "text": "".join(texts)}
    message = {"id": "msg_1", "type": "message", "role": "assistant"}
    call = {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "write"}
    said = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    asked = {"item_id": "fc_1", "output_index": 1}
    made = call | {"arguments": "".join(arguments), "status": "completed"}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    done = message | {"status": "completed", "content": [whole]}
    events: list[tuple[str, Json]] = [
        ("created", {"response": response | {"status": "in_progress"}}),
        (
            "output_item.added",
            {"output_index": 0, "item": message | {"status": "in_progress", "content": []}},
        ),
        ("content_part.added", said | {"part": whole | {"text": ""}}),
        *(("output_text.delta", said | {"delta": text, "logprobs": []}) for text in texts),
        ("output_text.done", said | {"text": "".join(texts), "logprobs": []}),
        ("content_part.done", said | {"part": whole}),
        ("output_item.done", {"output_index": 0, "item": done}),
        (
            "output_item.added",
            {"output_index": 1, "item": call | {"arguments": "", "status": "in_progress"}},
        ),
        *(("function_call_arguments.delta", asked | {"delta": piece}) for piece in arguments),
        ("function_call_arguments.done", asked | {"arguments": "".join(arguments)}),
        ("output_item.done", {"output_index": 1, "item": made}),
        (
            "completed",
            {"response": response | {"status": "completed", "output": [done, made], "usage": usage}},
        ),
    ]
    frames: list[str] = []
    for number, (name, event) in enumerate(events):
        counted = {"type": f"response.{name}", "sequence_number": number + (number > 12)}
        padding = {"obfuscation": "Ab3x9zzz"[: number % 9]} if name.endswith("delta") else {}
        data = json.dumps(counted | event | padding, separators=(",", ":"))
        frames.append(f"event: response.{name}\ndata: {data}\n\n")
    return "".join(frames).encode()


STREAMS: list[tuple[str, Callable[[list[str], list[str]], bytes]]] = [
    ("openai-chat", chat),
    ("openai-chat", chat_with_repeated_fields),
    ("openai-chat", chat_padded),
    ("anthropic", anthropic),
    ("openai-responses", responses),
]
WRITE = {
    "name": "write",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["path", "text"],
    },
}


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
@pytest.mark.parametrize("mode", ["live", "whole"])
def test_every_sample_is_the_same_for_every_split(upstream: str, client: str, mode: str) -> None:
    for kind, sample in SAMPLES[upstream].items():
        apart = run(exchange(upstream, client, TOOLS, mode=mode), read_per_event(sample.stream))
        for size in SIZES:
            together = run(exchange(upstream, client, TOOLS, mode=mode), sliced(sample.stream, size))
            assert together == apart, (kind, size)


def listener_view(upstream: str, client: str, chunks: list[bytes]) -> tuple[list[Event], object, object]:
    """The events for a listener with adjacent deltas joined, the receipts, and the usage."""
    it, events = exchange(upstream, client, TOOLS), list[Event]()
    it.tap = events.extend
    run(it, chunks)
    joined = list[Event]()
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, TextDelta | ArgumentsDelta) and type(last) is type(event):
            assert isinstance(last, TextDelta | ArgumentsDelta)
            if last.block == event.block:
                joined[-1] = type(event)(event.block, last.text + event.text)
                continue
        joined.append(event)
    return joined, it.receipts, it.usage


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("upstream", PROTOCOLS)
def test_a_listener_gets_the_same_for_every_split(upstream: str, client: str) -> None:
    for kind, sample in SAMPLES[upstream].items():
        apart = listener_view(upstream, client, read_per_event(sample.stream))
        for size in SIZES:
            assert listener_view(upstream, client, sliced(sample.stream, size)) == apart, (kind, size)


STARTED = chat_frame({"role": "assistant", "content": ""})


@pytest.mark.parametrize(
    "then",
    [
        chat_frame({"content": "Hi"}, usage={"prompt_tokens": 3, "completion_tokens": 1}),
        json.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
        json.dumps({"error": {"message": "no more"}}),
        "{broken",
    ],
)
def test_a_start_and_the_next_frame_are_the_same_together_and_apart(then: str) -> None:
    data = b"".join(b"data: %s\n\n" % frame.encode() for frame in (STARTED, then))
    for client in PROTOCOLS:
        apart = run(exchange("openai-chat", client), read_per_event(data))
        assert run(exchange("openai-chat", client), [data]) == apart, client


LONG = [
    *("word " * 8000, 'say "é" ' * 5000, "a line\n" * 4000, "\0" * 5000, "x"),
    *("1 < 2 " * 6000, "\\" * 9000, "end"),
]


@pytest.mark.parametrize("client", ["openai-chat", "anthropic"])
@pytest.mark.parametrize(("upstream", "stream"), STREAMS)
def test_long_events_are_the_same_for_every_split(
    upstream: str, stream: Callable[[list[str], list[str]], bytes], client: str
) -> None:
    texts = [*LONG, *LONG[:2] * 3, *["short "] * 9, *LONG[:3]]
    arguments = json.dumps({"path": "a", "text": "".join(LONG)})
    data = stream(texts, [arguments[at : at + 30_000] for at in range(0, len(arguments), 30_000)])
    apart = run(exchange(upstream, client, [WRITE]), read_per_event(data))
    for size in (1 << 20, 1 << 16, 50_000, 4096):
        assert run(exchange(upstream, client, [WRITE]), sliced(data, size)) == apart, size


@pytest.mark.parametrize("client", PROTOCOLS)
@pytest.mark.parametrize("case", corpus.cases(), ids=lambda case: case["id"])
def test_every_broken_stream_is_the_same_for_every_split(case: Json, client: str) -> None:
    data = b"".join(corpus.upstream_chunks(case))
    upstream, tools = case["upstream_protocol"], case.get("request_tools") or []
    apart = run(exchange(upstream, client, tools), read_per_event(data))
    assert run(exchange(upstream, client, tools), [data]) == apart


NASTY = st.text(st.sampled_from(list('ab"\\/\n\t<>[]`{}:,u0é\u2028\u0000😀')), min_size=1, max_size=6)
WORDS = st.lists(st.one_of(NASTY, st.sampled_from(["word ", "x = 1", "<", "\n", "```", "\\"])), max_size=30)


@given(st.sampled_from(STREAMS), st.sampled_from(sorted(PROTOCOLS)), WORDS, st.data())
def test_any_text_is_the_same_for_every_split(
    answer: tuple[str, Callable[[list[str], list[str]], bytes]],
    client: str,
    texts: list[str],
    data: st.DataObject,
) -> None:
    upstream, streamed = answer
    number = data.draw(st.sampled_from([1, "1"]))
    arguments = json.dumps({"path": "a", "text": "".join(data.draw(WORDS)), "n": number})
    size = data.draw(st.integers(1, 12))
    stream = streamed(texts, [arguments[at : at + size] for at in range(0, len(arguments), size)])
    apart = run(exchange(upstream, client, [WRITE]), read_per_event(stream))
    for cut in SIZES:
        assert run(exchange(upstream, client, [WRITE]), sliced(stream, cut)) == apart


def test_a_responses_stream_keeps_its_events_in_any_chunking() -> None:
    stream = responses(["one ", "two ", "three "] * 9, ['{"path":"a",', '"text":"b"}'])
    apart = run(exchange("openai-responses", "openai-responses", [WRITE]), read_per_event(stream))
    assert run(exchange("openai-responses", "openai-responses", [WRITE]), [stream]) == apart
    events = apart.split(b"\n\n")
    got, sent = edited_streams.split(apart), edited_streams.split(stream)
    assert got[:13] == sent[:13]
    for number, event in enumerate(events[:-1]):
        assert b'"sequence_number":%d,' % number in event
