"""A client that leaves, at any stage: its upstream is let go at once, nothing stays behind, all counts."""

import asyncio
from collections.abc import Callable

import pytest
from support import scripted_upstream as upstreams
from support.scripted_talk import question, reply_to
from support.scripted_upstream import FOREVER, Reply, ScriptedUpstream, Wait
from support.wires import ANTHROPIC, PROTOCOLS
from test_faults_midstream import opening
from troubles import SHORT, Gateway, Leaving, asking, before, soon

CLIENTS = pytest.mark.parametrize("client", PROTOCOLS)
UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)


async def is_over(gateway: Gateway, *, exchanges: int = 1) -> None:
    """Nothing is under way, and everything was counted as left by its client."""
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
def test_leaving_before_anything_was_said(upstream: str, client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as gateway:
            done = 0
            for make in STAGES.values():
                for stream in (True, False):
                    served.script(make(upstream))
                    async with Leaving(gateway) as plain:
                        await plain.post(*asking(client, f"{SHORT[upstream]}/m", stream=stream))
                        seen = await served.wait_seen(done + 1)
                        await asyncio.sleep(0.02)
                        plain.leave()
                        assert await seen.wait_closed(1.0)
                    done += 1
            await is_over(gateway, exchanges=done)

    asyncio.run(scene())


@CLIENTS
@UPSTREAMS
@pytest.mark.parametrize("model", ["demo-stall", "demo-endless"])
def test_leaving_in_the_middle(model: str, upstream: str, client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as gateway, Leaving(gateway) as plain:
            await plain.post(*asking(client, f"{SHORT[upstream]}/{model}"))
            await plain.until(b"begins" if model == "demo-stall" else b"so on")
            plain.leave()
            assert await served.last.wait_closed(1.0)
            await is_over(gateway)
            if upstream == ANTHROPIC:
                assert gateway.total("tokens", kind="input") > 0, "what was spent is counted"

    asyncio.run(scene())


@CLIENTS
def test_leaving_while_the_next_try_is_waited_for(client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served, server="retries = 5") as gateway, Leaving(gateway) as plain:
            served.script(upstreams.status(429, b"{}", retry_after="4"))
            await plain.post(*asking(client, "c/demo"))
            await served.wait_seen(1)
            await asyncio.sleep(0.05)
            assert gateway.state.running == 1
            plain.leave()
            await is_over(gateway)
            assert len(served.seen) == 1

    asyncio.run(scene())


def test_leaving_while_a_call_is_asked_for_again() -> None:
    async def scene() -> None:
        served = ScriptedUpstream()
        async with before(served, more='[tools]\ninvalid = "reask"') as gateway, Leaving(gateway) as plain:
            unfit = reply_to("anthropic", question("demo-invalid", stream=True))
            served.script(unfit, upstreams.slow_headers(FOREVER))
            await plain.post(*asking("openai-chat", "a/m"))
            seen = await served.wait_seen(2)
            plain.leave()
            assert await seen.wait_closed(1.0)
            await is_over(gateway)
            assert gateway.total("tokens", kind="output") > 0, "the first turn was spent"

    asyncio.run(scene())


@CLIENTS
def test_leaving_in_the_middle_of_the_request(client: str) -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream()) as gateway, Leaving(gateway) as plain:
            path, body = asking(client, "c/demo")
            await plain.post(path, body[:50], claimed=len(body))
            assert await soon(lambda: gateway.state.running == 1)
            plain.leave()
            await is_over(gateway)

    asyncio.run(scene())


def test_a_client_that_reads_nothing_and_leaves(caplog: pytest.LogCaptureFixture) -> None:
    """The gateway finds out while it writes: that is no fault, of nobody's."""

    async def scene() -> None:
        served = ScriptedUpstream()
        frame = b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % (b"x" * 60_000)
        async with before(served) as gateway, Leaving(gateway) as plain:
            served.script(upstreams.never_ending(frame))
            await plain.post(*asking("openai-chat", "c/m"))
            await plain.until(b"xxx")
            await asyncio.sleep(0.2)
            plain.leave()
            assert await served.last.wait_closed(1.0)
            await is_over(gateway)

    asyncio.run(scene())
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@CLIENTS
def test_many_leave_together(client: str) -> None:
    async def scene() -> None:
        served = ScriptedUpstream(pace=1)
        async with before(served) as gateway:
            crowd = [Leaving(gateway) for _ in range(40)]
            for number, plain in enumerate(crowd):
                await plain.__aenter__()
                await plain.post(*asking(client, f"{'acrg'[number % 4]}/demo-endless"))
            for plain in crowd:
                await plain.until(b"so on")
            assert gateway.state.running == 40
            for plain in crowd:
                plain.leave()
            assert await asyncio.gather(*(seen.wait_closed(1.0) for seen in served.seen)) == [True] * 40
            await is_over(gateway, exchanges=40)
            tasks = [task for task in asyncio.all_tasks() if "Attempt" in repr(task)]
            assert tasks == []

    asyncio.run(scene())
