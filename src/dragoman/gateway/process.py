"""Running the gateway: one process, or several on one port, and a shutdown that lets answers finish."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import signal
import socket
from collections.abc import Callable

from ..config.types import Config
from ..model.errors import DragomanError
from .listener import GatewayServer
from .state import State, watch_config

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
) -> None:
    """Serve until a signal (or `stop`) says otherwise, then let running answers finish, within a bound.

    `pinned`: the keys of [server] that a changed config file does not change. `signals`: whether they are
    meant for the gateway at all.
    """
    state = State(config)
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
        watcher = asyncio.create_task(watch_config(state, pinned=pinned))
        await stop.wait()
        watcher.cancel()
        if state.running:
            log.info(
                "answers under way may finish; a second signal ends them",
                extra={"streams": state.running, "at_most_seconds": grace},
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
    taken = error.errno == errno.EADDRINUSE
    return "somebody else listens there" if taken else (error.strerror or str(error))


def reserve(host: str, port: int) -> socket.socket:
    """Hold `port` (0: a free one) for the processes that are to share it, without listening on it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind((host.strip("[]"), port))
    except (OSError, AttributeError) as error:
        held.close()
        if isinstance(error, AttributeError):
            raise DragomanError(
                "this system lets no two processes share a port: leave --workers out"
            ) from None
        raise cannot_listen(host, port, error) from None
    return held


def _end_with_parent(stop: asyncio.Event) -> None:
    """A worker whose parent was killed must not hold the port for ever."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        asyncio.get_running_loop().add_reader(parent.sentinel, stop.set)


def _on_signals(stop: asyncio.Event) -> None:
    """The first signal is a request, the second an order."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def told() -> None:
        if stop.is_set() and task is not None:
            task.cancel()
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is signal.SIG_IGN:
            continue  # a worker: its parent listens for it
        # Only the main thread of a process may listen for signals; elsewhere `stop` is the way.
        with contextlib.suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, told)
