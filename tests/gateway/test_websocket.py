"""Responses over a WebSocket: OpenAI's SDK as the client, with upstreams of every protocol."""

import asyncio
import json
from pathlib import Path

import pytest
from gateway_harness import SHORT, Gateway, before, soon
from support import scripted_upstream as upstreams
from support.scripted_upstream import FOREVER, ScriptedUpstream, Wait
from support.wires import RESPONSES
from test_faults_midstream import opening
from websocket_client import (
    QUESTION,
    TOOL,
    UPSTREAMS,
    Event,
    Socket,
    calls_of,
    connected,
    play,
    receipts,
    results,
    text_of,
)
from websockets.exceptions import ConnectionClosed

from dragoman.gateway.exchange.sockets import MAX_LANES, MAX_WAITING
from dragoman.recording import load, replay
from dragoman.store.memory import Memories

# Answers


@UPSTREAMS
def test_a_conversation_that_is_not_stored(upstream: str) -> None:
    """Each request holds only the new input. The upstream gets the whole history."""

    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        settings = {"model": f"{SHORT[upstream]}/demo", "tools": [TOOL], "store": False}
        called = await socket.response(QUESTION, **settings)
        assert calls_of(called) == [("get_weather", {"city": "Rome", "days": 3})]
        told = await socket.response(results(called, "Sunny"), previous_response_id=called["id"], **settings)
        assert "get_weather answered: “Sunny”" in text_of(told)
        again = await socket.response("And now?", previous_response_id=told["id"], **settings)
        assert again["id"] not in (called["id"], told["id"])
        for said in ("Rome", "Sunny", "And now?"):
            assert said in served.last.body.decode()

    play(scene)


@UPSTREAMS
def test_signed_reasoning_comes_back_to_its_issuer(upstream: str) -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        settings = {
            "model": f"{SHORT[upstream]}/demo-sealed",
            "tools": [TOOL],
            "store": False,
            "reasoning": {"effort": "high"},
            "include": ["reasoning.encrypted_content"],
        }
        called = await socket.response(QUESTION, **settings)
        told = await socket.response(results(called, "Sunny"), previous_response_id=called["id"], **settings)
        assert "get_weather answered: “Sunny”" in text_of(told)

    play(scene)


@UPSTREAMS
@pytest.mark.parametrize("model", ["demo-misnamed", "demo-stringly", "demo-fenced", "demo-ghost"])
def test_calls_are_mended_with_the_receipts_of_a_post(model: str, upstream: str, tmp_path: Path) -> None:
    folder = tmp_path / "records"

    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        body = {"model": f"{SHORT[upstream]}/{model}", "input": QUESTION, "tools": [TOOL]}
        response = await socket.response(**body)
        assert ("get_weather", {"city": "Rome", "days": 3}) in calls_of(response)
        async with gateway.session.post(
            f"{gateway.url}/v1/responses", json=body | {"stream": True}
        ) as posted:
            await posted.read()
        by_post, by_socket = await receipts(gateway)
        for field in ("target", "stream", "outcome", "status", "mended", "rules", "warnings", "bytes_out"):
            assert by_socket[field] == by_post[field], field
        told = ("name", "before", "after", "rules", "fixes", "valid")
        assert [[call[f] for f in told] for call in by_socket["calls"]] == [
            [call[f] for f in told] for call in by_post["calls"]
        ]
        assert gateway.total("requests", outcome="ok") == 2

    play(scene, server=f'retries = 0\nrecord = "{folder}"')
    recordings = [load(path) for path in folder.iterdir()]
    read = [recording.request for recording in recordings if recording.request is not None]
    assert sorted(request.headers.get("upgrade", "") for request in read) == ["", "websocket"]
    assert len({(request.method, request.path) for request in read}) == 1
    for recording in recordings:
        assert replay(recording).same


def test_a_stored_response_can_be_continued_by_post() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        first = await socket.response("My name is Ada", model="c/demo")
        body = {"model": "c/demo", "input": "Who am I?", "previous_response_id": first["id"]}
        key = {"authorization": "Bearer k"}
        async with gateway.session.post(f"{gateway.url}/v1/responses", json=body, headers=key) as response:
            assert response.status == 200
        assert "Ada" in served.last.body.decode()

    play(scene)


