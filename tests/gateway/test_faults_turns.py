"""Conversations over several turns: carried reasoning, continued responses, reasked calls."""

import asyncio
import json
from typing import Any

import pytest
from gateway_harness import SHORT, Gateway, Got, ask, before, post, send
from support import scripted_upstream as upstreams
from support.scripted_talk import CALL, answered, calls_of, parts_of, question, reply_to, written
from support.scripted_upstream import ScriptedUpstream
from support.wires import ANTHROPIC, CHAT, GEMINI, PROTOCOLS, RESPONSES

CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)
BOTH = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
SEAL = b"c2NyaXB0ZWQ6"
"""How every signature of the scripted model begins."""
ENVELOPE = b"ZHJhZ29tYW4x"
REASK = '[tools]\ninvalid = "reask"'


def twin(url: str) -> str:
    """Another upstream of each protocol, at the same address."""
    return "\n".join(
        f'[upstreams.{name}2]\nprotocol = "{protocol}"\nbase_url = "{url}"\ncredential = "none"'
        for protocol, name in SHORT.items()
    )


@UPSTREAMS
@BOTH
def test_reasoning_comes_back_through_a_chat_client(stream: bool, upstream: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served) as gateway:
            request = question(f"{SHORT[upstream]}/demo-sealed", stream=stream)
            got = await send(gateway, CHAT, request)
            assert calls_of(got.said) == [CALL]
            request = answered(request, parts_of(got.said), "Sunny")
            closing = await send(gateway, CHAT, request)
            assert closing.status == 200, closing.body
            assert "“Sunny”" in closing.said["text"]
            if upstream != CHAT:
                assert SEAL in served.last.body

    asyncio.run(scene())


@pytest.mark.parametrize("upstream", [ANTHROPIC, RESPONSES, GEMINI])
def test_reasoning_reaches_no_other_upstream(upstream: str) -> None:
    async def scene() -> None:
        async with ScriptedUpstream() as elsewhere:
            served = ScriptedUpstream()
            async with before(served, more=twin(elsewhere.url)) as gateway:
                request = question(f"{SHORT[upstream]}/demo-sealed", stream=True)
                got = await send(gateway, CHAT, request)
                for name in SHORT.values():
                    there = request.changed(model=f"{name}2/demo")
                    there = answered(there, parts_of(got.said), "Sunny")
                    assert "“Sunny”" in (await send(gateway, CHAT, there)).said["text"]
                    assert SEAL not in elsewhere.last.body
                    assert ENVELOPE not in elsewhere.last.body
                # Nor another client: the key identifies the owner of a conversation.
                again = answered(request, parts_of(got.said), "Sunny")
                (await send(gateway, CHAT, again, x_api_key="somebody-else")).is_refusal(400)
                assert SEAL not in served.last.body

    asyncio.run(scene())


def continued(client: str, body: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """The next request of an agent that echoes the answer unchanged, with the result of its call."""
    if client == ANTHROPIC:
        call = next(block for block in answer["content"] if block["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "Sunny"}
        turns = [{"role": "assistant", "content": answer["content"]}, {"role": "user", "content": [result]}]
        return {**body, "messages": [*body["messages"], *turns]}
    if client == RESPONSES:
        call = next(item for item in answer["output"] if item["type"] == "function_call")
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Sunny"}
        return {**body, "input": [*body["input"], *answer["output"], result]}
    said = answer["candidates"][0]["content"]
    call = next(part["functionCall"] for part in said["parts"] if "functionCall" in part)
    result = {"name": call["name"], "response": {"output": "Sunny"}, "id": call.get("id")}
    turns = [said, {"role": "user", "parts": [{"functionResponse": result}]}]
    return {**body, "contents": [*body["contents"], *turns]}


@UPSTREAMS
@pytest.mark.parametrize("client", [ANTHROPIC, RESPONSES, GEMINI])
def test_reasoning_comes_back_through_clients_that_carry_it(client: str, upstream: str) -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream()) as gateway:
            path, data = written(client, question(f"{SHORT[upstream]}/demo-sealed", stream=False))
            body = json.loads(data)
            got = await post(gateway, client, path, data, stream=False)
            body = continued(client, body, json.loads(got.body))
            closing = await post(gateway, client, path, json.dumps(body).encode(), stream=False)
            assert closing.status == 200, closing.body
            assert "“Sunny”" in closing.said["text"]

    asyncio.run(scene())


async def respond(gateway: Gateway, body: dict[str, Any], **headers: str) -> Got:
    data = json.dumps(body).encode()
    return await post(gateway, RESPONSES, "/v1/responses", data, stream=body.get("stream", False), **headers)


@UPSTREAMS
@BOTH
@pytest.mark.parametrize("model", ["demo", "demo-sealed"])
def test_a_response_can_be_continued(model: str, stream: bool, upstream: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served) as gateway:
            _, data = written(RESPONSES, question(f"{SHORT[upstream]}/{model}", stream=stream))
            body = json.loads(data) | {"store": True}
            first = (await respond(gateway, body)).said
            call = first["tool_calls"][0]
            result = {"type": "function_call_output", "call_id": call["id"], "output": "Sunny"}
            body |= {"input": [result], "previous_response_id": first["id"]}
            second = await respond(gateway, body)
            assert second.status == 200, second.body
            assert "“Sunny”" in second.said["text"]
            assert b"Rome" in served.last.body, "the upstream has the whole conversation"
            # Continue once more.
            body |= {"input": "Thank you", "previous_response_id": second.said["id"]}
            assert (await respond(gateway, body)).status == 200
            assert b"Sunny" in served.last.body
            # Another client cannot.
            refused = await respond(gateway, body, authorization="Bearer somebody-else")
            assert "not found" in refused.is_refusal(400)
            assert b"previous_response_not_found" in refused.body

    asyncio.run(scene())


@CLIENTS
@UPSTREAMS
@BOTH
def test_an_invalid_call_is_reasked(stream: bool, upstream: str, client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served, more=REASK) as gateway:
            got = await ask(gateway, client, f"{SHORT[upstream]}/demo-invalid", stream=stream)
            assert calls_of(got.said) == [CALL]
            assert got.said["stop"] == "tool_use"
            assert len(served.seen) == 2
            usage = got.said["usage"]
            assert gateway.total("tokens", kind="input") == usage["input"]
            assert gateway.total("tokens", kind="output") == usage["output"]
            once = await ask(gateway, client, f"{SHORT[upstream]}/demo", stream=stream)
            assert usage["input"] > 2 * once.said["usage"]["input"] > 0, "usage counts both turns"

    asyncio.run(scene())


@CLIENTS
@UPSTREAMS
def test_a_reask_may_fail(upstream: str, client: str) -> None:
    """Sent text stays. An error follows, never a second answer."""

    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served, more=REASK, server="retries = 2") as gateway:
            unfit = reply_to(upstream, question("demo-invalid", stream=True))
            served.script(unfit, upstreams.status(500, b'{"error": {"message": "on fire"}}'))
            got = await ask(gateway, client, f"{SHORT[upstream]}/m")
            assert "on fire" in got.is_broken_off()
            assert got.said["tool_calls"] == []
            assert got.said["text"]
            assert len(served.seen) == 2

    asyncio.run(scene())
