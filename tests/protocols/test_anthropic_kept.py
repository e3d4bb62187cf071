"""Between two sides that speak Anthropic's protocol nothing is lost, member by member."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from support import edited_streams
from support.exchanges import exchange, run, sliced
from support.sample_streams import SAMPLES, TOOLS

from dragoman.conform import laws, neutral
from dragoman.model.events import TextDelta
from dragoman.protocols.registry import CLIENTS, PROTOCOLS
from dragoman.wire.frames import Frame

P = "anthropic"
# A call without arguments: the client gets `{}` in place of an empty fragment.
KINDS = [kind for kind in SAMPLES[P] if kind not in ("empty_args", "error_tool")]


def joined(stream: bytes) -> list[Any]:
    return edited_streams.joined(edited_streams.split(stream))


def kept(*events: Any, tools: Any = TOOLS, **options: Any) -> list[Any]:
    """The events that an Anthropic client gets."""
    out = run(exchange(P, P, tools, **options), anthropic(*events))
    assert laws.check(P, out, stream=True) == []
    return joined(out)


def body_of(*events: Any, tools: Any = TOOLS) -> Any:
    """The body that an Anthropic client gets if it did not ask for a stream."""
    out = run(exchange(P, P, tools, stream=False), anthropic(*events))
    assert laws.check(P, out, stream=False) == []
    return json.loads(out)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 50, 1 << 20])
def test_a_stream_is_equal_frame_by_frame(kind: str, size: int) -> None:
    data = SAMPLES[P][kind].stream
    assert joined(run(exchange(P, P, TOOLS), sliced(data, size))) == joined(data)


@pytest.mark.parametrize("kind", SAMPLES[P])
def test_a_body_is_equal(kind: str) -> None:
    body = SAMPLES[P][kind].whole
    if body is not None:
        assert json.loads(run(exchange(P, P, TOOLS, stream=False), [body])) == json.loads(body)


def anthropic(*events: Any) -> list[bytes]:
    return [b"event: %s\ndata: %s\n\n" % (str(e["type"]).encode(), msgspec.json.encode(e)) for e in events]


ASKED: dict[str, object] = {"type": "message", "role": "assistant", "content": [], "stop_sequence": None}
BEGIN: dict[str, Any] = {
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
    assert joined(run(exchange("anthropic", "anthropic", tools), frames)) == joined(b"".join(frames))


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


def opened(index: int, **block: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, kind: str | None, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def closed(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


CONTAINER = {"id": "container_011CPR5CNjB747bTd36fQLFk", "expires_at": "2026-05-23T21:13:31.749448Z"}
CALLER = {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "caller": CALLER}
CODE = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution"}
RESULT = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "url": "https://x",
            "title": "X",
            "encrypted_content": "e",
            "page_age": None,
        }
    ],
    "caller": {"type": "direct"},
}
SAID = [opened(0, type="text", text=""), piece(0, "text_delta", text="Hi"), closed(0)]


def over(reason: str = "end_turn", usage: Any = None, more: Any = None, **delta: Any) -> list[dict[str, Any]]:
    return [
        {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_sequence": None, **delta},
            "usage": usage or {"output_tokens": 9},
            **(more or {}),
        },
        {"type": "message_stop"},
    ]


def test_programmatic_tool_calls_keep_their_caller_and_the_container() -> None:
    """Without them Anthropic refuses the next request: "container_id is required …"."""
    said = [
        BEGIN,
        opened(0, **CODE, input={}),
        piece(0, "input_json_delta", partial_json='{"code": "print('),
        piece(0, "input_json_delta", partial_json='1)"}'),
        closed(0),
        opened(1, **CALL, input={}),
        piece(1, "input_json_delta", partial_json='{"city": "Paris"}'),
        closed(1),
        *over("tool_use", container=CONTAINER),
    ]
    assert kept(*said) == edited_streams.joined(said)
    body = body_of(*said)
    assert body["content"] == [
        {**CODE, "input": {"code": "print(1)"}}, {**CALL, "input": {"city": "Paris"}},
    ]  # fmt: skip
    assert body["container"] == CONTAINER


def test_an_input_in_the_start_of_a_call_comes_in_a_delta_and_the_rest_stays() -> None:
    said = [
        BEGIN,
        opened(0, **CALL, input={"city": "Paris"}),
        closed(0),
        *over("tool_use", container=CONTAINER),
    ]
    got = kept(*said)
    assert got[1] == opened(0, **CALL, input={})
    assert json.loads(got[2]["delta"]["partial_json"]) == {"city": "Paris"}
    assert got[3:] == said[2:]


def test_an_answer_that_is_complete_in_its_start_keeps_its_container() -> None:
    """The SDK takes the container of `message_delta`, which the upstream did not send."""
    whole = {**BEGIN["message"], "content": [{**CALL, "input": {}}], "stop_reason": "tool_use"}
    got = kept(
        {"type": "message_start", "message": {**whole, "container": CONTAINER}}, {"type": "message_stop"}
    )
    assert got[1]["content_block"]["caller"] == CALLER
    assert got[0]["message"]["container"] == got[-2]["delta"]["container"] == CONTAINER


@pytest.mark.parametrize("input", [{}, {"query": "x"}])
def test_blocks_that_only_anthropic_has_are_streamed(input: Any) -> None:
    call = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": input}
    asked = [] if input else [piece(0, "input_json_delta", partial_json='{"query":"x"}')]
    said = [
        BEGIN,
        opened(0, **call), *asked, closed(0),
        opened(1, **RESULT), closed(1),
        opened(2, type="compaction", content=None), piece(2, "compaction_delta", content="So far"), closed(2),
        opened(3, type="hologram", beam=[1]), piece(3, "hologram_delta", beam=2), closed(3),
        *over(),
    ]  # fmt: skip
    it = exchange(P, P, TOOLS)
    for event, frame in zip(said[:-2], anthropic(*said), strict=False):
        assert joined(it.feed(frame)) == [event], "each frame goes out at once"
    assert kept(*said) == said
    content = body_of(*said)["content"]
    assert content[:2] == [{**call, "input": {"query": "x"}}, RESULT]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("asked", [True, False])
def test_other_clients_get_nothing_of_them(client: str, asked: bool) -> None:
    search = [
        opened(0, **CODE, input={}),
        piece(0, "input_json_delta", partial_json='{"code": "SECRET"}'),
        closed(0),
    ]
    strange = [opened(1, type="hologram"), piece(1, "hologram_delta", beam="SECRET"), closed(1)]
    text = [{**event, "index": 2} for event in SAID]
    frames = anthropic(BEGIN, *search, *strange, *text, *over())
    out = run(exchange(P, client, TOOLS, stream=asked), frames)
    assert laws.check(client, out, stream=asked) == []
    assert neutral.reduce(client, out, stream=asked)["text"] == "Hi"
    assert (b"SECRET" in out) == (client == P)


def test_all_members_of_the_ending_arrive() -> None:
    usage = {
        "input_tokens": 10682,
        "cache_creation_input_tokens": None,
        "cache_read_input_tokens": 0,
        "output_tokens": 510,
        "output_tokens_details": {"thinking_tokens": 7, "other_tokens": 2},
        "server_tool_use": {"web_search_requests": 1},
        "cache_creation": {"ephemeral_5m_input_tokens": 0},
        "iterations": [{"type": "message", "input_tokens": 1}],
        "service_tier": "standard",
    }
    managed = {"context_management": {"applied_edits": [{"type": "clear_tool_uses_20250919"}]}}
    details = {"type": "refusal", "category": "cyber", "explanation": None}
    said = [BEGIN, *SAID, *over("refusal", usage, managed, container=CONTAINER, stop_details=details)]
    assert kept(*said) == said
    body = body_of(*said)
    assert body["usage"] == usage
    assert body["stop_details"] == details
    assert (body["container"], body["context_management"]) == (CONTAINER, managed["context_management"])
    again = json.loads(run(exchange(P, P, TOOLS, stream=False), [json.dumps(body).encode()]))
    assert again == body


def test_several_message_deltas_arrive_and_the_last_has_the_stop_reason() -> None:
    first = {
        "type": "message_delta",
        "delta": {"stop_reason": None, "stop_sequence": None, "container": CONTAINER},
        "usage": {"output_tokens": 3, "iterations": [1]},
    }
    said = [BEGIN, *SAID, first, *over()]
    assert kept(*said) == said
    last, stop = over()
    late = {**first, "usage": {"output_tokens": 12}}
    got = kept(BEGIN, *SAID, last, late, stop)
    assert [event["delta"] for event in got[-3:-1]] == [
        {"stop_reason": None, "stop_sequence": None},
        {"stop_reason": "end_turn", "stop_sequence": None, "container": CONTAINER},
    ]


def test_a_message_delta_inside_a_block_waits_for_the_end() -> None:
    early = {"type": "message_delta", "delta": {"container": CONTAINER}, "usage": {"output_tokens": 3}}
    got = kept(BEGIN, *SAID[:2], early, early, *SAID[2:], *over())
    assert got[-3]["delta"]["container"] == CONTAINER


@pytest.mark.parametrize(("reason", "given"), [("compaction", "compaction"), ("length", "max_tokens")])
def test_a_stop_reason_of_anthropic_keeps_its_name(reason: str, given: str) -> None:
    assert kept(BEGIN, *SAID, *over(reason))[-2]["delta"]["stop_reason"] == given
    assert body_of(BEGIN, *SAID, *over(reason))["stop_reason"] == given


@pytest.mark.parametrize("mode", ["live", "whole"])
def test_members_of_every_frame_arrive_in_order(mode: str) -> None:
    text = "citations_delta"
    cited = {"type": "char_location", "cited_text": "a", "document_index": 0, "extra": 1}
    said = [
        {**BEGIN, "trace": 1},
        {**opened(0, type="thinking", thinking="", signature="", budget=3), "trace": 2},
        {"type": "ping", "trace": 3},
        {**piece(0, "thinking_delta", thinking="hm", estimate=4), "trace": 4},
        piece(0, "thinking_delta", thinking="hm", estimate=4),
        {**piece(0, "signature_delta", signature="c2ln", key=5), "trace": 5},
        {**closed(0), "trace": 6},
        {**opened(1, type="redacted_thinking", data="blob", reason="x"), "trace": 7},
        closed(1),
        opened(2, type="text", text="", citations=[]),
        {"type": "weather_changed", "to": None, "index": 7},
        piece(2, text, citation=cited, trace=8),
        piece(2, "text_delta", text="Hi", logprobs=None),
        piece(2, "hologram_delta", beam=1),
        closed(2),
        {**over()[0], "trace": 9},
        {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 1}},
    ]
    assert kept(*said, mode=mode) == edited_streams.joined(said)


def test_null_members_and_numbers_stay_as_they_came() -> None:
    start = (
        '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"","citations":null,'
    )
    start += '"n":100000000000000000000000000000001,"f":1.10}}'
    frames = anthropic(BEGIN, *SAID, *over())
    frames[1] = b"event: content_block_start\ndata: %s\n\n" % start.encode()
    out = run(exchange(P, P, TOOLS), frames)
    assert b'"citations":null,"n":100000000000000000000000000000001,"f":1.10' in out


def test_an_error_keeps_its_members() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "busy", "details": None}}
    said = [BEGIN, *SAID, {**error, "request_id": "req_1", "trace": 1}]
    assert kept(*said) == said


def test_lone_surrogates_in_unknown_members_are_replaced() -> None:
    frames = anthropic(BEGIN, *SAID, *over())
    frames[2] = frames[2].replace(b'"Hi"', b'"Hi","odd":"\\ud83d"')
    out = run(exchange(P, P, TOOLS), frames)
    assert laws.check(P, out, stream=True) == []
    assert joined(out)[2]["delta"] == {"type": "text_delta", "text": "Hi", "odd": "\ufffd"}


@pytest.mark.parametrize(
    "strange",
    [
        [opened(0, type="text", text="a"), *SAID],
        [*SAID[:2], piece(0, "thinking_delta", thinking="x", odd=1), closed(0)],
        [*SAID[:2], piece(0, "signature_delta", signature="x", odd=1), closed(0)],
        [opened(0, type="redacted_thinking", data="x"), piece(0, "text_delta", text="x", odd=1), closed(0)],
        [*SAID, piece(9, "hologram_delta", odd=1)],
        [*SAID, {"type": "content_block_delta", "index": 9, "odd": 1}, closed(7)],
        [opened(0, type="text", text="", odd=1), closed(0)],
        [opened(0, type="text", text="", odd=1), PING, piece(0, "hologram_delta", odd=1), closed(0)],
        [opened(0, odd=1), piece(0, "text_delta", text="x"), closed(0)],
        [opened(0), piece(0, "input_json_delta", partial_json="{}"), closed(0)],
        [opened(0, type="redacted_thinking", data="x"), piece(0, "input_json_delta", partial_json="{}")],
        [{**SAID[0], "index": None}, {**SAID[1], "index": None}, {**SAID[2], "index": None}],
        [SAID[0], {**SAID[1], "index": None, "odd": 1}, SAID[2]],
        [SAID[0], piece(0, None, text="Hi", odd=1), piece(0, "text_delta", text=None), SAID[2]],
        [opened(0, type="thinking", thinking="hm", signature="c2ln", odd=1), closed(0)],
        [opened(0, type="hologram"), piece(0, "signature_delta", signature="x"), closed(0)],
        [BEGIN, *SAID],
        [opened(0, type="text", text="a", citations=[{"type": "char_location", "cited_text": "a"}])],
    ],
)
def test_what_an_upstream_does_wrong_is_mended(strange: list[Any]) -> None:
    for asked in (True, False):
        out = run(exchange(P, P, TOOLS, stream=asked), anthropic(BEGIN, *strange, *over()))
        assert laws.check(P, out, stream=asked) == []


@pytest.mark.parametrize("kind", ["ping", "content_block_delta", "message_stop", "weather_changed"])
def test_a_type_that_is_null_is_that_of_the_event(kind: str) -> None:
    frames = anthropic(BEGIN, *SAID)
    odd = b'event: %s\ndata: {"type":null,"index":null,"odd":1,"delta":{"type":null,"text":null}}\n\n'
    for place in range(len(frames) + 1):
        out = run(
            exchange(P, P), [*frames[:place], odd % kind.encode(), *frames[place:], *anthropic(*over())]
        )
        assert laws.check(P, out, stream=True) == []


def test_equal_members_of_all_deltas_are_one_value() -> None:
    decoder = PROTOCOLS[P].decoder("", True)
    frames = [piece(0, "text_delta", text=text, fingerprint={"a": [1]}) for text in "abc"]
    found = [
        event
        for event in (BEGIN, opened(0, type="text", text=""), *frames)
        for event in decoder.frame(Frame(msgspec.json.encode(event), event["type"]))
    ]
    extras = [event.extras for event in found if isinstance(event, TextDelta)]
    assert len({id(one) for one in extras}) == 1
    assert len(extras) == 3
