"""Cursor's two reply formats: each call is announced, then sent whole, for every upstream chunking."""

import json
from typing import Any

import pytest
from support.cursor_tools import GOLDEN, Golden
from support.decoded import MINTED
from support.exchanges import declared, run, sliced
from support.sample_streams import SAMPLES
from support.wires import ANTHROPIC, CHAT, CURSOR, RESPONSES

from dragoman import DragomanError, Options, Translation
from dragoman.conform import laws, neutral
from dragoman.conform.shape import Json, compact
from dragoman.conform.sse import events as sse_events
from dragoman.model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    End,
    Event,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from dragoman.model.messages import Refusal, Text, Thinking, ToolCall
from dragoman.protocols.cursor import CHAT as CURSOR_CHAT
from dragoman.protocols.cursor.answer.kinds import BY_NAME, KINDS
from dragoman.protocols.registry import CLIENTS, PROTOCOLS, client_protocol, protocol

EVERY_UPSTREAM = pytest.mark.parametrize("upstream", PROTOCOLS)
PATCH = "*** Begin Patch\n*** Update File: README.md\n+Add OpenRouter Example 東😀\n*** End Patch\n"


def upstream_stream(upstream: str, *events: Event) -> bytes:
    """An upstream's stream of these events."""
    return PROTOCOLS[upstream].stream_encoder(MINTED).encode(list(events))


def called(
    upstream: str, name: str, arguments: str, *, stop: Stop = Stop.TOOL, custom: bool = False
) -> bytes:
    """One call, its arguments in pieces of one character."""
    kind = "custom" if custom else "function"
    return upstream_stream(
        upstream,
        Start(model="m"),
        BlockStart(0, ToolCall(id="call_1", name=name, kind=kind)),
        *(ArgumentsDelta(0, character) for character in arguments),
        BlockEnd(0, complete=stop is Stop.TOOL),
        End(stop),
    )


def understood(
    upstream: str, client: Any, body: bytes, tools: Any = (), *, size: int = 1, **more: Any
) -> bytes:
    options = Options(mode="whole", id="x1", created=5, model="asked-for", **more)
    it = Translation(upstream, client, tools=declared(tools), options=options)
    got = run(it, sliced(body, size))
    assert laws.check(client if isinstance(client, str) else CHAT, got, stream=options.stream) == []
    return got


def frames(body: bytes) -> list[Any]:
    return [json.loads(e.data) if e.data != "[DONE]" else e.data for e in sse_events(body)]


def fragments(body: bytes) -> list[Json]:
    """The tool calls in the deltas of a Chat stream, in order."""
    chunks = [frame for frame in frames(body) if frame != "[DONE]"]
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return [call for delta in deltas for call in delta.get("tool_calls", [])]


def golden_id(golden: Golden) -> str:
    return f"{golden.name}-{'-'.join(golden.arguments)}"


@EVERY_UPSTREAM
@pytest.mark.parametrize("golden", GOLDEN, ids=golden_id)
def test_each_tool_arrives_in_its_own_structure(upstream: str, golden: Golden) -> None:
    body = called(upstream, golden.name, json.dumps(golden.arguments))
    head = {"tool": golden.tool, "tool_call_id": "call_1"}
    want = [
        {"partial_tool_call": {**head, "name": golden.name, "tool_index": 0}},
        {"tool_call_v2": {**head, golden.params: golden.want}},
        {"finish_reason": "tool_calls"},
    ]
    for size in (1, len(body)):
        assert frames(understood(upstream, CURSOR, body, size=size, include_usage=False)) == [*want, "[DONE]"]
    assert json.loads(understood(upstream, CURSOR, body, stream=False, include_usage=False)) == want


