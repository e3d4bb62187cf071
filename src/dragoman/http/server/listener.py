"""Listening on a port, and ending well: answers under way may finish, within a bound."""

from __future__ import annotations

import asyncio
import contextlib
from time import monotonic

from .connection import Connection
from .routes import Handler

_BACKLOG = 1024
# Seconds after which a connection on which nothing is asked is closed, and how often that is looked at.
_IDLE = 75.0
_SWEEP = 5.0


class Listener:
    """Gives every request to `handler`, which always has an answer."""

    def __init__(self, handler: Handler, *, max_body: int) -> None:
        self.handler = handler
        self.max_body = max_body
        self.closing = False
        self.connections: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        """One for each connection."""
        self.loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._alone = asyncio.Event()
        self._sweep: asyncio.TimerHandle | None = None

    async def listen(self, host: str, port: int, *, reuse_port: bool = False) -> None:
        self._server = await self.loop.create_server(
            lambda: Connection(self), host, port, backlog=_BACKLOG, reuse_port=reuse_port or None
        )
        self._sweep = self.loop.call_later(_SWEEP, self._close_idle)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first socket."""
        assert self._server is not None
        return self._server.sockets[0].getsockname()[:2]

    async def stop(self, grace: float) -> None:
        """No new requests; those under way may take `grace` seconds."""
        self.closing = True
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
        for connection in tuple(self.connections):
            connection.close_if_idle()
        try:
            if self.connections:
                self._alone.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(grace):
                        await self._alone.wait()
        finally:
            await self._end()

    def joined(self, connection: Connection, task: asyncio.Task[None]) -> None:
        """A client is there, and the task that answers it."""
        self.connections.add(connection)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def left(self, connection: Connection) -> None:
        """A client is gone, with all that was sent to it."""
        self.connections.discard(connection)
        if not self.connections:
            self._alone.set()

    async def _end(self) -> None:
        tasks = tuple(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in tuple(self.connections):
            if connection.transport is not None:
                connection.transport.abort()
        await asyncio.sleep(0)  # so that they hear of it

    def _close_idle(self) -> None:
        self._sweep = self.loop.call_later(_SWEEP, self._close_idle)
        longest = monotonic() - _IDLE
        for connection in tuple(self.connections):
            if connection.busy_since < longest:
                connection.close_if_idle()