def test_an_unstored_response_is_known_only_on_its_connection() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        first = await socket.response("My name is Ada", model="c/demo", store=False)
        async with connected(gateway) as other:
            error = await other.ask("Who am I?", model="c/demo", previous_response_id=first["id"])
            assert (error["status"], error["error"]["code"]) == (400, "previous_response_not_found")
            await other.works()
        await socket.response("Who am I?", model="c/demo", store=False, previous_response_id=first["id"])
        assert "Ada" in served.last.body.decode()
        assert gateway.state.memories.size > 0

    async def run() -> None:
        served = ScriptedUpstream()
        async with before(served) as gateway:
            async with connected(gateway) as socket:
                await scene(gateway, served, socket)
            assert await soon(lambda: gateway.state.memories.size == 0), "it is forgotten with its connection"

    asyncio.run(run())


@pytest.mark.parametrize(
    "failing",
    [
        {"input": [{"type": "function_call_output", "call_id": "call_none", "output": "?"}]},
        {"input": [{"type": "message", "role": "nobody", "content": "?"}]},
        {"input": "?", "model": "c/demo-500"},
        {"input": "?", "model": "c/demo-cut"},
    ],
    ids=["no such call", "unreadable", "upstream fails", "upstream breaks off"],
)
def test_a_failed_request_forgets_the_response_that_it_continues(failing: Event) -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        first = await socket.response("My name is Ada", model="c/demo", store=False)
        after = {"model": "c/demo", "store": False, "previous_response_id": first["id"]}
        assert (await socket.ask(**{**after, "tools": [TOOL], **failing}))["type"] != "response.completed"
        error = await socket.ask("Who am I?", **after)
        assert error["error"]["code"] == "previous_response_not_found"
        await socket.works()

    play(scene)


def test_a_failed_request_leaves_a_stored_response_stored() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        first = await socket.response("My name is Ada", model="c/demo")
        failed = await socket.ask("Who?", model="c/demo-500", previous_response_id=first["id"])
        assert failed["type"] == "error"
        await socket.response("Who am I?", model="c/demo", previous_response_id=first["id"])
        assert "Ada" in served.last.body.decode()

    play(scene)


def test_a_full_memory_drops_the_oldest_response() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        long = "word " * 20_000
        first = await socket.response(f"One {long}", model="c/demo", store=False)
        ids = [(await socket.response(f"{n} {long}", model="c/demo", store=False))["id"] for n in range(3)]
        error = await socket.ask("And?", model="c/demo", store=False, previous_response_id=first["id"])
        assert error["error"]["code"] == "previous_response_not_found"
        await socket.response("And?", model="c/demo", store=False, previous_response_id=ids[-1])

    async def run() -> None:
        served = ScriptedUpstream()
        async with before(served) as gateway:
            gateway.state.memories = Memories(250_000)
            async with connected(gateway) as socket:
                await scene(gateway, served, socket)
            assert gateway.state.memories.size <= 250_000

    asyncio.run(run())


@pytest.mark.parametrize("how", [{"generate": False}, {"prompt_cache_options": {"prewarm": True}}])
def test_a_warm_up_request_reaches_no_upstream(how: Event) -> None:
    """Codex sends one before its first request, and continues from it."""

    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        prompt = [{"type": "message", "role": "developer", "content": "Speak like a pirate"}]
        warm = await socket.response(prompt, model="c/demo", store=False, **how)
        assert (warm["output"], warm["usage"]["total_tokens"]) == ([], 0)
        assert served.seen == []
        response = await socket.response(
            "Hello there", model="c/demo", store=False, previous_response_id=warm["id"]
        )
        assert "Hello there" in text_of(response)
        assert [m["content"] for m in served.last.json["messages"]] == ["Speak like a pirate", "Hello there"]
        assert "generate" not in served.last.json
        assert (await socket.ask(prompt, **how))["status"] == 400, "it names no model"

    play(scene)


# Lanes


def test_lanes_are_answered_at_the_same_time() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        served.script(upstreams.stream(opening(RESPONSES), Wait(FOREVER)))
        await socket.send(input="Hello", model="r/m", stream_id="slow")
        await served.wait_seen(1)
        await socket.send(input="Hello there", model="c/demo", stream_id="fast")
        events = [await socket.next()]
        while events[-1]["type"] != "response.completed":
            events.append(await socket.next())
        fast = [event for event in events if event["stream_id"] == "fast"]
        assert "Hello there" in text_of(fast[-1]["response"])
        assert {event["stream_id"] for event in events} <= {"fast", "slow"}
        await socket.works()  # requests without a lane share one

    play(scene)


