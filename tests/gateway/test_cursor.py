"""Cursor's two endpoints over real sockets: every request shape, and complete calls from every upstream."""

import json
from collections.abc import Generator
from typing import Any

import openai
import pytest
from support.cursor_bodies import PATCH, SHAPES, body
from support.decoded import MINTED
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import Cut, ScriptedUpstream, in_background, status, stream
from support.wires import ANTHROPIC, CHAT, CURSOR, GEMINI, PROTOCOLS, RESPONSES

from dragoman.conform import laws, neutral
from dragoman.conform.shape import Json
from dragoman.conform.sse import events as sse_events
from dragoman.model.events import (
    ArgumentsDelta,
    BlockEnd,
    BlockStart,
    End,
    Event,
    Sealed,
    Start,
    Stop,
    TextDelta,
    Usage,
    UsageSeen,
)
from dragoman.model.messages import Seal, Text, Thinking, ToolCall
from dragoman.protocols.registry import PROTOCOLS as WIRES

CHAT_PATH, V2_PATH = "/cursor/chat/completions", "/cursor/v2/chat/completions"
TITLE = "Add OpenRouter Example"
UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)


@pytest.fixture(scope="module")
def served() -> Generator[ScriptedUpstream]:
    with in_background() as upstream:
        yield upstream


@pytest.fixture(scope="module")
def running(loop: Loop, served: ScriptedUpstream) -> Generator[Gateway]:
    config = "[server]\nretries = 0\n" + "".join(
        f'[upstreams.{name}]\nprotocol = "{name}"\nbase_url = "{served.url}"\ncredential = "none"\n'
        for name in PROTOCOLS
    )
    config += '[[routes]]\nmatch = "some"\nto = "openai-chat/m"\n'
    with gateway(config, loop) as started:
        yield started


def said(upstream: str, *events: Event) -> list[bytes]:
    """An upstream's stream of these events, byte by byte."""
    data = WIRES[upstream].stream_encoder(MINTED).encode([Start(model="m"), *events])
    return [data[at : at + 1] for at in range(len(data))]


def called(
    upstream: str, name: str, arguments: str, id: str = "call_9", *, custom: bool = False
) -> list[bytes]:
    return said(
        upstream,
        BlockStart(0, ToolCall(id=id, name=name, kind="custom" if custom else "function")),
        *(ArgumentsDelta(0, character) for character in arguments),
        BlockEnd(0),
        UsageSeen(Usage(input=5, output=3)),
        End(Stop.TOOL),
    )


def ask(
    running: Gateway, path: str, upstream: str, value: Json, want: int = 200, broken: tuple[str, ...] = ()
) -> Got:
    got = post(running.url + path, {**value, "model": f"{upstream}/m"})
    streamed = got.headers["content-type"].startswith("text/event-stream")
    client = CURSOR if path == V2_PATH else CHAT
    if got.status == 200:
        assert [found.law.name for found in laws.check(client, got.body, stream=streamed)] == [*broken]
    else:
        assert got.status == want, got.body
    return got


def frames(got: Got) -> list[Any]:
    return [json.loads(e.data) if e.data != "[DONE]" else e.data for e in sse_events(got.body)]


def fragments(got: Got) -> list[Json]:
    *chunks, last = frames(got)
    assert last == "[DONE]"
    deltas = [c["delta"] for chunk in chunks for c in chunk["choices"]]
    return [call for delta in deltas for call in delta.get("tool_calls", [])]


@UPSTREAMS
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_over_every_upstream_in_both_formats(
    running: Gateway, served: ScriptedUpstream, upstream: str, shape: str
) -> None:
    arguments = '{"path": "docs/naïve 東.md"}'
    answer = called(upstream, "Read", arguments)
    served.script(answer, answer)

    first, rest = fragments(ask(running, CHAT_PATH, upstream, body(SHAPES[shape])))
    assert first["function"] == {"name": "Read", "arguments": ""}
    assert first["id"]
    assert json.loads(rest["function"]["arguments"]) == json.loads(arguments)

    got = frames(ask(running, V2_PATH, upstream, body(SHAPES[shape])))
    params = {"relative_workspace_path": "docs/naïve 東.md", "read_entire_file": True}
    assert [list(frame) for frame in got[:-1]] == [
        ["partial_tool_call"],
        ["tool_call_v2"],
        ["finish_reason"],
        ["usage"],
    ]
    assert got[1]["tool_call_v2"]["read_file_params"] == params
    assert got[-1] == "[DONE]"
    one, two = (seen.body for seen in served.seen[-2:])
    assert one == two


