"""Keys and budgets of several gateways on one PostgreSQL."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.gateways import Gateway, Loop, gateway
from support.scripted_upstream import ScriptedUpstream, body, in_background

from dragoman.cli.commands import main
from dragoman.config import load
from dragoman.gateway.state import State

pytestmark = pytest.mark.usefixtures("patient")

ANSWER = b"""{"id": "c1", "object": "chat.completion", "created": 1, "model": "demo", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
], "usage": {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100}}"""
CHAT = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 100}


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        served.otherwise = body(ANSWER)
        yield served


@pytest.fixture
def config(upstream: ScriptedUpstream, database: str, tmp_path: Path) -> Path:
    file = tmp_path / "dragoman.toml"
    file.write_text(
        f"""
        [server]
        store = "{database}"
        retries = 0
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{upstream.url}"
        credential = "none"
        """
    )
    return file


@contextmanager
def running(config: Path, loop: Loop) -> Iterator[Gateway]:
    async def made() -> State:
        return State(load(config), env={})

    with gateway(loop.run(made()), loop) as served:
        yield served


def keys(config: Path, *words: str) -> str:
    result = CliRunner().invoke(main, ["keys", *words, "--config", str(config)])
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_two_gateways_share_keys_and_budgets(config: Path, upstream: ScriptedUpstream) -> None:
    loop = Loop()
    try:
        secret = keys(config, "create", "research", "--budget", "1000 tokens/day", "--streams", "50")
        with running(config, loop) as one, running(config, loop) as two:

            async def ask(served: Gateway) -> int:
                return (await served.ask("/v1/chat/completions", CHAT, **{"x-api-key": secret}))[0]

            async def all_at_once() -> list[int]:
                return list(await asyncio.gather(*[ask(served) for served in (one, two) for _ in range(25)]))

            statuses = loop.run(all_at_once())
            assert set(statuses) == {200, 429}
            assert statuses.count(200) == len(upstream.seen) <= 12

            keys(config, "revoke", "research")
            loop.run(asyncio.sleep(1.1))  # a gateway believes a key for a second
            assert [loop.run(ask(served)) for served in (one, two)] == [401, 401]
        assert "revoked" in keys(config, "list")
    finally:
        loop.close()
