"""What real agents send works before every upstream: the first turn, its call, and the turn after it."""

import asyncio
import itertools
import json
from typing import Any

import pytest
from support.agent_turns import RESULT, next_body
from support.captures import CAPTURES, Capture
from support.scripted_upstream import ScriptedUpstream
from troubles import SHORT, Gateway, Got, before, post

WITH_TOOLS = [name for name, capture in CAPTURES.items() if capture.tool]
WITHOUT = [name for name, capture in CAPTURES.items() if not capture.tool]
MODELS = ("demo", "demo-sealed")
"""The second signs its reasoning, and refuses a history in which a signature is lost or not its own."""


async def send(gateway: Gateway, capture: Capture, model: str, body: Any) -> Got:
    path, _ = capture.asking(model)
    data = json.dumps(body).encode()
    return await post(gateway, capture.protocol, path, data, stream=capture.stream, **capture.headers)


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_an_agent_runs_its_tool_and_goes_on(name: str) -> None:
    capture = CAPTURES[name]

    async def turns(gateway: Gateway, model: str) -> None:
        _, body = capture.asking(model)
        first = await send(gateway, capture, model, body)
        assert first.status == 200, first.body
        (call,) = first.said["tool_calls"]
        assert call["name"] == capture.tool
        assert call["arguments"]
        body = next_body(capture, body, first.body)
        second = await send(gateway, capture, model, body)
        assert second.status == 200, second.body
        assert second.said["tool_calls"] == []
        assert RESULT in second.said["text"]

    async def scene() -> None:
        async with before(ScriptedUpstream()) as gateway:
            for upstream, model in itertools.product(SHORT.values(), MODELS):
                await turns(gateway, f"{upstream}/{model}")

    asyncio.run(scene())


@pytest.mark.parametrize("name", WITHOUT)
def test_what_an_agent_asks_without_tools(name: str) -> None:
    capture = CAPTURES[name]

    async def scene() -> None:
        async with before(ScriptedUpstream()) as gateway:
            for upstream in SHORT.values():
                model = f"{upstream}/demo"
                got = await send(gateway, capture, model, capture.asking(model)[1])
                assert got.status == 200, got.body
                assert got.said["stop"] == "end_turn"
                assert got.said["text"]

    asyncio.run(scene())
