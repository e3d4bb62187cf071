"""The scripted model over real sockets with the official SDKs, and the controls of the test upstream."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from support import scripted_upstream, sdk_clients
from support.scripted_talk import (
    CALL,
    NEVER,
    WEATHER,
    answered,
    calls_of,
    parts_of,
    question,
    reply_to,
    sent,
    through_sdk,
    written,
)
from support.scripted_upstream import FOREVER, Cut, ScriptedUpstream, Wait, in_background
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

from dragoman.conform.scripted import BEHAVIOURS, serve
from dragoman.model.messages import Request

STREAM_AND_WHOLE = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        yield served


async def post(session: aiohttp.ClientSession, url: str, name: str, request: Request) -> tuple[int, bytes]:
    path, body = written(name, request)
    async with session.post(url + path, data=body) as response:
        return response.status, await response.read()


@pytest.mark.parametrize("name", [ANTHROPIC, CHAT, RESPONSES])
@STREAM_AND_WHOLE
def test_a_conversation_through_the_sdk(name: str, stream: bool, upstream: ScriptedUpstream) -> None:
    with sdk_clients.client(name, upstream.url) as sdk:
        request = question("demo-thinking", stream=stream)
        said = through_sdk(name, sdk, request)
        assert calls_of(said) == [CALL]
        assert said["thinking"]
        closing = through_sdk(name, sdk, answered(request, parts_of(said), "Sunny"))
        assert "“Sunny”" in closing["text"]
        assert upstream.last.key == "k"


@STREAM_AND_WHOLE
def test_a_conversation_through_google_genai(stream: bool, upstream: ScriptedUpstream) -> None:
    _, data = written(GEMINI, question())
    config = {"tools": json.loads(data)["tools"], "automatic_function_calling": {"disable": True}}
    contents: list[Any] = [WEATHER]
    with sdk_clients.client(GEMINI, upstream.url) as sdk:
        create = sdk.models.generate_content_stream if stream else sdk.models.generate_content

        def ask() -> list[Any]:
            said = create(model="demo-sealed", contents=contents, config=config)
            chunks = said if stream else [said]
            return [part for chunk in chunks for part in chunk.candidates[0].content.parts]

        call = next(part for part in ask() if part.function_call)
        assert (call.function_call.name, call.function_call.args) == CALL
        result = {"id": call.function_call.id, "name": "get_weather", "response": {"output": "Sunny"}}
        contents.append({"role": "model", "parts": [call]})
        contents.append({"role": "user", "parts": [{"function_response": result}]})
        assert "“Sunny”" in "".join(part.text or "" for part in ask())


def test_models_are_listed_in_every_protocol(upstream: ScriptedUpstream) -> None:
    for name in (ANTHROPIC, CHAT):
        with sdk_clients.client(name, upstream.url) as sdk:
            assert {model.id for model in sdk.models.list()} == set(BEHAVIOURS)
            assert sdk.models.retrieve("demo-leak").id == "demo-leak"
    with sdk_clients.client(GEMINI, upstream.url) as sdk:
        assert {model.name for model in sdk.models.list()} == {f"models/{name}" for name in BEHAVIOURS}
        assert sdk.models.get(model="demo-leak").name == "models/demo-leak"


def test_counting_agrees_with_the_usage(upstream: ScriptedUpstream) -> None:
    messages = [{"role": "user", "content": WEATHER}]
    with sdk_clients.client(ANTHROPIC, upstream.url) as sdk:
        counted = sdk.messages.count_tokens(model="demo", messages=messages).input_tokens
        assert (
            counted == sdk.messages.create(model="demo", max_tokens=99, messages=messages).usage.input_tokens
        )
    with sdk_clients.client(RESPONSES, upstream.url) as sdk:
        counted = sdk.responses.input_tokens.count(model="demo", input=WEATHER).input_tokens
        assert counted == sdk.responses.create(model="demo", input=WEATHER).usage.input_tokens
    with sdk_clients.client(GEMINI, upstream.url) as sdk:
        counted = sdk.models.count_tokens(model="demo", contents=WEATHER).total_tokens
        usage = sdk.models.generate_content(model="demo", contents=WEATHER).usage_metadata
        assert counted == usage.prompt_token_count


@pytest.mark.parametrize("model", sorted(set(BEHAVIOURS) - set(NEVER)))
def test_the_server_sends_the_models_bytes(model: str) -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as upstream, aiohttp.ClientSession() as session:
            for name, stream in itertools.product(PROTOCOLS, (True, False)):
                request = question(model, stream=stream)
                expected = reply_to(name, request)
                if any(isinstance(step, Cut) for step in expected.steps):
                    with pytest.raises(aiohttp.ClientError):
                        await post(session, upstream.url, name, request)
                else:
                    got = await post(session, upstream.url, name, request)
                    assert got == (expected.status, sent(expected))

    asyncio.run(scene())


@pytest.mark.parametrize("model", NEVER)
@pytest.mark.parametrize("name", PROTOCOLS)
@STREAM_AND_WHOLE
def test_the_upstream_notices_a_client_that_leaves(name: str, model: str, stream: bool) -> None:
    async def scene() -> None:
        async with ScriptedUpstream(pace=1.0) as upstream, aiohttp.ClientSession() as session:
            asking = asyncio.create_task(post(session, upstream.url, name, question(model, stream=stream)))
            seen = await upstream.wait_seen()
            await asyncio.sleep(0.02)
            assert not asking.done()
            asking.cancel()
            assert await seen.wait_closed(1.0)
            assert not seen.finished.is_set()
            with contextlib.suppress(asyncio.CancelledError):
                await asking

    asyncio.run(scene())


def test_gemini_streams_an_array_without_alt_sse() -> None:
    async def scene() -> None:
        url, stop = await serve(pace=0)
        path, body = written(GEMINI, question(stream=True))
        async with aiohttp.ClientSession() as session:
            async with session.post(url + path.partition("?")[0], data=body) as response:
                chunks = json.loads(await response.read())
            async with session.get(url + "/nowhere") as response:
                assert response.status == 404
        await stop()
        assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"

    asyncio.run(scene())


# Controls of the test upstream


def test_scripts_come_first_and_requests_are_recorded() -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as upstream, aiohttp.ClientSession() as session:
            tea = scripted_upstream.status(418, b"tea", retry_after="9")
            upstream.script(b"one", [b"two", Wait(0), b"!"], tea)
            got = [await post(session, upstream.url, CHAT, question()) for _ in range(4)]
            assert got[:3] == [(200, b"one"), (200, b"two!"), (418, b"tea")]
            assert b"get_weather" in got[3][1]
            assert upstream.seen[0].json["model"] == "demo"
            assert await upstream.last.wait_finished()

    asyncio.run(scene())


def test_keys_can_be_changed_at_any_time() -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as upstream, aiohttp.ClientSession() as session:
            upstream.keys = {"new"}
            for key, status in (("old", 401), ("new", 200)):
                headers = {"authorization": f"Bearer {key}"}
                async with session.get(upstream.url + "/v1/models", headers=headers) as response:
                    assert response.status == status
                assert upstream.last.key == key

    asyncio.run(scene())


FAULTS = {
    "no_answer": scripted_upstream.no_answer(),
    "reset": scripted_upstream.no_answer(reset=True),
    "not_http": scripted_upstream.not_http(),
    "torn_character": scripted_upstream.torn_character(b"data: 1\n\n"),
    "slow_headers": scripted_upstream.slow_headers(FOREVER),
    "never_ending": scripted_upstream.never_ending(every=0.01),
    "silent": scripted_upstream.stream(b"data: 1\n\n", Wait(FOREVER)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_reaches_the_client(fault: str) -> None:
    async def scene() -> None:
        timeout = aiohttp.ClientTimeout(total=0.3)
        async with ScriptedUpstream() as upstream, aiohttp.ClientSession(timeout=timeout) as session:
            upstream.script(FAULTS[fault])
            with pytest.raises((aiohttp.ClientError, TimeoutError)):
                await post(session, upstream.url, CHAT, question())

    asyncio.run(scene())


def test_sizes_and_addresses_of_faults() -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as upstream, aiohttp.ClientSession() as session:
            upstream.script(scripted_upstream.huge_frame(1 << 20), scripted_upstream.garbage())
            upstream.script(scripted_upstream.redirect("/v1/models"))
            assert len((await post(session, upstream.url, CHAT, question()))[1]) > 1 << 20
            assert len((await post(session, upstream.url, CHAT, question()))[1]) == 4096
            async with session.get(upstream.url, allow_redirects=False) as response:
                assert (response.status, response.headers["location"]) == (307, "/v1/models")
            with pytest.raises(aiohttp.ClientConnectorError):
                await post(session, scripted_upstream.refused_url(), CHAT, question())

    asyncio.run(scene())