@UPSTREAMS
def test_the_title_is_not_cut_to_its_first_letter(
    running: Gateway, served: ScriptedUpstream, upstream: str
) -> None:
    """The original bug: "Add OpenRouter Example" arrived as "A"."""
    answer = called(upstream, "create_task", json.dumps({"title": TITLE}))
    served.script(answer, answer)
    tool = {"name": "create_task", "input_schema": {"type": "object"}}
    asked = {"messages": [{"role": "user", "content": "Go"}], "tools": [tool], "stream": True}
    pieces = [part["function"]["arguments"] for part in fragments(ask(running, CHAT_PATH, upstream, asked))]
    assert pieces[0] == ""
    assert [json.loads(piece) for piece in pieces[1:]] == [{"title": TITLE}]
    (heard,) = neutral.reduce(CURSOR, ask(running, V2_PATH, upstream, asked).body, stream=True)["tool_calls"]
    assert heard["arguments"] == {"title": TITLE}


@UPSTREAMS
def test_apply_patch_comes_back_as_raw_text(
    running: Gateway, served: ScriptedUpstream, upstream: str
) -> None:
    # Upstreams without freeform tools were offered a function with one member.
    knows = upstream == RESPONSES
    served.script(
        called(upstream, "ApplyPatch", PATCH if knows else json.dumps({"input": PATCH}), custom=knows)
    )
    # Cursor wants the raw text as the arguments of a function, not JSON.
    got = ask(running, CHAT_PATH, upstream, body(SHAPES["ask-mode"]), broken=("call-json",))
    first, rest = fragments(got)
    assert (first["type"], first["function"]) == ("function", {"name": "ApplyPatch", "arguments": ""})
    assert rest["function"] == {"arguments": PATCH}


def test_a_setting_keeps_freeform_calls_freeform(loop: Loop, served: ScriptedUpstream) -> None:
    config = (
        f'[upstreams.a]\nprotocol = "openai-responses"\nbase_url = "{served.url}"\ncredential = "none"\n'
        '[clients.cursor]\nfreeform = "custom"\n'
    )
    served.script(called(RESPONSES, "ApplyPatch", PATCH, custom=True))
    with gateway(config, loop) as running:
        first, rest = fragments(ask(running, CHAT_PATH, "a", body(SHAPES["ask-mode"])))
    assert (first["type"], first["custom"]) == ("custom", {"name": "ApplyPatch", "input": ""})
    assert rest["custom"] == {"input": PATCH}


@UPSTREAMS
def test_the_official_sdk_reads_what_cursor_gets(
    running: Gateway, served: ScriptedUpstream, upstream: str
) -> None:
    served.script(called(upstream, "Read", '{"path": "a"}'))
    client = openai.OpenAI(base_url=f"{running.url}/cursor", api_key="x", max_retries=0)
    asked = body()
    with client.chat.completions.create(
        model=f"{upstream}/m", messages=asked["messages"], tools=asked["tools"], stream=True
    ) as chunks:
        calls = [c for chunk in chunks for choice in chunk.choices for c in choice.delta.tool_calls or ()]
    assert [c.function.arguments for c in calls if c.function] == ["", '{"path": "a"}']


def test_answers_that_are_not_streamed(running: Gateway, served: ScriptedUpstream) -> None:
    answer = called(ANTHROPIC, "LS", '{"path": "src"}')
    served.script(answer, answer)
    asked = {**body(), "stream": False}
    (call_,) = ask(running, CHAT_PATH, ANTHROPIC, asked).json["choices"][0]["message"]["tool_calls"]
    assert call_["function"] == {"name": "LS", "arguments": '{"path": "src"}'}
    got = ask(running, V2_PATH, ANTHROPIC, asked)
    assert got.headers["content-type"].startswith("application/json")
    assert [next(iter(one)) for one in got.json] == [
        "partial_tool_call",
        "tool_call_v2",
        "finish_reason",
        "usage",
    ]
    assert got.json[1]["tool_call_v2"]["list_dir_params"] == {"directory_path": "src"}


@UPSTREAMS
def test_a_broken_stream_never_ends_as_a_success(
    running: Gateway, served: ScriptedUpstream, upstream: str
) -> None:
    whole = said(
        upstream,
        BlockStart(0, Text()),
        TextDelta(0, "Let me see."),
        BlockEnd(0),
        BlockStart(1, ToolCall(id="c", name="Read")),
        ArgumentsDelta(1, '{"path": "a'),
        ArgumentsDelta(1, '"}'),
        BlockEnd(1),
        End(Stop.TOOL),
    )
    data = b"".join(whole)
    cut = data.index(b"path") if upstream == GEMINI else data.index(b'{\\"path\\"') + 12
    for path in (CHAT_PATH, V2_PATH):
        served.script(stream(data[:cut], Cut()))
        got = ask(running, path, upstream, body())
        assert b"[DONE]" not in got.body
        assert b"tool_call_v2" not in got.body
        assert "error" in frames(got)[-1]


