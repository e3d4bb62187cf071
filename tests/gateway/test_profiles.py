"""Each client is answered by its profile, unless the config overrides it."""

import asyncio
import itertools
import json
import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from gateway_harness import SHORT, Gateway, Got, before, post
from support.captures import CAPTURES, Capture
from support.scripted_upstream import ScriptedUpstream, Wait
from support.wires import PROTOCOLS
from test_faults_midstream import cut_within_a_character, spoken

from dragoman.config import ConfigError, loads
from dragoman.gateway.caller import Caller
from dragoman.model.messages import Request
from dragoman.profiles import detect, head_clues
from dragoman.protocols.registry import protocol

UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)
OFTEN = 'retries = 0\nkeepalive = "40ms"'
EVENT = b'event: keepalive\ndata: {"type":"keepalive"}\n\n'
COMMENT = b": keepalive\n\n"


async def send(gateway: Gateway, capture: Capture, model: str) -> Got:
    path, body = capture.asking(model)
    data = json.dumps(body).encode()
    return await post(gateway, capture.protocol, path, data, stream=capture.stream, **capture.headers)


def argument_pieces(got: Got) -> list[str]:
    chunks = [json.loads(line[6:]) for line in got.body.decode().splitlines() if line.startswith("data: {")]
    calls = [call for chunk in chunks for c in chunk["choices"] for call in c["delta"].get("tool_calls", ())]
    return [call["function"]["arguments"] for call in calls if call["function"].get("arguments")]


@UPSTREAMS
@pytest.mark.parametrize(
    ("name", "clients", "in_one_piece"),
    [
        ("cursor chat", "", True),
        ("cursor chat", '[clients.cursor]\narguments = "live"', False),
        ("opencode chat", "", False),
        ("opencode chat", '[clients.opencode]\narguments = "whole"', True),
        ("opencode chat", '[clients.unknown]\narguments = "whole"', False),
    ],
)
def test_arguments_are_whole_or_live_by_profile(
    name: str, clients: str, in_one_piece: bool, upstream: str
) -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream(), more=clients) as gateway:
            got = await send(gateway, CAPTURES[name], f"{SHORT[upstream]}/demo-fragments")
            (call,) = got.said["tool_calls"]
            pieces = argument_pieces(got)
            assert json.loads("".join(pieces)) == call["arguments"]
            # Gemini upstreams send calls whole.
            assert (len(pieces) == 1) is (in_one_piece or upstream == "gemini")

    asyncio.run(scene())


async def paused(gateway: Gateway, served: ScriptedUpstream, name: str) -> bytes:
    """The client's bytes from an upstream that is silent before and within its text."""
    data = spoken("openai-responses")
    at = cut_within_a_character("openai-responses").rindex(b"\n\n") + 2
    served.script([Wait(0.2), data[:at], Wait(0.2), data[at:]])
    got = await send(gateway, CAPTURES[name], "r/m")
    assert got.status == 200
    # The protocol has no such event: the judges see the answer without them.
    assert replace(got, body=got.body.replace(EVENT, b"")).said["stop"] == "end_turn"
    return got.body


def test_codex_gets_events_and_others_comments() -> None:
    """Only events, not comments, reset Codex's idle timeout."""

    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN) as gateway:
            for name, frame, other in (("codex", EVENT, COMMENT), ("openai responses", COMMENT, EVENT)):
                waiting, begun, rest = (await paused(gateway, served, name)).partition(
                    b"event: response.created"
                )
                assert begun
                assert waiting.count(frame) >= 2
                assert rest.count(frame) >= 2
                assert other not in waiting + rest

    asyncio.run(scene())


def test_a_clients_keepalive_can_be_set() -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served, server=OFTEN, more="[clients.codex]\nkeepalive = 0") as gateway:
            assert EVENT not in await paused(gateway, served, "codex")
            assert COMMENT in await paused(gateway, served, "openai responses")

    asyncio.run(scene())


def test_the_client_is_detected_again_for_a_different_request() -> None:
    """On one connection with the same headers: prompts, tools and members that identify a client or not."""
    headers = {"x-app": "cli"}
    http: Any = SimpleNamespace(path="/v1/messages", target="/v1/messages", headers=headers)
    caller, clues = Caller(http), head_clues("/v1/messages", headers)

    def read(prompt: str, tool: str) -> Request:
        said = [{"role": "user", "content": "A question. " * 200}]
        listed = [{"name": tool, "input_schema": {"type": "object"}}]
        body = {"model": "m", "max_tokens": 9, "system": prompt, "tools": listed, "messages": said}
        return protocol("anthropic").read_request(json.dumps(body).encode(), "/v1/messages")

    prompts = [read("Do what was asked. " * 40, "x"), read("You are Claude Code. " * 40, "x")]
    tools = [read("Any.", "read").tools, read("Any.", "Bash").tools, ()]
    members = [{}, {"context_management": {}}, {"metadata": {}}]
    shown = [
        msgspec.structs.replace(
            one, tools=listed, raw=msgspec.structs.replace(one.raw, held={**one.raw.value, **more})
        )
        for one, listed, more in itertools.product(prompts, tools, members)
    ]
    for two in itertools.product(shown, shown):
        for request in two:
            assert caller.profile(request) is detect(clues, request)
    seen = {caller.profile(request).name for request in shown}
    assert seen == {"claude-agent-sdk", "claude-code", "unknown"}


def test_the_log_names_the_client(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream()) as gateway:
            await send(gateway, CAPTURES["claude-code"], "c/demo")
            await send(gateway, CAPTURES["langchain chat"], "c/demo")
            await post(gateway, "openai-chat", "/v1/chat/completions", b"{", stream=False)

    with caplog.at_level(logging.INFO, "dragoman.gateway"):
        asyncio.run(scene())
    told = [record.profile for record in caplog.records if hasattr(record, "profile")]
    assert told == ["claude-code", "langchain", "unknown"]


def test_an_unknown_client_in_the_config_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r'no client "claude-cod"; did you mean "claude-code"\?'):
        loads('[clients.claude-cod]\narguments = "live"', env={"OPENAI_API_KEY": "k"})
    with pytest.raises(ConfigError, match=r'no client "emacs"; known clients are .*claude-code.*, unknown'):
        loads("[clients.emacs]", env={"OPENAI_API_KEY": "k"})
