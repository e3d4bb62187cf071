"""Laws 14, 15, 17 and 50: the arguments of a call arrive as they were written, whole or visibly cut."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import fuzzing
from support.answers import TOOL, TOOLS, GeneratedAnswer, GeneratedBlock, arguments, pieces, stream
from support.exchanges import exchange, run
from support.sample_streams import CUSTOM_TOOL
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman.conform import laws, neutral
from dragoman.model.events import ArgumentsDelta, BlockEnd, BlockStart, End, Start, Stop, Usage
from dragoman.model.messages import ToolCall
from dragoman.protocols.base import AnswerContext
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

steady = fuzzing.steady(60)
ALL = list(PROTOCOLS)
PAIRS = [pytest.param(a, b, id=f"{a}-to-{b}") for a in ALL for b in CLIENTS]
clients = st.sampled_from(list(CLIENTS))
MINTED = AnswerContext(id="u1", created=1, model="m")


def understood(upstream: str, client: str, body: bytes, **options: Any) -> Any:
    offered = [*TOOLS, {"name": CUSTOM_TOOL, "kind": "custom"}]
    stream = options.pop("stream", True)
    got = run(exchange(upstream, client, offered, stream=stream, **options), [body])
    assert laws.check(client, got, stream=stream) == []
    return neutral.reduce(client, got, stream=stream)


def call_stream(upstream: str, *fragments: str, stop: Stop = Stop.TOOL, **part: Any) -> bytes:
    call = {"id": "call_1", "name": TOOL, **part}
    events = [
        Start(model="m"),
        BlockStart(0, ToolCall(**call)),
        *(ArgumentsDelta(0, fragment) for fragment in fragments),
        BlockEnd(0),
        End(stop),
    ]
    return PROTOCOLS[upstream].stream_encoder(MINTED).encode(events)


@pytest.mark.parametrize("upstream", ALL)
@steady
@given(text=arguments(1), client=clients, data=st.data(), mode=st.sampled_from(["live", "whole"]))
def test_14_valid_arguments_arrive_as_they_were_written(
    upstream: str, text: str, client: str, data: Any, mode: str
) -> None:
    said = understood(upstream, client, call_stream(upstream, *data.draw(pieces(text))), mode=mode)
    (call,) = said["tool_calls"]
    assert call["arguments"] == json.loads(text)
    if GEMINI not in (upstream, client):  # Gemini sends arguments as an object, which may be re-encoded
        assert call["raw"] == text


EXACT = [
    '{"key": 123456789012345678901234567890}',
    '{"key": 1, "nested": {"n": 1.10, "e": 1E5, "z": -0.0}}',
    '{"key":1,"note":"\\u00e9\\u2028\\ud83d\\ude00\\/"}',
    '{"key": 1, "note": "a", "note": "b"}',
    '{ "key" : 1 , "note" : "x" }',
    '{"key": 1, "nested": {"z": 1, "a": 2}}',
]


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("text", EXACT)
def test_14_digits_escapes_and_doubled_keys_stay(upstream: str, client: str, text: str) -> None:
    (call,) = understood(upstream, client, call_stream(upstream, text))["tool_calls"]
    assert call["arguments"] == json.loads(text)
    if client != GEMINI:
        assert call["raw"] == text


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("fragments", [(), ("{}",), ("{", "}")], ids=["none", "whole", "pieces"])
def test_15_no_arguments_are_an_empty_object(
    upstream: str, client: str, stream: bool, fragments: tuple[str, ...]
) -> None:
    body = call_stream(upstream, *fragments, name="list_sessions")
    (call,) = understood(upstream, client, body, stream=stream)["tool_calls"]
    assert call["arguments"] == {}
    assert call["raw"] in ("", "{}")


@pytest.mark.parametrize("upstream", [p for p in ALL if p != GEMINI])
@steady
@given(text=arguments(1), client=clients, data=st.data(), mode=st.sampled_from(["live", "whole"]))
def test_17_a_call_cut_by_the_token_limit_is_never_complete(
    upstream: str, text: str, client: str, data: Any, mode: str
) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    body = call_stream(upstream, *data.draw(pieces(text[:at])), stop=Stop.MAX_TOKENS)
    said = understood(upstream, client, body, mode=mode)
    assert said["stop"] == "max_tokens"
    for call in said["tool_calls"]:
        assert text.startswith(call["raw"])
        assert call["raw"] != text
    whole = understood(upstream, client, body, mode=mode, stream=False)
    # A response of the upstream itself keeps its cut call, whose status says that it is incomplete.
    kept = said["tool_calls"] if upstream == client == RESPONSES else []
    assert (whole["stop"], whole["tool_calls"]) == ("max_tokens", kept)


@pytest.mark.parametrize("upstream", [p for p in ALL if p != GEMINI])
@pytest.mark.parametrize("client", CLIENTS)
def test_17_a_call_cut_without_a_stop_reason_is_an_error(upstream: str, client: str) -> None:
    for text in ('{"key": 1, "no', '{"key"', '{"key": tru', "nonsense"):
        it = exchange(upstream, client, TOOLS)
        got = run(it, [call_stream(upstream, text)])
        assert laws.check(client, got, stream=True) == []
        assert neutral.reduce(client, got, stream=True)["stop"] == "error"
        assert it.failure is not None
        assert it.failure.code == "incomplete_tool_call"


inputs = st.text(st.sampled_from("*+-\n\t \\\"'{}:,é\u2028😀"), min_size=1, max_size=30)


@pytest.mark.parametrize("client", [CHAT, RESPONSES])
@pytest.mark.parametrize("upstream", ALL)
@steady
@given(text=inputs, data=st.data())
def test_50_a_freeform_call_keeps_its_kind_and_every_byte(
    upstream: str, client: str, text: str, data: Any
) -> None:
    """An upstream without freeform tools is offered a function with one member."""
    if PROTOCOLS[upstream].names.custom:
        body = call_stream(upstream, *data.draw(pieces(text)), name=CUSTOM_TOOL, kind="custom")
    else:
        wrapped = json.dumps({"input": text}, ensure_ascii=data.draw(st.booleans()))
        body = call_stream(upstream, *data.draw(pieces(wrapped)), name=CUSTOM_TOOL)
    for asked in (True, False):
        (call,) = understood(upstream, client, body, stream=asked)["tool_calls"]
        assert (call["kind"], call["name"], call["raw"]) == ("custom", CUSTOM_TOOL, text)


@pytest.mark.parametrize("client", [CHAT, RESPONSES])
@pytest.mark.parametrize(
    "said",
    [
        '{"INPUT": "a: 1"}',
        f'{{"name": "{CUSTOM_TOOL}", "arguments": {{"input": "a: 1"}}}}',
        '```json\n{"input": "a: 1"}\n```',
        "{'input': 'a: 1',}",
    ],
    ids=["miscased", "wrapped", "fenced", "python"],
)
def test_50_a_freeform_call_that_was_a_function_is_mended_like_one(client: str, said: str) -> None:
    body = call_stream(ANTHROPIC, said, name=CUSTOM_TOOL)
    (call,) = understood(ANTHROPIC, client, body)["tool_calls"]
    assert (call["kind"], call["raw"]) == ("custom", "a: 1")


@pytest.mark.parametrize("client", [p for p in CLIENTS if not CLIENTS[p].names.custom])
@steady
@given(text=inputs, data=st.data())
def test_50_without_freeform_tools_the_call_is_a_function(client: str, text: str, data: Any) -> None:
    body = call_stream(CHAT, *data.draw(pieces(text)), name=CUSTOM_TOOL, kind="custom")
    (call,) = understood(CHAT, client, body)["tool_calls"]
    assert call["arguments"] == {"input": text}


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_parallel_calls_keep_their_order_and_ids(upstream: str, client: str) -> None:
    blocks = tuple(GeneratedBlock("call", (f'{{"key": {n}}}',)) for n in range(5))
    answer = GeneratedAnswer(blocks, Usage(input=1, output=1), Stop.TOOL)
    calls = understood(upstream, client, stream(answer, upstream))["tool_calls"]
    assert [call["arguments"]["key"] for call in calls] == list(range(5))
    assert [call["id"] for call in calls] == [f"call_{n}" for n in range(5)]
