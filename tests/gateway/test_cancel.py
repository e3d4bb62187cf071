"""A client that leaves at any stage: its upstream call is cancelled, nothing leaks, and it is counted."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest
from gateway_harness import SHORT, Gateway, RawClient, asking, before, soon
from support import scripted_upstream as upstreams
from support.scripted_talk import question, reply_to
from support.scripted_upstream import FOREVER, Reply, ScriptedUpstream, Wait
from support.wires import ANTHROPIC, PROTOCOLS
from test_faults_midstream import opening

CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)


async def all_cancelled(gateway: Gateway, *, exchanges: int = 1) -> None:
    """No exchange is running, and all were counted as cancelled."""
    assert await gateway.idle()
    assert gateway.total("open") == 0
    assert gateway.total("requests", outcome="cancelled") == exchanges
    assert gateway.total("requests") == exchanges


STAGES: dict[str, Callable[[str], Reply]] = {
    "before the head": lambda upstream: upstreams.slow_headers(FOREVER),
    "after the head": lambda upstream: upstreams.stream(Wait(FOREVER)),
    "after the beginning": lambda upstream: upstreams.stream(opening(upstream), Wait(FOREVER)),
    "in an error body": lambda upstream: Reply(status=500, steps=(b'{"error": ', Wait(FOREVER))),
}


@CLIENTS
@UPSTREAMS
def test_leaving_before_the_first_byte(upstream: str, client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as gateway, AsyncExitStack() as left:
            clients: list[RawClient] = []
            for make in STAGES.values():
                for stream in (True, False):
                    served.script(make(upstream))
                    clients.append(await left.enter_async_context(RawClient(gateway)))
                    await clients[-1].post(*asking(client, f"{SHORT[upstream]}/m", stream=stream))
                    await served.wait_seen(len(clients))
            await asyncio.sleep(0.02)
            for plain in clients:
                plain.leave()
            for seen in served.seen:
                assert await seen.wait_closed(1.0)
            await all_cancelled(gateway, exchanges=len(clients))

    asyncio.run(scene())


@CLIENTS
@UPSTREAMS
@pytest.mark.parametrize("model", ["demo-stall", "demo-endless"])
def test_leaving_in_the_middle_of_an_answer(model: str, upstream: str, client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as gateway, RawClient(gateway) as plain:
            await plain.post(*asking(client, f"{SHORT[upstream]}/{model}"))
            await plain.until(b"begins" if model == "demo-stall" else b"so on")
            plain.leave()
            assert await served.last.wait_closed(1.0)
            await all_cancelled(gateway)
            if upstream == ANTHROPIC:
                assert gateway.total("tokens", kind="input") > 0, "spent tokens are counted"

    asyncio.run(scene())


@CLIENTS
def test_leaving_during_the_pause_before_a_retry(client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served, server="retries = 5") as gateway, RawClient(gateway) as plain:
            served.script(upstreams.status(429, b"{}", retry_after="4"))
            await plain.post(*asking(client, "c/demo"))
            await served.wait_seen(1)
            await asyncio.sleep(0.05)
            assert gateway.state.lifecycle.running == 1
            plain.leave()
            await all_cancelled(gateway)
            assert len(served.seen) == 1

    asyncio.run(scene())


def test_leaving_during_a_reask() -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served, more='[tools]\ninvalid = "reask"') as gateway, RawClient(gateway) as plain:
            unfit = reply_to("anthropic", question("demo-invalid", stream=True))
            served.script(unfit, upstreams.slow_headers(FOREVER))
            await plain.post(*asking("openai-chat", "a/m"))
            seen = await served.wait_seen(2)
            plain.leave()
            assert await seen.wait_closed(1.0)
            await all_cancelled(gateway)
            assert gateway.total("tokens", kind="output") > 0, "the first turn counts"

    asyncio.run(scene())


@CLIENTS
def test_leaving_in_the_middle_of_the_request(client: str) -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream()) as gateway, RawClient(gateway) as plain:
            path, body = asking(client, "c/demo")
            await plain.post(path, body[:50], claimed=len(body))
            assert await soon(lambda: gateway.state.lifecycle.running == 1)
            plain.leave()
            await all_cancelled(gateway)

    asyncio.run(scene())


def test_leaving_without_reading(caplog: pytest.LogCaptureFixture) -> None:
    """The gateway notices while it writes. That is no error of the gateway or the upstream."""

    async def scene() -> None:
        served = ScriptedUpstream()
        frame = b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % (b"x" * 60_000)
        async with before(served) as gateway, RawClient(gateway) as plain:
            served.script(upstreams.never_ending(frame))
            await plain.post(*asking("openai-chat", "c/m"))
            await plain.until(b"xxx")
            await asyncio.sleep(0.2)
            plain.leave()
            assert await served.last.wait_closed(1.0)
            await all_cancelled(gateway)

    asyncio.run(scene())
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@CLIENTS
def test_many_clients_leaving_together(client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as gateway:
            crowd = [RawClient(gateway) for _ in range(40)]
            for number, plain in enumerate(crowd):
                await plain.__aenter__()
                await plain.post(*asking(client, f"{'acrg'[number % 4]}/demo-endless"))
            for plain in crowd:
                await plain.until(b"so on")
            assert gateway.state.lifecycle.running == 40
            for plain in crowd:
                plain.leave()
            assert await asyncio.gather(*(seen.wait_closed(1.0) for seen in served.seen)) == [True] * 40
            await all_cancelled(gateway, exchanges=40)
            tasks = [task for task in asyncio.all_tasks() if "Attempt" in repr(task)]
            assert tasks == []

    asyncio.run(scene())
