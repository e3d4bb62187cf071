"""Gateways that share a Redis: limits, cooldowns, the live feed, and what happens when Redis is gone."""

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import services
from support.plain_gateway import Gateway, running, soon
from support.scripted_upstream import FOREVER, ScriptedUpstream, Wait, body, status, stream

pytestmark = pytest.mark.usefixtures("patient")

ALICE, BOB, ADMIN = "alice-secret-12345", "bob-secret-1234567", "admin-secret-12345"
ANSWER = b"""{"id": "c1", "object": "chat.completion", "created": 1, "model": "demo", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
], "usage": {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}}"""
BEGUN = (
    b"""data: {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "demo", "choices": [
    {"index": 0, "delta": {"role": "assistant", "content": "Hel"}}]}""".replace(b"\n", b" ")
    + b"\n\n"
)


@pytest.fixture
def server() -> Iterator[services.Redis]:
    """A server that a test may stop."""
    found = services.Redis()
    try:
        found.start()
        yield found
    finally:
        found.close()


def config(upstream: ScriptedUpstream, server: services.Redis, more: str = "") -> str:
    return f"""
        [server]
        redis = "{server.url()}"
        retries = 0
        keys = ["{ADMIN}"]
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{upstream.url}"
        credential = "none"
        [keys.alice]
        secret = "{ALICE}"
        budget = "1000 tokens/day"
        [keys.bob]
        secret = "{BOB}"
        streams = 2
        {more}
    """


@asynccontextmanager
async def replicas(
    upstream: ScriptedUpstream, server: services.Redis, count: int = 2, more: str = ""
) -> AsyncGenerator[list[Gateway]]:
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(upstream)
        toml = config(upstream, server, more)
        found = [await stack.enter_async_context(running(toml)) for _ in range(count)]
        assert await soon(lambda: not any(one.state.shared.problem for one in found))
        yield found


async def ask(gateway: Gateway, key: str, **more: Any) -> tuple[int, dict[str, Any]]:
    chat = {"model": "demo", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 100, **more}
    headers = {"authorization": f"Bearer {key}"}
    async with gateway.session.post(
        gateway.url + "/v1/chat/completions", json=chat, headers=headers
    ) as answer:
        return answer.status, json.loads(await answer.read() or b"{}")


async def told(gateway: Gateway, path: str) -> tuple[int, dict[str, Any]]:
    async with gateway.session.get(gateway.url + path) as answer:
        return answer.status, await answer.json()


def test_a_budget_counts_at_every_replica(server: services.Redis) -> None:
    async def play() -> None:
        upstream = ScriptedUpstream()
        upstream.otherwise = body(ANSWER)
        async with replicas(upstream, server, 3) as found:
            answers = await asyncio.gather(*[ask(found[at % 3], ALICE) for at in range(60)])
            ran = [status for status, _ in answers].count(200)
            # Each request takes 100 tokens of 1000. Those that were under way may use the last one.
            assert {status for status, _ in answers} == {200, 429}
            assert ran <= 10
            while (await ask(found[0], ALICE))[0] == 200:
                ran += 1
            assert ran == 10
            assert [(await ask(one, ALICE))[0] for one in found] == [429] * 3

    asyncio.run(play())


def test_running_streams_count_at_every_replica(server: services.Redis) -> None:
    async def play() -> None:
        upstream = ScriptedUpstream()
        upstream.otherwise = stream(BEGUN, Wait(FOREVER))
        async with replicas(upstream, server) as found:
            first = [asyncio.create_task(ask(one, BOB, stream=True)) for one in found]
            await upstream.wait_seen(2)
            assert (await ask(found[0], BOB))[0] == 429
            first[1].cancel()
            await asyncio.gather(first[1], return_exceptions=True)
            assert await found[1].idle(10)
            upstream.otherwise = body(ANSWER)
            for _ in range(100):
                if (await ask(found[0], BOB))[0] == 200:
                    break
                await asyncio.sleep(0.05)
            else:
                raise AssertionError("the stream that ended still counts")
            first[0].cancel()
            await asyncio.gather(first[0], return_exceptions=True)

    asyncio.run(play())


def test_a_cooldown_is_known_to_all_and_to_a_new_replica(server: services.Redis) -> None:
    async def play() -> None:
        upstream = ScriptedUpstream()
        upstream.otherwise = status(429, b'{"error": {"message": "slow down"}}', retry_after="30")
        async with replicas(upstream, server) as (one, other):
            assert (await ask(one, ADMIN))[0] == 429
            for gateway in (one, other):
                assert await soon(lambda at=gateway: "up/demo" in at.state.upstreams.health.failing)
            seconds = other.state.upstreams.health.cooldown(
                "up/demo", other.state.upstreams.monotonic()
            ).seconds
            assert 20 < seconds <= 30
            async with running(config(upstream, server)) as new:
                assert await soon(lambda: "up/demo" in new.state.upstreams.health.failing)
            upstream.otherwise = body(ANSWER)
            assert (await ask(other, ADMIN))[0] == 200
            assert await soon(lambda: not one.state.upstreams.health.failing)

    asyncio.run(play())


