"""The public interface of `Exchange`: bytes in, bytes out, and its properties in between."""

import json
from typing import Any

import pytest
from support import oracle
from support.exchanges import exchange, run, sliced
from support.sample_streams import ERRORS, SAMPLES, TOOLS
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman import DragomanError, Options, Tool, Translation, translate
from dragoman.conform import laws, neutral
from dragoman.model.events import Failed, FailureKind, Stop
from dragoman.protocols.common.tool_names import ToolNames
from dragoman.protocols.registry import PROTOCOLS

ALL = list(PROTOCOLS)
PAIRS = [pytest.param(a, b, id=f"{a}-to-{b}") for a in ALL for b in ALL]


def stream(protocol: str, kind: str) -> bytes:
    return SAMPLES[protocol][kind].stream


def understood(client: str, got: bytes, *, streamed: bool = True) -> Any:
    assert laws.check(client, got, stream=streamed) == []
    return neutral.reduce(client, got, stream=streamed)


# From the first byte to the last.


def test_an_exchange_has_not_started_before_its_first_event() -> None:
    it = exchange(CHAT, ANTHROPIC)
    assert (it.started, it.meaningful, it.over, it.failure) == (False, False, False, None)
    assert it.feed(b": PROCESSING\n\n") == b""
    assert (it.started, it.meaningful) == (False, False)


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_started_and_over_change_with_the_answer(upstream: str, client: str) -> None:
    it = exchange(upstream, client, TOOLS)
    seen: list[tuple[bool, bool]] = []
    got = b""
    for chunk in sliced(stream(upstream, "text"), 1):
        got += it.feed(chunk)
        assert it.started == bool(got)
        seen.append((it.started, it.over))
    got += it.close()
    assert it.over
    assert it.meaningful
    assert it.failure is None
    assert (True, False) in seen
    assert seen == sorted(seen)
    assert understood(client, got)["text"] == "Hello! How can I help you today?"


@pytest.mark.parametrize("client", ALL)
def test_bytes_after_the_end_are_ignored(client: str) -> None:
    it = exchange(CHAT, client)
    got = run(it, [stream(CHAT, "text")])
    assert understood(client, got)["stop"] == "end_turn"
    assert it.feed(stream(CHAT, "text")) == it.feed(b"garbage") == it.close() == it.close("gone") == b""
    assert it.fail(Failed(FailureKind.SERVER, "late")) == b""
    assert it.failure is None


def test_the_end_is_known_before_the_socket_closes() -> None:
    """Quirk 8: some servers keep the socket open after `[DONE]`."""
    for upstream in (ANTHROPIC, CHAT, RESPONSES):
        it = exchange(upstream, GEMINI)
        it.feed(stream(upstream, "text"))
        assert it.over


def test_the_tap_gets_the_events_of_the_client() -> None:
    seen: list[Any] = []
    it = exchange(CHAT, ANTHROPIC, TOOLS)
    it.tap = seen.extend
    run(it, [stream(CHAT, "text_tool")])
    assert [type(event).__name__ for event in seen if "Delta" not in type(event).__name__] == [
        "Start",
        "BlockStart",
        "BlockEnd",
        "BlockStart",
        "UsageSeen",
        "BlockEnd",
        "End",
    ]
    assert seen[-1].stop is Stop.TOOL


def test_translate_gives_the_same_as_an_exchange() -> None:
    body = stream(CHAT, "text_tool")
    tools = [Tool(name=tool["name"], parameters=tool["parameters"]) for tool in TOOLS]
    options = Options(id="x1", created=1_700_000_000, model="asked-for")
    got = b"".join(translate(sliced(body, 10), CHAT, ANTHROPIC, tools=tools, options=options))
    assert got == run(exchange(CHAT, ANTHROPIC, TOOLS), [body])


def test_translate_reports_a_cut_stream() -> None:
    got = b"".join(translate([stream(CHAT, "text")[:400]], CHAT, ANTHROPIC))
    assert understood(ANTHROPIC, got)["stop"] == "error"


def test_the_error_names_an_unknown_protocol() -> None:
    with pytest.raises(DragomanError, match=r"unknown protocol 'smtp'\. Use one of anthropic, "):
        Translation("smtp", CHAT)


# Usage and receipts.


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_usage_is_known_for_every_client(upstream: str, client: str) -> None:
    for asked in (True, False):
        it = exchange(upstream, client, include_usage=asked)
        run(it, [stream(upstream, "usage")])
        assert (it.usage.prompt, it.usage.output, it.usage.reasoning) == (2200, 180, 120)
        assert it.usage.cache_read == 1536