@pytest.mark.parametrize("path", [CHAT_PATH, V2_PATH])
def test_errors_before_the_first_byte(running: Gateway, served: ScriptedUpstream, path: str) -> None:
    served.script(status(429, b'{"error": {"message": "Slow down.", "type": "rate_limit_error"}}'))
    got = ask(running, path, CHAT, body(), 429)
    assert got.json["error"]["message"] == "Slow down."
    got = post(running.url + path, {**body(), "model": "nobody/m"})
    assert (got.status, got.json["error"]["type"]) == (404, "not_found_error")
    got = post(running.url + path, {"model": f"{CHAT}/m"})
    assert (got.status, got.json["error"]["type"]) == (400, "invalid_request_error")
    got = post(running.url + path, b"{")
    assert got.status == 400
    assert "not valid JSON" in got.json["error"]["message"]


def test_a_result_finds_its_call_for_every_id(running: Gateway, served: ScriptedUpstream) -> None:
    """Cursor's bridges refuse Kimi's ids: they are escaped for the client and restored for the upstream."""
    served.script(called(CHAT, "Read", '{"path": "a"}', id="functions.Read:0"), called(CHAT, "LS", "{}"))
    got = frames(ask(running, V2_PATH, CHAT, body()))
    id = got[1]["tool_call_v2"]["tool_call_id"]
    assert ":" not in id
    history = [
        {"role": "user", "content": "Go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Read", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "x"}]},
    ]
    ask(running, V2_PATH, CHAT, {**body(), "messages": history})
    sent = served.last.json["messages"]
    assert sent[1]["tool_calls"][0]["id"] == sent[2]["tool_call_id"] == "functions.Read:0"


@pytest.mark.parametrize("path", [CHAT_PATH, V2_PATH])
def test_signed_reasoning_goes_back_to_its_issuer(
    running: Gateway, served: ScriptedUpstream, path: str
) -> None:
    thought = said(
        ANTHROPIC,
        BlockStart(0, Thinking()),
        TextDelta(0, "Look first."),
        Sealed(0, Seal(ANTHROPIC, "c2lnbmVk")),
        BlockEnd(0),
        BlockStart(1, ToolCall(id=f"toolu_{len(path)}", name="Read")),
        ArgumentsDelta(1, '{"path": "a"}'),
        BlockEnd(1),
        End(Stop.TOOL),
    )
    served.script(thought, called(ANTHROPIC, "LS", "{}"))
    asked = [{"role": "user", "content": f"Go by {path}"}]
    got = ask(running, path, ANTHROPIC, {**body(), "tool_choice": "auto", "messages": asked})
    client = CURSOR if path == V2_PATH else CHAT
    assert neutral.reduce(client, got.body, stream=True)["thinking"] == "Look first."
    id = f"toolu_{len(path)}"
    function = {"name": "Read", "arguments": '{"path": "a"}'}
    history = [
        *asked,
        {"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": id, "content": "x"},
    ]
    ask(running, path, ANTHROPIC, {**body(), "tool_choice": "auto", "messages": history})
    first = served.last.json["messages"][1]["content"][0]
    assert (first["type"], first["signature"]) == ("thinking", "c2lnbmVk")


def test_models_are_listed_below_cursors_base_url(running: Gateway) -> None:
    for base in ("/cursor", "/cursor/v1", "/cursor/v2"):
        assert call(f"{running.url}{base}/models").json["object"] == "list"
    got = post(f"{running.url}/cursor/v1/chat/completions", {"model": f"{RESPONSES}/m"})
    assert got.status == 400


def test_any_client_gets_whole_calls_at_cursors_endpoint(running: Gateway, served: ScriptedUpstream) -> None:
    served.script(called(CHAT, "Bash", '{"command": "ls"}'))
    names = ("Bash", "Edit", "Glob", "Grep", "Read", "TodoWrite", "WebFetch", "Write")
    offered = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    system = "You are Claude Code, Anthropic's official CLI for Claude."
    asked = [{"role": "system", "content": system}, {"role": "user", "content": "Go"}]
    got = post(
        running.url + CHAT_PATH,
        {"model": f"{CHAT}/m", "messages": asked, "tools": offered, "stream": True},
        user_agent="claude-cli/2.1.0",
        x_app="cli",
    )
    pieces = [part["function"]["arguments"] for part in fragments(got)]
    assert pieces == ["", '{"command": "ls"}']
