"""A gateway and a scripted upstream on loopback, in a thread of their own, for clients that block."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from aiohttp import web

from dragoman.config import loads
from dragoman.gateway.app import create_app
from dragoman.gateway.state import State

T = TypeVar("T")


class Loop:
    """An event loop that runs beside the test."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T], timeout: float = 30) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

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


@contextmanager
def gateway(config: str, loop: Loop, env: dict[str, str] | None = None) -> Iterator[Gateway]:
    """Serve by `config` (TOML) until the block is left."""
    state = State(loads(config, env=env or {}), env=env or {})

    async def start() -> tuple[web.AppRunner, str]:
        runner = web.AppRunner(
            create_app(state), access_log=None, handler_cancellation=True, shutdown_timeout=2
        )
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"

    runner, url = loop.run(start())
    try:
        yield Gateway(url, state, loop)
    finally:
        loop.run(runner.cleanup())