def test_a_chat_client_gets_usage_only_when_it_asked() -> None:
    for upstream in ALL:
        got = run(exchange(upstream, CHAT, include_usage=False), [stream(upstream, "usage")])
        assert understood(CHAT, got)["usage"] == {}
        assert b'"usage":{' not in got.replace(b" ", b"")


@pytest.mark.parametrize("client", ALL)
def test_every_call_has_a_receipt(client: str) -> None:
    it = exchange(CHAT, client, TOOLS)
    run(it, [stream(CHAT, "parallel")])
    assert [(receipt.name, receipt.complete) for receipt in it.receipts] == [
        ("get_weather", True),
        ("read_file", True),
        ("get_weather", True),
    ]
    assert all(json.loads(receipt.sent) == json.loads(receipt.received) for receipt in it.receipts)
    assert all(receipt.upstream_id and not receipt.fixes and not receipt.problems for receipt in it.receipts)


def test_a_cut_call_is_on_its_receipt() -> None:
    it = exchange(CHAT, ANTHROPIC, TOOLS)
    run(it, [stream(CHAT, "max_tokens_tool")])
    assert [receipt.complete for receipt in it.receipts] == [True, False]


def test_tool_names_can_be_given_to_the_exchange() -> None:
    tools = [Tool(name="get weather!", parameters={"type": "object"})]
    names = ToolNames(tools, PROTOCOLS[CHAT].names)
    body = stream(CHAT, "tool").replace(b'"get_weather"', json.dumps(names.out("get weather!")).encode())
    it = Translation(CHAT, GEMINI, tools=names, options=Options(id="x1", model="m"))
    assert understood(GEMINI, run(it, [body]))["tool_calls"][0]["name"] == "get weather!"


# Stop sequences.


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_stop_sequences_are_emulated(upstream: str, client: str, asked: bool) -> None:
    for size in (1, 10_000):
        it = exchange(upstream, client, stream=asked, stop=("I help", "never"))
        said = understood(client, run(it, sliced(stream(upstream, "text"), size)), streamed=asked)
        assert said["text"] == "Hello! How can "
        assert said["stop"] == ("stop_sequence" if client == ANTHROPIC else "end_turn")
        assert it.over


@pytest.mark.parametrize("client", ALL)
def test_the_first_stop_sequence_wins_and_the_rest_is_dropped(client: str) -> None:
    it = exchange(CHAT, client, TOOLS, stop=("look", "me"))
    said = understood(client, run(it, [stream(CHAT, "text_tool")]))
    assert (said["text"], said["tool_calls"]) == ("Let ", [])


@pytest.mark.parametrize("client", ALL)
def test_an_incomplete_stop_sequence_is_text(client: str) -> None:
    it = exchange(CHAT, client, stop=("today?!",))
    assert understood(client, run(it, [stream(CHAT, "text")]))["text"] == "Hello! How can I help you today?"


# Streams and bodies.


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_a_body_can_be_streamed_and_a_stream_collected(upstream: str, client: str) -> None:
    sample = SAMPLES[upstream]["text_tool"]
    assert sample.whole is not None
    for body in (sample.stream, sample.whole):
        for asked in (True, False):
            got = run(exchange(upstream, client, TOOLS, stream=asked), sliced(body, 9))
            said = understood(client, got, streamed=asked)
            assert (said["text"], said["stop"]) == ("Let me look.", "tool_use")
            assert [call["name"] for call in said["tool_calls"]] == ["get_weather"]


@pytest.mark.parametrize("client", ALL)
def test_a_client_that_wants_one_body_gets_it_in_one_piece(client: str) -> None:
    for upstream in ALL:
        it = exchange(upstream, client, stream=False)
        given = [it.feed(chunk) for chunk in sliced(stream(upstream, "text"), 20)] + [it.close()]
        assert len([piece for piece in given if piece]) == 1


@pytest.mark.parametrize("client", ALL)
def test_generated_ids_come_from_the_seed(client: str) -> None:
    """If the upstream sends no id, model or time, the client still gets them."""
    body = b'{"choices":[{"message":{"content":"hi"}}]}'
    one, two = (run(exchange(CHAT, client, stream=False, id=seed), [body]) for seed in ("s1", "s2"))
    assert b"s1" in one
    assert one == two.replace(b"s2", b"s1")
    assert understood(client, one, streamed=False)["model"] == "asked-for"


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_an_answers_id_stays_in_its_protocol(upstream: str, client: str) -> None:
    id = neutral.reduce(upstream, stream(upstream, "text"), stream=True)["id"]
    assert id
    got = run(exchange(upstream, client), [stream(upstream, "text")])
    assert (id.encode() in got) == (upstream == client)