async def feed(gateway: Gateway, key: str, seen: list[dict[str, Any]]) -> None:
    headers = {"authorization": f"Bearer {key}"}
    async with gateway.session.get(gateway.url + "/exchanges/live", headers=headers) as answer:
        async for line in answer.content:
            seen += [json.loads(line[6:])] if line.startswith(b"data: ") else []


def test_the_live_feed_of_any_replica_shows_all_that_the_key_may_see(server: services.Redis) -> None:
    async def play() -> None:
        upstream = ScriptedUpstream()
        upstream.otherwise = body(ANSWER)
        async with replicas(upstream, server) as (one, other):
            upstream.script(stream(BEGUN, Wait(FOREVER)))
            running = asyncio.create_task(ask(one, BOB, stream=True))  # begun before anybody watches
            await upstream.wait_seen(1)
            admin: list[dict[str, Any]] = []
            bob: list[dict[str, Any]] = []
            tasks = [asyncio.create_task(feed(other, ADMIN, admin))]
            tasks += [asyncio.create_task(feed(other, BOB, bob))]
            assert await soon(lambda: [each["outcome"] for each in bob] == ["running"])
            assert await soon(lambda: len(admin) > 0)
            await ask(one, ALICE)
            await ask(other, ALICE)
            assert await soon(lambda: sum(each["outcome"] == "ok" for each in admin) == 2)
            assert {each["key"] for each in admin} == {"alice", "bob"}
            running.cancel()
            assert await soon(lambda: bob[-1]["outcome"] == "cancelled")
            assert {each["key"] for each in bob} == {"bob"}
            for task in (*tasks, running):
                task.cancel()
            await asyncio.gather(*tasks, running, return_exceptions=True)

    asyncio.run(play())


def test_without_redis_each_replica_counts_alone_and_adds_it_later(
    server: services.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    async def play() -> None:
        upstream = ScriptedUpstream()
        upstream.otherwise = body(ANSWER)
        async with replicas(upstream, server) as found:
            assert (await told(found[0], "/healthz"))[1]["redis"] == "ok"
            assert [(await ask(one, ALICE))[0] for one in found] == [200] * 2
            server.kill()
            assert await soon(lambda: all(one.state.shared.problem for one in found))
            for one in found:
                health = (await told(one, "/healthz"))[1]
                assert (health["redis"], health["limits"]) == ("failing", "unshared")
                assert (await told(one, "/readyz"))[0] == 200
            # Each knows what its own receipts say, here one request of 100 tokens.
            assert [(await ask(found[0], ALICE))[0] for _ in range(4)] == [200] * 4
            assert await soon(lambda: not found[0].state.observed.ledger.pending)
            await asyncio.to_thread(server.start)
            assert await soon(lambda: not any(one.state.shared.problem for one in found))
            assert await soon(
                lambda: found[0].state.upstreams.monotonic() > found[0].state.limit_counters.paused_until
            )
            ran = 0
            while (await ask(found[0], ALICE))[0] == 200:
                ran += 1
            assert 5 <= ran <= 6  # 1000 tokens are 10 requests; at most one of the other replica is unknown
            assert (await told(found[0], "/healthz"))[1]["limits"] == "shared"

    with caplog.at_level(logging.WARNING):
        asyncio.run(play())
    assert "Redis can be reached again" in caplog.text
    assert "limits are shared again" in caplog.text
    assert server.password not in caplog.text


def test_limits_may_refuse_while_they_cannot_be_checked(server: services.Redis) -> None:
    async def play() -> None:
        upstream = ScriptedUpstream()
        upstream.otherwise = body(ANSWER)
        async with replicas(upstream, server, more='[limits]\nwhen_unshared = "refuse"') as (one, _):
            server.kill()
            assert await soon(lambda: bool(one.state.shared.problem))
            refused, error = await ask(one, ALICE)
            assert refused == 503
            assert "limits cannot be checked" in error["error"]["message"]
            assert (await ask(one, ADMIN))[0] == 200  # a key without limits needs nothing of Redis

    asyncio.run(play())


def test_a_gateway_starts_without_redis_and_uses_it_later(server: services.Redis) -> None:
    async def play() -> None:
        server.kill()
        upstream = ScriptedUpstream()
        upstream.otherwise = body(ANSWER)
        async with upstream, running(config(upstream, server)) as gateway:
            assert (await ask(gateway, ALICE))[0] == 200
            assert (await told(gateway, "/healthz"))[1]["redis"] == "failing"
            await asyncio.to_thread(server.start)
            assert await soon(lambda: not gateway.state.shared.problem)

    asyncio.run(play())
