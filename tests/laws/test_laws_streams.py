"""Laws 1-3, 6, 7, 18-25 and 30 of protocols.md: an answer is the same for every chunking and form."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import agree, edited_streams, fuzzing
from support.answers import TOOLS, GeneratedAnswer, GeneratedBlock, pieces, spoken, stream, whole
from support.exchanges import exchange, run
from support.mutations import chunked
from support.wires import CHAT

from dragoman.conform import laws, neutral
from dragoman.conform.shape import Neutral
from dragoman.model.events import Stop, Usage
from dragoman.protocols.common import sealed_reasoning
from dragoman.protocols.registry import CLIENTS, PROTOCOLS

steady = fuzzing.steady(60)
ALL = list(PROTOCOLS)
clients = st.sampled_from(list(CLIENTS))
TWO_THOUGHTS = GeneratedAnswer(
    (
        GeneratedBlock("thinking", ("X",), "c2VhbGVk0000"),
        GeneratedBlock("text", ("X",)),
        GeneratedBlock("thinking", ("X",), "c2VhbGVk0002"),
    ),
    Usage(input=0, cache_read=0, output=50, reasoning=0),
    Stop.END,
)


def client_bytes(
    upstream: str, client: str, chunks: list[bytes], *, stream: bool = True, **options: Any
) -> bytes:
    got = run(exchange(upstream, client, TOOLS, stream=stream, **options), chunks)
    assert laws.check(client, got, stream=stream) == []
    return got


def without_ids(said: Neutral, upstream: str) -> dict[str, Any]:
    calls = [{**call, "id": "", "raw": ""} for call in said["tool_calls"]]
    opaque = (
        [detail for slot in said["opaque"] for detail in details(slot)]
        if upstream == CHAT
        else said["opaque"]
    )
    return {**said, "tool_calls": calls, "id": None, "opaque": opaque}


def details(slot: str) -> list[Any]:
    """Chat's enveloped details: numbered entries in a stream, one list in a body."""
    seal = sealed_reasoning.from_slot(slot, "").seal
    return (
        [{**detail, "index": None} for detail in json.loads(seal.data)] if seal.protocol == CHAT else [slot]
    )


@pytest.mark.parametrize("upstream", ALL)
@steady
@given(data=st.data(), answer=spoken(), client=clients, mode=st.sampled_from(["live", "whole"]))
def test_1_any_split_gives_the_same_bytes(
    data: Any, upstream: str, client: str, answer: GeneratedAnswer, mode: str
) -> None:
    body = stream(answer, upstream)
    assert client_bytes(upstream, client, data.draw(chunked(body)), mode=mode) == client_bytes(
        upstream, client, [body], mode=mode
    )


@pytest.mark.parametrize("upstream", ALL)
@steady
@given(data=st.data(), answer=spoken(), client=clients)
def test_2_any_pieces_give_the_same_answer(
    data: Any, upstream: str, client: str, answer: GeneratedAnswer
) -> None:
    other = GeneratedAnswer(
        tuple(type(b)(b.kind, data.draw(pieces(b.text)), b.seal, b.cut) for b in answer.blocks),
        answer.usage,
        answer.stop,
    )
    one = neutral.reduce(client, client_bytes(upstream, client, [stream(answer, upstream)]), stream=True)
    two = neutral.reduce(client, client_bytes(upstream, client, [stream(other, upstream)]), stream=True)
    assert one == two


@pytest.mark.parametrize("upstream", ALL)
@steady
@example(answer=TWO_THOUGHTS, client="anthropic")
@given(answer=spoken(), client=clients)
def test_3_streamed_and_whole_say_the_same(upstream: str, client: str, answer: GeneratedAnswer) -> None:
    heard = [
        without_ids(
            neutral.reduce(client, client_bytes(upstream, client, [body], stream=asked), stream=asked),
            upstream,
        )
        for body in (stream(answer, upstream), whole(answer, upstream))
        for asked in (True, False)
    ]
    assert heard[1:] == heard[:1] * 3


@pytest.mark.parametrize("protocol", ALL)
@steady
@given(answer=spoken())
def test_6_the_same_protocol_says_the_same(protocol: str, answer: GeneratedAnswer) -> None:
    for asked, body in ((True, stream(answer, protocol)), (False, whole(answer, protocol))):
        got = client_bytes(protocol, protocol, [body], stream=asked)
        assert neutral.reduce(protocol, got, stream=asked) == neutral.reduce(protocol, body, stream=asked)


def joined(body: bytes) -> list[Any]:
    return edited_streams.joined(edited_streams.split(body))