# Errors, in both forms.


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_an_error_status_becomes_the_clients_error_body(upstream: str, client: str) -> None:
    it = exchange(upstream, client)
    body = it.refuse(ERRORS[upstream].status, ERRORS[upstream].body)
    assert (it.over, it.started) == (True, False)
    assert it.failure is not None
    assert it.failure.status == ERRORS[upstream].status
    assert body == it.error_body()
    assert oracle.raises_error(client, body, stream=False, status=it.failure.status)


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (502, b"<html><h1>Bad  Gateway</h1></html>", "<html><h1>Bad Gateway</h1></html>"),
        (503, b"", "the upstream answered 503"),
        (500, b'{"error":"boom"}', "boom"),
        (400, b'[{"error":{"code":400,"message":"wrapped","status":"INVALID_ARGUMENT"}}]', "wrapped"),
        (422, b'{"detail":"field required"}', "field required"),
        (429, b'{"object":"error","message":"slow down","type":"rate_limit","code":"3280"}', "slow down"),
        (500, b"\xff\xfe", "\ufffd\ufffd"),
    ],
)
def test_any_error_page_becomes_an_error(client: str, status: int, body: bytes, message: str) -> None:
    it = exchange(CHAT, client)
    got = it.refuse(status, body)
    assert laws.check(client, got, stream=False) == []
    assert neutral.reduce(client, got, stream=False)["error"]["message"] == message
    assert it.failure is not None
    assert it.failure.status == status


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_close_with_a_reason_is_never_a_clean_end(upstream: str, client: str, asked: bool) -> None:
    body = stream(upstream, "text_tool")
    for cut in (0, len(body) // 2):
        it = exchange(upstream, client, TOOLS, stream=asked)
        got = it.feed(body[:cut]) + it.close("the connection was reset")
        assert it.failure is not None
        assert it.failure.message == "the connection was reset"
        assert it.failure.kind is FailureKind.UPSTREAM
        assert understood(client, got, streamed=asked)["error"]["message"] == "the connection was reset"


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize("asked", [True, False], ids=["stream", "whole"])
def test_fail_ends_the_answer_with_an_error_in_the_clients_protocol(client: str, asked: bool) -> None:
    it = exchange(CHAT, client, stream=asked)
    got = it.feed(stream(CHAT, "text")[:400]) + it.fail(Failed(FailureKind.TIMEOUT, "too slow", 504))
    assert understood(client, got, streamed=asked)["error"]["message"] == "too slow"
    assert it.over
    assert it.failure is not None
    assert it.failure.status == 504


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_events_before_an_unreadable_frame_are_delivered(upstream: str, client: str) -> None:
    """For every chunking: an error does not drop earlier events of the same chunk."""
    body = stream(upstream, "text")
    half = body.replace(b"\r\n", b"\n").split(b"\n\n")
    spoiled = b"\n\n".join(half[:-2]) + b'\n\ndata: {"type": [], "choices": {}, "candidates": 5}\n\n'
    heard = [
        understood(client, run(exchange(upstream, client), sliced(spoiled, size)))
        for size in (1, 10, len(spoiled))
    ]
    assert heard[1:] == heard[:1] * 2
    assert heard[0]["stop"] == "error"
    assert heard[0]["text"].startswith("Hello! How can I")


@pytest.mark.parametrize(("upstream", "client"), PAIRS)
def test_bytes_that_are_not_utf8_are_an_error(upstream: str, client: str) -> None:
    body = stream(upstream, "text").replace(b"How can I", b"How \xff\xfe can I")
    it = exchange(upstream, client)
    assert understood(client, run(it, [body]))["stop"] == "error"
    assert it.failure is not None
    assert "UTF-8" in it.failure.message


@pytest.mark.parametrize("client", ALL)
@pytest.mark.parametrize("mode", ["live", "whole"])
def test_a_call_that_was_cut_with_its_answer_has_a_receipt(client: str, mode: Any) -> None:
    frames = stream(CHAT, "tool").split(b"\n\n")
    it = exchange(CHAT, client, mode=mode)
    it.feed(b"\n\n".join(frames[:5]) + b"\n\n")
    it.close("the connection broke")
    (receipt,) = it.receipts
    assert (receipt.name, receipt.complete) == ("get_weather", False)
    assert receipt.received == '{"city": "Paris", "unit": "cel'
