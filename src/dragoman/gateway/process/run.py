"""Runs the gateway in this process, alone or as one of several workers on a port."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Callable

from ...config.types import Config
from ...model.errors import DragomanError
from ..state import State, watch_config
from .listener import GatewayServer
from .ratings import watch_ratings

log = logging.getLogger("dragoman.gateway")

Ready = Callable[[str], None]


async def serve(
    config: Config,
    *,
    ready: Ready | None = None,
    stop: asyncio.Event | None = None,
    shared_port: bool = False,
    signals: bool = True,
    pinned: frozenset[str] = frozenset(),
    make_state: Callable[[Config], State] = State,
) -> None:
    """Serve until SIGINT, SIGTERM or `stop`. Then let running answers finish within `shutdown_grace`.

    With `shutdown_delay`, new requests are taken a while longer, so that load balancers can go elsewhere.

    `pinned` are the keys of [server] that a reload of the config does not change. `signals=False` leaves the
    signals to the caller.
    """
    state = make_state(config)
    grace = config.server.shutdown_grace
    gateway = GatewayServer(state)
    try:
        await _listen(gateway, config, shared_port=shared_port)
        stop = stop or asyncio.Event()
        if signals:
            _on_signals(stop)
        if shared_port:
            _end_with_parent(stop)
        if ready is not None:
            ready(gateway.address)
        watchers = (
            asyncio.create_task(watch_config(state, pinned=pinned)),
            asyncio.create_task(watch_ratings(state)),
        )
        await stop.wait()
        for watcher in watchers:
            watcher.cancel()
        gateway.drain()
        await asyncio.sleep(config.server.shutdown_delay)
        if state.lifecycle.running:
            log.info(
                "answers under way may finish; a second signal ends them",
                extra={"streams": state.lifecycle.running, "at_most_seconds": grace},
            )
    finally:
        await gateway.stop(grace)


async def _listen(gateway: GatewayServer, config: Config, *, shared_port: bool) -> None:
    server = config.server
    try:
        await gateway.listen(server.host, server.port, shared_port=shared_port)
    except OSError as error:
        if server.unix is not None:
            raise DragomanError(
                f"cannot listen on {server.unix}: {_reason(error)}; give another server.unix"
            ) from None
        raise cannot_listen(server.host, server.port, error) from None


def cannot_listen(host: str, port: int, error: OSError) -> DragomanError:
    return DragomanError(f"cannot listen on {host}:{port}: {_reason(error)}; give another --host or --port")


def _reason(error: OSError) -> str:
    in_use = error.errno == errno.EADDRINUSE
    return "another program already listens there" if in_use else (error.strerror or str(error))


def reserve(host: str, port: int) -> socket.socket:
    """Bind `port` (0: a free one) for the workers that share it, without listening."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # The kernel distributes connections over all sockets that listen with SO_REUSEPORT.
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind((host.strip("[]"), port))
    except (OSError, AttributeError) as error:
        bound.close()
        if isinstance(error, AttributeError):
            raise DragomanError(
                "this system does not let processes share a port (SO_REUSEPORT); leave --workers out"
            ) from None
        raise cannot_listen(host, port, error) from None
    return bound


def _end_with_parent(stop: asyncio.Event) -> None:
    """Stop when the parent process dies. Otherwise its workers would keep the port."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        asyncio.get_running_loop().add_reader(parent.sentinel, stop.set)


def _on_signals(stop: asyncio.Event) -> None:
    """Stop at the first signal, and cancel running answers at the second."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def on_signal() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            continue  # a worker ignores SIGINT: its parent handles it
        # Only the main thread may handle signals. In another thread (tests, `dragoman run`), use `stop`.
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, on_signal)
