"""The official SDKs read valid answers as our judges do, and reject the invalid ones listed here."""

import re

import pytest
from support import oracle
from support.edited_streams import Events, Spoil, first, spoiled
from support.sample_streams import ERRORS, SAMPLES
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.conform import neutral

ALL = [(protocol, kind) for protocol in PROTOCOLS for kind in SAMPLES[protocol]]
# The Chat helper cannot take the fragments of a freeform call.
HELPED = [pair for pair in ALL if pair != (CHAT, "custom_tool")]


@pytest.mark.parametrize(("protocol", "kind"), HELPED)
@pytest.mark.parametrize("piece", [None, 1, 7])
def test_the_sdk_and_the_judge_read_a_stream_the_same(protocol: str, kind: str, piece: int | None) -> None:
    sample = SAMPLES[protocol][kind]
    got = oracle.parse(protocol, sample.stream, stream=True, piece=piece)
    assert got == neutral.reduce(protocol, sample.stream, stream=True)


@pytest.mark.parametrize("kind", SAMPLES[CHAT])
@pytest.mark.parametrize("piece", [None, 5])
def test_the_plain_chat_iterator_and_the_judge_read_the_same(kind: str, piece: int | None) -> None:
    sample = SAMPLES[CHAT][kind]
    got = oracle.parse(CHAT, sample.stream, stream=True, piece=piece, helper=False)
    assert got == neutral.reduce(CHAT, sample.stream, stream=True)


@pytest.mark.parametrize(("protocol", "kind"), [(p, k) for p, k in ALL if SAMPLES[p][k].whole])
def test_the_sdk_and_the_judge_read_a_whole_body_the_same(protocol: str, kind: str) -> None:
    whole = SAMPLES[protocol][kind].whole
    assert whole is not None
    got = oracle.parse(protocol, whole, stream=False)
    assert got == neutral.reduce(protocol, whole, stream=False)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [True, False])
def test_an_http_error_is_the_sdks_own_error(protocol: str, stream: bool) -> None:
    error = ERRORS[protocol]
    got = oracle.parse(protocol, error.body, stream=stream, status=error.status)
    assert got == error.expect


REFUSED: dict[str, tuple[str, str, Spoil]] = {
    "anthropic: no message_start": (ANTHROPIC, "text", lambda e: e.pop(0)),
    "anthropic: no usage": (ANTHROPIC, "text", lambda e: first(e, "message_delta").pop("usage")),
    "anthropic: index gap": (
        ANTHROPIC,
        "text",
        lambda e: [x.update(index=1) for x in e if "index" in x],
    ),
    "anthropic: broken arguments": (
        ANTHROPIC,
        "tool",
        lambda e: e[4]["delta"].update(partial_json="{nope"),
    ),
    "chat: tool index 1": (
        CHAT,
        "tool",
        lambda e: [
            x["choices"][0]["delta"]["tool_calls"][0].update(index=1)
            for x in e[:-2]
            if x["choices"][0]["delta"].get("tool_calls")
        ],
    ),
    "chat: freeform call": (CHAT, "custom_tool", lambda _: None),
    "chat: no delta": (CHAT, "text", lambda e: e[1]["choices"][0].pop("delta")),
    "responses: no created": (RESPONSES, "text", lambda e: e.pop(0)),
    "responses: no part": (
        RESPONSES,
        "text",
        lambda e: e.remove(first(e, "response.content_part.added")),
    ),
    "responses: identity changed": (
        RESPONSES,
        "tool",
        lambda e: first(e, "response.output_item.done")["item"].update(call_id="x"),
    ),
    "gemini: args as text": (
        GEMINI,
        "tool",
        lambda e: e[0]["candidates"][0]["content"]["parts"][0]["functionCall"].update(args="{}"),
    ),
    "gemini: [DONE]": (GEMINI, "text", lambda e: e.append("[DONE]")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_sdk_crash_counts_as_a_rejection(name: str) -> None:
    protocol, kind, spoil = REFUSED[name]
    stream = spoiled(protocol, SAMPLES[protocol][kind].stream, spoil)
    with pytest.raises(oracle.SdkRejected):
        oracle.parse(protocol, stream, stream=True)


def test_anthropic_clients_miss_an_error_event_without_a_name() -> None:
    stream = SAMPLES[ANTHROPIC]["error"].stream.replace(b"event: error\n", b"")
    got = oracle.parse(ANTHROPIC, stream, stream=True)
    assert got["stop"] is None
    assert got["error"] is None


def test_a_repeated_name_is_doubled_by_the_chat_helper() -> None:
    def name_twice(events: Events) -> None:
        call = events[2]["choices"][0]["delta"]["tool_calls"][0]
        call["function"]["name"] = "get_weather"

    stream = spoiled(CHAT, SAMPLES[CHAT]["tool"].stream, name_twice)
    got = oracle.parse(CHAT, stream, stream=True)
    assert got["tool_calls"][0]["name"] == "get_weatherget_weather"


def test_a_nested_responses_error_is_raised_by_the_sdk() -> None:
    stream = spoiled(
        RESPONSES,
        SAMPLES[RESPONSES]["error_tool"].stream,
        lambda e: e[-1].update(error={"message": "boom"}),
    )
    got = oracle.parse(RESPONSES, stream, stream=True)
    assert got["error"] == {"message": "boom"}
    assert oracle.raises_error(RESPONSES, stream, stream=True)
    assert not oracle.raises_error(RESPONSES, SAMPLES[RESPONSES]["error_tool"].stream, stream=True)
    assert [call["name"] for call in got["tool_calls"]] == ["read_file", "get_weather"]


def test_the_sdk_reads_an_error_that_is_the_only_event() -> None:
    for protocol in PROTOCOLS:
        stream = spoiled(protocol, SAMPLES[protocol]["error"].stream, lambda e: e.__delitem__(slice(-1)))
        if protocol == RESPONSES:
            # A failed response needs its created event; a lone error has to be nested.
            stream = b'event: error\ndata: {"type":"error","error":{"message":"Overloaded"}}\n\n'
        got = oracle.parse(protocol, stream, stream=True)
        assert got["stop"] == "error"
        assert got["error"] is not None
        assert re.match("Overloaded", got["error"]["message"])
