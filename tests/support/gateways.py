"""A gateway and a scripted upstream on loopback, in a background thread, for blocking clients."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

import aiohttp

from dragoman.config import loads
from dragoman.gateway.process import event_loop as loop
from dragoman.gateway.process.listener import GatewayServer
from dragoman.gateway.state import State

from .scripted_upstream import ScriptedUpstream, in_background

T = TypeVar("T")


class Loop:
    """An event loop in a background thread."""

    def __init__(self) -> None:
        self._loop = loop.new()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout: float = 30) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Like `run`, without waiting for the end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Gateway:
    """A running gateway."""

    def __init__(self, url: str, state: State, loop: Loop) -> None:
        self.url = url
        self.state = state
        self.loop = loop

    async def ask(self, path: str, body: Any, **headers: str) -> tuple[int, bytes]:
        """A request whose client leaves when it is cancelled."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(self.url + path, json=body, headers=headers) as response,
        ):
            return response.status, await response.read()


@contextmanager
def gateway(config: str | State, loop: Loop, env: dict[str, str] | None = None) -> Iterator[Gateway]:
    """Serve with `config` (TOML, or a state) until the block ends."""
    state = config if isinstance(config, State) else State(loads(config, env=env or {}), env=env or {})

    async def start() -> tuple[GatewayServer, str]:
        listening = GatewayServer(state)
        await listening.listen("127.0.0.1", 0)
        return listening, listening.address

    listening, url = loop.run(start())
    try:
        yield Gateway(url, state, loop)
    finally:
        loop.run(listening.stop(2))


@contextmanager
def before_a_chat_upstream() -> Iterator[Gateway]:
    """A gateway with the scripted model as the Chat upstream `up`, without retries."""
    loop = Loop()
    with in_background(ScriptedUpstream()) as upstream:
        config = f"""
            [server]
            retries = 0
            [upstreams.up]
            protocol = "openai-chat"
            base_url = "{upstream.url}"
            credential = "none"
        """
        with gateway(config, loop) as served:
            yield served
    loop.close()
