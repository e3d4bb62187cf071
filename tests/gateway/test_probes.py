"""`/livez`, `/readyz` and `/healthz`: what load balancers and clusters ask."""

import asyncio
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from gateway_harness import Gateway, config, running, soon
from support.plain_http import call
from support.processes import dragoman
from support.scripted_upstream import ScriptedUpstream

from dragoman.config import loads
from dragoman.gateway.state import State


async def told(gateway: Gateway, path: str) -> tuple[int, Any]:
    async with gateway.session.get(gateway.url + path) as answer:
        return answer.status, await answer.json()


def test_a_gateway_that_serves_is_ready() -> None:
    async def play() -> None:
        async with ScriptedUpstream() as upstream, running(config(upstream.url)) as gateway:
            assert await told(gateway, "/livez") == (200, {"status": "ok"})
            assert await told(gateway, "/readyz") == (200, {"status": "ready", "reasons": [], "store": "ok"})

    asyncio.run(play())


def test_a_store_that_was_never_usable_is_a_reason_and_one_that_fails_later_is_none(tmp_path: Path) -> None:
    (tmp_path / "store.db").write_bytes(b"this is no database, and it is long enough to be read as one" * 99)

    async def play() -> None:
        damaged = config("http://127.0.0.1:9", server=f'store = "{tmp_path}/store.db"')
        async with running(damaged) as gateway:
            status, body = await told(gateway, "/readyz")
            assert status == 503
            assert body["store"] == "failing"
            assert "the store cannot be used" in body["reasons"][0]
            assert str(tmp_path) not in str(body)  # anybody may ask
            assert (await told(gateway, "/livez"))[0] == 200
        async with running(config("http://127.0.0.1:9", server=f'store = "{tmp_path}/good.db"')) as gateway:
            gateway.state.store = Failing()  # type: ignore[assignment]
            status, body = await told(gateway, "/readyz")
            assert (status, body["store"]) == (200, "failing")

    asyncio.run(play())


class Failing:
    """A store that cannot be reached any more."""

    problem = "the database is gone"

    async def close(self) -> None: ...


def test_a_database_that_has_not_been_reached_yet_is_a_reason() -> None:

    async def play() -> None:
        server = 'store = "postgresql://user:hidden-word@127.0.0.1:9/none"'
        async with running(config("http://127.0.0.1:9", server=server)) as gateway:
            status, body = await told(gateway, "/readyz")
            assert status == 503
            assert "has not been reached" in body["reasons"][0]
            assert "hidden-word" not in str(body)

    asyncio.run(play())


def test_a_gateway_that_stops_says_so_while_it_still_serves(tmp_path: Path) -> None:
    (tmp_path / "dragoman.toml").write_text(
        """
        [server]
        port = 0
        shutdown_delay = "2s"
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "http://127.0.0.1:9"
        credential = "none"
        """
    )
    with dragoman(tmp_path, "serve") as process:
        url = process.ready()
        assert call(f"{url}/readyz").status == 200
        process.signal(signal.SIGTERM)
        while (got := call(f"{url}/readyz")).status == 200:
            pass
        assert got.status == 503
        assert got.json["reasons"] == ["the gateway stops"]
        assert call(f"{url}/livez").status == 200
        assert process.wait() == 0


def test_redis_is_reported_only_if_it_is_configured(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        server = 'redis = "redis://:hidden-word@127.0.0.1:9/0"'
        async with running(config("http://127.0.0.1:9", server=server)) as gateway:
            for path in ("/readyz", "/healthz"):
                status, body = await told(gateway, path)
                assert (status, body["redis"], body["limits"]) == (200, "failing", "unshared")
            assert await soon(lambda: "goes on alone" in caplog.text)

    asyncio.run(play())
    assert re.search(r"Redis at 127\.0\.0\.1:9 cannot be reached", caplog.text)
    assert "hidden-word" not in caplog.text


def test_without_redis_its_driver_is_not_imported(tmp_path: Path) -> None:
    import subprocess
    import sys

    code = "import sys, dragoman.cli.commands, dragoman.gateway.app; sys.exit('redis' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    monkeypatch.delitem(sys.modules, "dragoman.shared.redis", raising=False)

    async def play() -> None:
        with pytest.raises(Exception, match=r"pip install 'dragoman\[redis\]'"):
            State(loads(config("http://127.0.0.1:9", server='redis = "redis://localhost"'), env={}), env={})

    asyncio.run(play())


@pytest.mark.parametrize(
    ("written", "why"),
    [
        ("http://:word@host", "begins with redis://"),
        ("env:", "must name a variable"),
        ("localhost:6379", "begins with redis://"),
    ],
)
def test_an_address_of_redis_is_checked_and_never_repeated(written: str, why: str) -> None:
    with pytest.raises(Exception, match=why) as found:
        loads(config("http://127.0.0.1:9", server=f'redis = "{written}"'), env={})
    assert "word" not in str(found.value)


def test_the_address_of_redis_may_be_in_a_variable_or_a_file(tmp_path: Path) -> None:
    (tmp_path / "address").write_text("redis://one\n")
    for written in ("env:PLACE", f"file:{tmp_path}/address", "redis://one"):
        found = loads(config("http://127.0.0.1:9", server=f'redis = "{written}"'), env={}).server.redis
        assert found is not None
        assert found.resolve({"PLACE": "redis://one"}, "server.redis").reveal() == "redis://one"
        assert "redis://one" not in repr(found)