@EVERY_UPSTREAM
@pytest.mark.parametrize("golden", GOLDEN, ids=golden_id)
def test_in_chat_each_call_is_a_head_and_one_fragment(upstream: str, golden: Golden) -> None:
    body = called(upstream, golden.name, json.dumps(golden.arguments))
    for size in (1, len(body)):
        head, rest = fragments(understood(upstream, CURSOR_CHAT, body, size=size))
        empty = {"name": golden.name, "arguments": ""}
        assert head == {"index": 0, "id": "call_1", "type": "function", "function": empty}
        assert set(rest) == {"index", "function"}
        assert json.loads(rest["function"]["arguments"]) == golden.arguments
    whole = json.loads(understood(upstream, CURSOR_CHAT, body, stream=False))
    (call,) = whole["choices"][0]["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == golden.arguments


@EVERY_UPSTREAM
def test_a_tool_that_is_not_cursors_is_mcp_with_its_arguments_as_text(upstream: str) -> None:
    arguments = {"city": "Ōsaka", "days": [1, 2], "none": None}
    body = called(upstream, "get_weather", compact(arguments))
    _, given, *_ = frames(understood(upstream, CURSOR, body))
    assert given["tool_call_v2"]["tool"] == 19
    (tool,) = given["tool_call_v2"]["mcp_params"]["tools"]
    assert set(tool) == {"name", "parameters"}
    assert tool["name"] == "get_weather"
    assert json.loads(tool["parameters"]) == arguments


@EVERY_UPSTREAM
def test_the_title_is_not_cut_to_its_first_letter(upstream: str) -> None:
    """Cursor took the first fragment for all arguments: "Add OpenRouter Example" arrived as "A"."""
    title = "Add OpenRouter Example"
    body = called(upstream, "create_task", json.dumps({"title": title}))
    pieces = [call["function"]["arguments"] for call in fragments(understood(upstream, CURSOR_CHAT, body))]
    assert pieces[0] == ""
    assert [json.loads(piece) for piece in pieces[1:]] == [{"title": title}]
    (given,) = [
        f["tool_call_v2"] for f in frames(understood(upstream, CURSOR, body))[:-1] if "tool_call_v2" in f
    ]
    assert json.loads(given["mcp_params"]["tools"][0]["parameters"]) == {"title": title}


APPLY_PATCH = [{"name": "ApplyPatch", "kind": "custom"}]


@EVERY_UPSTREAM
def test_apply_patch_stays_freeform_in_chat_and_is_one_fragment(upstream: str) -> None:
    if PROTOCOLS[upstream].names.custom:
        body = called(upstream, "ApplyPatch", PATCH, custom=True)
    else:
        body = called(upstream, "ApplyPatch", json.dumps({"input": PATCH}))
    head, rest = fragments(understood(upstream, CURSOR_CHAT, body, APPLY_PATCH))
    empty = {"name": "ApplyPatch", "input": ""}
    assert head == {"index": 0, "id": "call_1", "type": "custom", "custom": empty}
    assert rest == {"index": 0, "custom": {"input": PATCH}}
    whole = json.loads(understood(upstream, CURSOR_CHAT, body, APPLY_PATCH, stream=False))
    (call,) = whole["choices"][0]["message"]["tool_calls"]
    assert call == {"id": "call_1", "type": "custom", "custom": {"name": "ApplyPatch", "input": PATCH}}
    _, given, *_ = frames(understood(upstream, CURSOR, body, APPLY_PATCH))
    (tool,) = given["tool_call_v2"]["mcp_params"]["tools"]
    assert json.loads(tool["parameters"]) == {"input": PATCH}


@pytest.mark.parametrize("upstream", [CHAT, RESPONSES])
def test_a_cut_freeform_call_is_never_sent(upstream: str) -> None:
    body = called(upstream, "ApplyPatch", PATCH, custom=True, stop=Stop.MAX_TOKENS)
    got = frames(understood(upstream, CURSOR, body, APPLY_PATCH, include_usage=False))
    assert got[1:] == [{"finish_reason": "length"}, "[DONE]"]
    assert set(got[0]) == {"partial_tool_call"}


@EVERY_UPSTREAM
@pytest.mark.parametrize("kind", ["tool", "parallel"])
def test_a_stream_cut_anywhere_gives_only_whole_calls(upstream: str, kind: str) -> None:
    body = SAMPLES[upstream][kind].stream
    whole = neutral.reduce(CURSOR, understood(upstream, CURSOR, body), stream=True)
    for cut in range(0, len(body), 7):
        it = Translation(upstream, CURSOR, options=Options(mode="whole", id="x1"))
        got = run(it, [body[:cut]])
        assert laws.check(CURSOR, got, stream=True) == []
        calls = neutral.reduce(CURSOR, got, stream=True)["tool_calls"]
        assert calls == whole["tool_calls"][: len(calls)]
        if it.failure is not None:
            assert b"[DONE]" not in got


@pytest.mark.parametrize("upstream", [ANTHROPIC, CHAT, RESPONSES])
@pytest.mark.parametrize("client", [CURSOR, CURSOR_CHAT], ids=["v2", "chat"])
def test_a_call_cut_by_the_token_limit_is_reported_as_cut(upstream: str, client: Any) -> None:
    body = called(upstream, "Read", '{"path": "src/a', stop=Stop.MAX_TOKENS)
    got = understood(upstream, client, body, include_usage=False)
    if client == CURSOR:
        assert [list(f) for f in frames(got)[:-1]] == [["partial_tool_call"], ["finish_reason"]]
        assert frames(got)[1] == {"finish_reason": "length"}
    else:
        pieces = [call["function"]["arguments"] for call in fragments(got)]
        assert pieces == ["", '{"path": "src/a']
        assert frames(got)[-2]["choices"][0]["finish_reason"] == "length"


def test_parallel_calls_are_sent_one_after_another() -> None:
    body = upstream_stream(
        CHAT,
        Start(model="m"),
        BlockStart(0, ToolCall(id="a", name="Read")),
        BlockStart(1, ToolCall(id="b", name="LS")),
        ArgumentsDelta(0, '{"path":'),
        ArgumentsDelta(1, '{"path":"d"'),
        ArgumentsDelta(0, '"f"}'),
        ArgumentsDelta(1, "}"),
        BlockEnd(0),
        BlockEnd(1),
        End(Stop.TOOL),
    )
    told = [next(iter(f.items())) for f in frames(understood(CHAT, CURSOR, body))[:-1]]
    assert [(k, v["tool_call_id"], v.get("tool_index")) for k, v in told[:-1]] == [
        ("partial_tool_call", "a", 0),
        ("tool_call_v2", "a", None),
        ("partial_tool_call", "b", 1),
        ("tool_call_v2", "b", None),
    ]
    order = [call["index"] for call in fragments(understood(CHAT, CURSOR_CHAT, body))]
    assert order == sorted(order)
    assert {*order} == {0, 1}


def test_a_call_is_announced_with_its_name_and_sent_when_complete() -> None:
    it = Translation(ANTHROPIC, CURSOR, options=Options(mode="whole"))
    encode = PROTOCOLS[ANTHROPIC].stream_encoder(MINTED).encode
    it.feed(encode([Start(model="m"), BlockStart(0, ToolCall(id="a", name="Read"))]))
    assert b"partial_tool_call" in it.feed(encode([ArgumentsDelta(0, '{"path": "')]))
    for character in "a long name":
        assert it.feed(encode([ArgumentsDelta(0, character)])) == b""
    it.feed(encode([ArgumentsDelta(0, '"}')]))
    assert b"tool_call_v2" in it.feed(encode([BlockEnd(0)]))


def test_text_reasoning_usage_and_the_end() -> None:
    body = upstream_stream(
        CHAT,
        Start(model="m"),
        BlockStart(0, Thinking()),
        TextDelta(0, "Hm."),
        BlockEnd(0),
        BlockStart(1, Text()),
        TextDelta(1, "Yes\u2028"),
        TextDelta(1, " no"),
        BlockEnd(1),
        UsageSeen(Usage(input=3, output=2)),
        End(Stop.END),
    )
    got = frames(understood(CHAT, CURSOR, body))
    assert got[:4] == [
        {"thinking": {"text": "Hm."}},
        {"text": "Yes\u2028"},
        {"text": " no"},
        {"finish_reason": "stop"},
    ]
    assert got[4]["usage"]["total_tokens"] == 5
    assert got[5:] == ["[DONE]"]
    assert frames(understood(CHAT, CURSOR, body, include_usage=False)) == [*got[:4], "[DONE]"]
    whole = json.loads(understood(CHAT, CURSOR, body, stream=False))
    assert whole == [got[0], {"text": "Yes\u2028 no"}, got[3], got[4]]


def test_a_refusal_is_text_and_a_finish_reason() -> None:
    refusal = [BlockStart(0, Refusal()), TextDelta(0, "No."), BlockEnd(0)]
    body = upstream_stream(CHAT, Start(model="m"), *refusal, End(Stop.END))
    got = [{"text": "No."}, {"finish_reason": "content_filter"}]
    assert frames(understood(CHAT, CURSOR, body)) == [*got, "[DONE]"]
    assert json.loads(understood(CHAT, CURSOR, body, stream=False)) == got


@EVERY_UPSTREAM
def test_an_error_is_in_band_and_never_a_clean_end(upstream: str) -> None:
    got = understood(upstream, CURSOR, SAMPLES[upstream]["error"].stream)
    *_, last = frames(got)
    assert set(last) == {"error"}
    assert SAMPLES[upstream]["error"].expect["error"]["message"] in last["error"]["message"]


@EVERY_UPSTREAM
@pytest.mark.parametrize("client", [CURSOR, CURSOR_CHAT], ids=["v2", "chat"])
def test_ids_are_short_enough_for_cursors_bridges(upstream: str, client: Any) -> None:
    long = "functions.Read:0" * 20
    body = called(upstream, "Read", '{"path": "a"}').replace(b"call_1", long.encode())
    got = understood(upstream, client, body)
    (id,) = (
        [f["tool_call_v2"]["tool_call_id"] for f in frames(got)[:-1] if "tool_call_v2" in f]
        if client == CURSOR
        else [call["id"] for call in fragments(got) if "id" in call]
    )
    assert len(id) <= 64


def test_cursor_is_no_upstream_protocol() -> None:
    assert CURSOR in CLIENTS
    assert client_protocol(CURSOR) is CLIENTS[CURSOR]
    for attempt in (lambda: protocol(CURSOR), lambda: Translation(CURSOR, CHAT)):
        with pytest.raises(DragomanError, match="no upstream speaks 'cursor': it is a reply protocol"):
            attempt()
    with pytest.raises(DragomanError, match=r"Use one of anthropic, .*, cursor"):
        client_protocol("nobody")


def test_the_table_of_tools_has_no_duplicates() -> None:
    assert len(BY_NAME) == sum(len(kind.names) for kind in KINDS)
    assert len({kind.tool for kind in KINDS}) == len({kind.params for kind in KINDS}) == len(KINDS)
    numbers = {(g.tool, g.params) for g in GOLDEN}
    assert numbers <= {(int(kind.tool), kind.params) for kind in KINDS}
