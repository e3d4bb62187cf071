"""The contract of shared state, over Redis or Valkey."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import services

from dragoman.credentials import open_credential, parse
from dragoman.credentials.base import ReadProblem
from dragoman.credentials.secret import Secret
from dragoman.shared import BatchedCounters, SharedState, SharedStateError, open_shared, redis_notes
from dragoman.shared import redis as engine
from dragoman.store import Addition

pytestmark = pytest.mark.usefixtures("patient")


@pytest.fixture
def server() -> Iterator[services.Redis]:
    """A server that a test may stop."""
    found = services.Redis()
    try:
        found.start()
        yield found
    finally:
        found.close()


@asynccontextmanager
async def processes(server: services.Redis, count: int = 2) -> AsyncGenerator[list[SharedState]]:
    """The shared state as `count` processes see it."""
    async with AsyncExitStack() as stack:
        found = [open_shared(Secret(server.url())) for _ in range(count)]
        for one in found:
            stack.push_async_callback(one.close)
        await eventually(lambda: not any(one.problem for one in found))
        yield found


async def eventually(true: Callable[[], object], within: float = 15.0) -> None:
    async with asyncio.timeout(within):
        while not true():  # noqa: ASYNC110 - other tasks and servers make it true
            await asyncio.sleep(0.01)


async def subscribed(one: SharedState, channel: str, count: int) -> None:
    """Wait until so many processes listen to `channel`."""
    client, name = one._client, one._prefix + channel  # type: ignore[attr-defined]
    async with asyncio.timeout(15):
        while (await client.pubsub_numsub(name))[0][1] != count:  # noqa: ASYNC110 - the server makes it true
            await asyncio.sleep(0.01)


async def noted(one: SharedState, *names: str) -> None:
    """Wait until the notes of a process in Redis are these."""
    client, notes = one._client, one._notes  # type: ignore[attr-defined]
    wanted = {name.encode() for name in names}
    async with asyncio.timeout(15):
        while {*await client.hkeys(notes._notes(notes._me))} != wanted:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)


def run(test: Callable[[list[SharedState]], Awaitable[None]], server: services.Redis, count: int = 2) -> None:
    async def play() -> None:
        async with processes(server, count) as found:
            await test(found)

    asyncio.run(play())


def later(seconds: float = 60.0) -> float:
    return time.time() + seconds


def test_counters_are_shared_and_end_with_their_time(server: services.Redis) -> None:
    async def test(both: list[SharedState]) -> None:
        one, other = both
        assert await one.add([Addition("a", 2, later()), Addition("b", 5, later(2))]) == [2, 5]
        assert await other.add([Addition("a", 1, later()), Addition("b", -7, later())]) == [3, -2]
        assert await one.add([Addition("a", 0, later())]) == [3]
        async with asyncio.timeout(20):  # the time of a counter is that of its first addition
            while await one.add([Addition("b", 0, later())]) != [0]:  # noqa: ASYNC110 - the server forgets it
                await asyncio.sleep(0.05)
        assert await other.add([Addition("b", 1, later()), Addition("a", 0, later())]) == [1, 3]
        assert await one.add([]) == []

    run(test, server)


def test_additions_of_all_processes_see_each_other(server: services.Redis) -> None:
    async def test(found: list[SharedState]) -> None:
        counters = [BatchedCounters(one) for one in found]
        both = [Addition("a", 1, later()), Addition("b", 10, later())]
        values = await asyncio.gather(*[one.add(both) for _ in range(50) for one in counters])
        assert sorted(values) == [[number, 10 * number] for number in range(1, 151)]

    run(test, server, 3)


def test_amounts_are_exact_beyond_32_bits(server: services.Redis) -> None:
    async def test(both: list[SharedState]) -> None:
        await both[0].add([Addition("micros", 9_000_000_000_000_001, later())])
        assert await both[1].add([Addition("micros", -1, later())]) == [9_000_000_000_000_000]

    run(test, server)


def test_messages_reach_the_other_processes_only(server: services.Redis) -> None:
    async def test(found: list[SharedState]) -> None:
        heard: list[tuple[int, bytes]] = []
        ends = [
            one.listen("news", lambda data, at=at: heard.append((at, data))) for at, one in enumerate(found)
        ]
        await subscribed(found[0], "news", 3)
        found[0].publish("news", b"hello \xff")
        found[0].publish("elsewhere", b"unheard")
        await eventually(lambda: len(heard) == 2)
        assert sorted(heard) == [(1, b"hello \xff"), (2, b"hello \xff")]
        ends[1]()
        await subscribed(found[0], "news", 2)
        found[0].publish("news", b"again")
        await eventually(lambda: len(heard) == 3)
        assert heard[-1] == (2, b"again")

    run(test, server, 3)


def test_databases_of_one_server_do_not_mix(server: services.Redis) -> None:
    async def test(found: list[SharedState]) -> None:
        heard: list[bytes] = []
        found[0].listen("news", heard.append)
        other = open_shared(Secret(server.url(1)))
        await eventually(lambda: not other.problem)
        await subscribed(found[0], "news", 1)
        assert await found[0].add([Addition("a", 1, later())]) == [1]
        assert await other.add([Addition("a", 1, later())]) == [1]
        other.publish("news", b"wrong")
        found[1].publish("news", b"right")
        await eventually(lambda: heard)
        await asyncio.sleep(0.1)
        assert heard == [b"right"]
        await other.close()

    run(test, server)


def test_a_lock_is_held_by_one_and_freed_if_its_holder_dies(
    server: services.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(found: list[SharedState]) -> None:
        inside = most = 0

        async def hold(one: SharedState) -> None:
            nonlocal inside, most
            async with one.lock("token"):
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.05)
                inside -= 1

        await asyncio.gather(*[hold(one) for one in found for _ in range(3)])
        assert most == 1
        monkeypatch.setattr(engine, "_LOCKED", 0.5)
        dying = found[0].lock("token")
        await dying.__aenter__()
        async with asyncio.timeout(20), found[1].lock("token"):
            pass

    run(test, server)


def test_one_process_gets_the_notes_of_a_dead_one(
    server: services.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_notes, "_DEAD", 5.0)
    monkeypatch.setattr(redis_notes, "_BEAT", 0.1)

    async def test(found: list[SharedState]) -> None:
        dead, *living = found
        for one in found:
            one.note("x1", b"begun")
            one.note("x2", b"over")
            one.note("x2", None)
            one.note("x3", b"over")
        await noted(dead, "x1", "x3")
        for one in found:
            one.note("x3", None)
        await noted(dead, "x1")
        assert await living[0].take_orphaned() == []
        dead._notes._beating.cancel()  # type: ignore[attr-defined]
        taken: list[list[bytes]] = []
        async with asyncio.timeout(30):
            while not any(taken):
                taken = await asyncio.gather(*[one.take_orphaned() for one in living])
        assert sorted(taken) == [[], [b"begun"]]

    run(test, server, 3)


def test_a_process_that_ends_in_order_leaves_nothing_behind(server: services.Redis) -> None:
    async def test(found: list[SharedState]) -> None:
        found[0].note("x1", b"begun")
        await noted(found[0], "x1")
        await found[0].close()
        assert await found[1].take_orphaned() == []

    run(test, server)


def test_a_lost_server_fails_at_once_and_is_reconnected(server: services.Redis) -> None:
    async def test(both: list[SharedState]) -> None:
        heard: list[bytes] = []
        connected: list[int] = []
        both[1].listen("news", heard.append)
        both[1].on_connect(lambda: connected.append(1))
        await both[0].add([Addition("a", 1, later())])
        server.kill()
        await eventually(lambda: both[0].problem and both[1].problem)
        assert server.password not in both[0].problem
        with pytest.raises(SharedStateError) as failed:
            await both[0].add([Addition("a", 1, later())])
        assert f"127.0.0.1:{server.port}" in failed.value.message
        both[0].publish("news", b"lost")
        both[0].note("x1", b"lost")
        async with both[0].lock("token"):
            pass
        await asyncio.to_thread(server.start)
        await eventually(lambda: not both[0].problem and not both[1].problem)
        await subscribed(both[0], "news", 1)
        assert connected == [1]
        assert await both[0].add([Addition("a", 1, later())]) == [1]
        both[0].publish("news", b"back")
        await eventually(lambda: heard)
        assert heard == [b"back"]

    run(test, server)


def test_a_wrong_password_is_reported_without_showing_it(server: services.Redis) -> None:
    async def test(found: list[SharedState]) -> None:
        other = open_shared(Secret(server.url().replace(server.password, "wrong-secret")))
        await eventually(lambda: "password" in other.problem)
        assert "wrong-secret" not in other.problem
        with pytest.raises(SharedStateError, match="refused the user or the password"):
            await other.add([Addition("a", 1, later())])
        await other.close()

    run(test, server)


def test_an_address_that_is_none_is_refused() -> None:
    async def play() -> None:
        with pytest.raises(SharedStateError, match=r"server\.redis is not a valid address") as failed:
            open_shared(Secret("http://:secret@localhost"))
        assert "secret" not in failed.value.message.replace("server.redis", "")

    asyncio.run(play())


def test_replicas_refresh_a_token_one_at_a_time(server: services.Redis, tmp_path: Path) -> None:
    """Many providers take a refresh token only once: a second use ends the session of its owner."""
    file = tmp_path / "creds.json"
    file.write_text(json.dumps({"access_token": "old", "refresh_token": "r0", "expires_at": time.time() + 5}))
    used: list[str] = []

    async def post(url: str, fields: Mapping[str, Secret], body: str) -> tuple[int, bytes] | ReadProblem:
        token = fields["refresh_token"].reveal()
        await asyncio.sleep(0.1)
        if token in used:
            return 400, b'{"error": "invalid_grant"}'
        used.append(token)
        new = {"access_token": "new", "refresh_token": f"r{len(used)}", "expires_in": 3600}
        return 200, json.dumps(new).encode()

    async def test(found: list[SharedState]) -> None:
        given = {
            "oauth": str(file),
            "token_url": "https://auth.example/t",
            "write_back": True,
        }
        spec = parse(given)
        sources = [open_credential(spec, post=post, lock=one.lock) for one in found]
        tokens = await asyncio.gather(*[source.token() for source in sources])
        assert {token.secret.reveal() for token in tokens if token.secret} == {"new"}
        assert used == ["r0"]
        for source in sources:
            await source.close()

    run(test, server, 3)