def test_one_lane_is_answered_in_order() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        for number in range(5):
            await socket.send(input=f"Number {number}", model="c/demo")
        for number in range(5):
            last = (await socket.answer())[-1]
            assert f"Number {number}" in text_of(last["response"])
            assert "stream_id" not in last

    play(scene)


def test_a_lane_continues_from_another_lane() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        first = await socket.response("My name is Ada", model="c/demo", store=False, stream_id="one")
        await socket.response(
            "Who?", model="c/demo", store=False, stream_id="two", previous_response_id=first["id"]
        )
        assert "Ada" in served.last.body.decode()

    play(scene)


def test_too_many_concurrent_requests_are_refused() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        served.otherwise = upstreams.stream(Wait(FOREVER))
        for number in range(MAX_LANES):
            await socket.send(input="Hello", model="c/m", stream_id=f"{number}")
        await socket.send(input="Hello", model="c/m", stream_id="one too many")
        error = await socket.next()
        assert (error["status"], error["stream_id"]) == (429, "one too many")
        await served.wait_seen(MAX_LANES)
        for _ in range(MAX_WAITING + 1):
            await socket.send(input="Hello", model="c/m", stream_id="0")
        error = await socket.next()
        assert (error["status"], error["error"]["code"]) == (429, "too_many_requests")

    play(scene)


def test_waiting_requests_are_limited_by_max_body() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        served.otherwise = upstreams.stream(Wait(FOREVER))
        for _ in range(4):
            await socket.send(input="x" * 3000, model="c/m")
        error = await socket.next()
        assert error["status"] == 429

    play(scene, server="retries = 0\nmax_body = 8000")


# Invalid messages


REFUSED: dict[str, tuple[str | bytes, str]] = {
    "not JSON": ("hello", "not valid JSON"),
    "half": ('{"type": "response.create", ', "not valid JSON"),
    "an array": ("[1]", "object"),
    "no type": ("{}", "type: null is unknown; send response.create"),
    "another type": ('{"type": "response.cancel"}', '"response.cancel" is unknown'),
    "a number": ('{"type": 7}', "type: 7"),
    "binary": (b'{"type": "response.create", "model": "c/demo", "input": "Hi"}', "text message"),
    "a bad lane": ('{"type": "response.create", "stream_id": 7}', "stream_id"),
    "a long lane": (json.dumps({"type": "response.create", "stream_id": "x" * 300}), "stream_id"),
    "background": ('{"type": "response.create", "background": true}', "background"),
    "generate": ('{"type": "response.create", "generate": "no"}', "generate"),
    "nothing asked": ('{"type": "response.create", "model": "c/demo"}', "input"),
    "no model": ('{"type": "response.create", "input": "Hi"}', "model"),
    "too deep": ('{"type": ' + "[" * 100_000 + "]" * 100_000 + "}", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_message_that_is_refused_leaves_the_connection_open(name: str) -> None:
    message, why = REFUSED[name]

    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        await socket.sdk.send_raw(message)
        error = await socket.next()
        assert (error["type"], error["status"]) == ("error", 400)
        assert error["error"]["type"] == "invalid_request_error"
        assert why in error["error"]["message"]
        assert served.seen == []
        await socket.works()

    play(scene)


def test_steering_is_refused_and_its_input_comes_back() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        steer = {"type": "response.steer", "previous_response_id": "resp_1", "input": "Stop it"}
        await socket.sdk.send(steer)
        failed = await socket.next()
        assert failed["type"] == "response.steer.failed"
        assert failed["error"]["code"] == "steering_not_supported"
        assert failed["steer"] == {"previous_response_id": "resp_1", "input": "Stop it"}
        await socket.works()

    play(scene)


def test_an_oversized_message_closes_the_connection() -> None:
    async def scene(gateway: Gateway, served: ScriptedUpstream, socket: Socket) -> None:
        await socket.send(input="x" * 10_000, model="c/demo")
        with pytest.raises(ConnectionClosed) as closed:
            await socket.next()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
        async with connected(gateway) as other:
            await other.works()

    play(scene, server="max_body = 8000")
