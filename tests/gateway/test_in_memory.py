"""The whole gateway without sockets: client and upstream are in memory, by the contracts of `transport/`."""

import asyncio

import pytest
from gateway_harness import SHORT, Got, asking, config
from support.memory_http import MemoryClient, opening
from support.scripted_talk import CALL, calls_of
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman.config import loads
from dragoman.conform.scripted import ScriptedModel
from dragoman.conform.scripted.server import play, reply_to
from dragoman.gateway.app import App
from dragoman.gateway.state import State
from dragoman.transport.server import HttpRequest, Stream

UPSTREAM, GATEWAY = "http://upstream.invalid", "http://localhost"


async def scripted(request: HttpRequest) -> Stream:
    """The upstream."""
    return await play(request, reply_to(ScriptedModel(), request, await request.read()), pace=0)


async def asked(client: MemoryClient, protocol: str, model: str, *, stream: bool) -> Got:
    path, body = asking(protocol, model, stream=stream)
    answer = await client.request("POST", GATEWAY + path, {"content-type": "application/json"}, body)
    return Got(protocol, stream, answer.status, dict(answer.headers), await answer.read(1 << 30))


@pytest.mark.parametrize("protocol", [ANTHROPIC, CHAT, RESPONSES, GEMINI])
def test_every_call_arrives(protocol: str) -> None:
    async def scene() -> None:
        state = State(loads(config(UPSTREAM), env={}), env={}, client=opening(scripted))
        try:
            async with MemoryClient(App(state).answer) as client:
                for name in SHORT.values():
                    for stream in (True, False):
                        got = await asked(client, protocol, f"{name}/demo", stream=stream)
                        assert got.status == 200
                        assert calls_of(got.said) == [CALL]
        finally:
            await state.close()

    asyncio.run(scene())


def test_a_cut_upstream_is_an_error() -> None:
    async def cut(request: HttpRequest) -> Stream:
        stream = Stream(request, headers={"content-type": "text/event-stream"})
        await stream.write(b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n')
        raise RuntimeError("a fault of the upstream's")

    async def scene() -> None:
        state = State(loads(config(UPSTREAM), env={}), env={}, client=opening(cut))
        try:
            async with MemoryClient(App(state).answer) as client:
                got = await asked(client, ANTHROPIC, "c/demo", stream=True)
                assert got.is_broken_off()
        finally:
            await state.close()

    asyncio.run(scene())
