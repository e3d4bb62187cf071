"""Requests of real agents work with every upstream: the first turn, its call, and the next turn."""

import asyncio
import base64
import itertools
import json
from typing import Any

import pytest
from gateway_harness import SHORT, Gateway, Got, before, post
from support.agent_turns import RESULT, next_body
from support.captures import CAPTURES, Capture
from support.scripted_upstream import ScriptedUpstream

WITH_TOOLS = [name for name, capture in CAPTURES.items() if capture.tool]
WITHOUT = [name for name, capture in CAPTURES.items() if not capture.tool]
MODELS = ("demo", "demo-sealed")
"""The second signs its reasoning, and refuses a history in which a signature is lost or not its own."""


async def send(gateway: Gateway, capture: Capture, model: str, body: Any) -> Got:
    path, _ = capture.asking(model)
    data = json.dumps(body).encode()
    return await post(gateway, capture.protocol, path, data, stream=capture.stream, **capture.headers)


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_an_agent_runs_its_tool_and_continues(name: str) -> None:
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
            for (upstream, short), model in itertools.product(SHORT.items(), MODELS):
                # A client of the same protocol may drop the reasoning; the upstream then gets none.
                if "no reasoning" not in capture.manner or upstream != capture.protocol or model == "demo":
                    await turns(gateway, f"{short}/{model}")

    asyncio.run(scene())


@pytest.mark.parametrize("name", WITHOUT)
def test_an_agent_request_without_tools_is_answered(name: str) -> None:
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


@pytest.mark.parametrize("upstream", ["a", "r", "g"])
def test_signatures_for_gemini_clients_are_base64(upstream: str) -> None:
    """Google's SDK refuses a whole answer if its signature is not base64, and pi drops it."""
    capture = CAPTURES["google-genai"]

    async def scene() -> None:
        async with before(ScriptedUpstream()) as gateway:
            model = f"{upstream}/demo-sealed"
            got = await send(gateway, capture, model, capture.asking(model)[1])
            parts = json.loads(got.body)["candidates"][0]["content"]["parts"]
            signatures = [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
            assert signatures
            assert all(base64.b64decode(signature, validate=True) for signature in signatures)

    asyncio.run(scene())