@pytest.mark.parametrize("protocol", ALL)
@steady
@given(answer=spoken(), data=st.data())
def test_6_unknown_fields_pass_in_the_same_protocol(
    protocol: str, answer: GeneratedAnswer, data: Any
) -> None:
    events = edited_streams.split(stream(answer, protocol))
    added: dict[str, Any] = {}
    for number, event in enumerate(events):
        if isinstance(event, dict) and data.draw(st.booleans()):
            event[f"x_{number}"] = added[f"x_{number}"] = {"n": 10**30, "f": [1.5, None]}
    body = edited_streams.join(protocol, events)
    got = client_bytes(protocol, protocol, [body])
    read = [event for event in edited_streams.split(got) if isinstance(event, dict)]
    found = [(key, value) for event in read for key, value in event.items()]
    assert [(key, value) for key, value in found if key[:2] == "x_"] == list(added.items())
    if protocol == "anthropic":
        assert joined(got) == edited_streams.joined(events)


@pytest.mark.parametrize("upstream", ALL)
@steady
@given(answer=spoken("text thinking call"), client=st.sampled_from(ALL))
def test_7_a_round_trip_gives_the_same_answer(upstream: str, client: str, answer: GeneratedAnswer) -> None:
    body = stream(answer, upstream)
    there = client_bytes(upstream, client, [body])
    back = client_bytes(client, upstream, [there])
    want, got = (neutral.reduce(upstream, b, stream=True) for b in (body, back))
    if len([block for block in answer.blocks if block.kind == "thinking"]) > 1:
        # Chat has one field for all reasoning: Dragoman puts a blank line between two blocks.
        for one in (want, got):
            one["thinking"] = one["thinking"].replace("\n", "")
    assert agree.differences(want, got, client=upstream) == []
    assert agree.differences(got, want, client=upstream) == []
    assert [call["id"] for call in got["tool_calls"]] == [call["id"] for call in want["tool_calls"]]


@pytest.mark.parametrize("upstream", ALL)
@steady
@given(answer=spoken("text refusal call", stops=tuple(Stop)), client=clients, asked=st.booleans())
def test_18_to_23_any_stop_is_a_legal_answer(
    upstream: str, client: str, answer: GeneratedAnswer, asked: bool
) -> None:
    got = client_bytes(upstream, client, [stream(answer, upstream)], stream=asked)
    said = neutral.reduce(client, got, stream=asked)
    # OpenAI's protocols separate a refusal from the text.
    said_apart = answer.joined("text") + answer.joined("refusal")
    assert said["text"] + said["refusal"] in (answer.joined("text", "refusal"), said_apart)
    assert [call["arguments"] for call in said["tool_calls"]] == [json.loads(raw) for raw in answer.calls()]


@pytest.mark.parametrize("upstream", ALL)
@steady
@given(answer=spoken(), client=clients, asked=st.booleans())
def test_24_usage_is_unchanged(upstream: str, client: str, answer: GeneratedAnswer, asked: bool) -> None:
    it = exchange(upstream, client, TOOLS, stream=asked)
    usage = neutral.reduce(client, run(it, [stream(answer, upstream)]), stream=asked)["usage"]
    assert usage["input"] == answer.usage.prompt
    assert usage["output"] == answer.usage.output
    assert usage.get("cached_input", 0) == (answer.usage.cache_read or 0)
    assert usage.get("reasoning", 0) == (answer.usage.reasoning or 0)
    assert (it.usage.prompt, it.usage.output) == (answer.usage.prompt, answer.usage.output)


@pytest.mark.parametrize("upstream", ALL)
@steady
@given(answer=spoken())
def test_25_usage_only_for_a_chat_client_that_asked(upstream: str, answer: GeneratedAnswer) -> None:
    body = stream(answer, upstream)
    asked = edited_streams.split(client_bytes(upstream, CHAT, [body]))
    assert asked[-1] == "[DONE]"
    assert asked[-2]["usage"]["total_tokens"] == answer.usage.prompt + (answer.usage.output or 0)
    silent = edited_streams.split(client_bytes(upstream, CHAT, [body], include_usage=False))
    assert not any(event.get("usage") for event in silent[:-1])


@pytest.mark.parametrize("upstream", ALL)
@steady
@given(answer=spoken(), client=clients, asked=st.booleans())
def test_30_no_byte_order_mark_and_no_unicode_line_separator(
    upstream: str, client: str, answer: GeneratedAnswer, asked: bool
) -> None:
    got = client_bytes(upstream, client, [stream(answer, upstream)], stream=asked)
    assert not got.startswith(b"\xef\xbb\xbf")
    assert not any(separator in got.decode() for separator in "\u2028\u2029\u0085")
    assert not asked or all(line == b"" or b": " in line for line in got.split(b"\n"))
