"""Running the gateway: one process or several on one port, and a shutdown that lets answers finish."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.context import SpawnProcess

from aiohttp import web

from .config.types import Config
from .gateway.app import create_app
from .gateway.state import State, watch_config

log = logging.getLogger("dragoman.gateway")


async def serve(
    config: Config,
    *,
    ready: Callable[[str], None] | None = None,
    stop: asyncio.Event | None = None,
    shared_port: bool = False,
) -> None:
    """Serve until a signal (or `stop`) says otherwise, then let running answers finish, within a bound."""
    state = State(config)
    server = config.server
    runner = web.AppRunner(
        create_app(state),
        access_log=None,
        handler_cancellation=True,  # the client is gone: the upstream call ends with its handler
        shutdown_timeout=server.shutdown_grace,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, server.host, server.port, reuse_port=shared_port or None)
        await site.start()
        stop = stop or asyncio.Event()
        _on_signals(stop)
        if ready is not None:
            ready(_address(runner))
        watcher = asyncio.create_task(watch_config(state))
        await stop.wait()
        watcher.cancel()
        if state.running:
            log.info("finishing", extra={"streams": state.running, "at_most_seconds": server.shutdown_grace})
    finally:
        await runner.cleanup()


def _address(runner: web.AppRunner) -> str:
    host, port = runner.addresses[0][:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _on_signals(stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Only the main thread of a process may listen for signals; elsewhere `stop` is the way.
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, stop.set)


class Workers:
    """Several processes on one port. One that dies is replaced; a signal ends them all."""

    def __init__(self, count: int, work: Callable[[], None]) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._work = work
        self._processes: list[SpawnProcess] = [self._start() for _ in range(count)]

    def _start(self) -> SpawnProcess:
        process = self._context.Process(target=self._work)
        process.start()
        return process

    def run(self) -> None:
        stopping = False

        def stop(*_: object) -> None:
            nonlocal stopping
            stopping = True
            for process in self._processes:
                if process.pid is not None and process.is_alive():
                    process.terminate()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        while not stopping:
            for number, process in enumerate(self._processes):
                process.join(timeout=0.5)
                if not process.is_alive() and not stopping:
                    log.warning("a worker ended and is replaced", extra={"code": process.exitcode})
                    self._processes[number] = self._start()
        for process in self._processes:
            process.join()
