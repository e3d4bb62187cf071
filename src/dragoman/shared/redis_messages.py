"""Messages between processes through Redis, and the connection that notices whether Redis is there."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, cast

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

log = logging.getLogger("dragoman.shared")

# Seconds of silence after which Redis is asked whether it is there, and for its answer.
_SILENCE = 5.0
_PONG = 5.0
# Seconds between attempts to connect.
_FIRST_RETRY, _LAST_RETRY = 0.25, 4.0
_MAX_WAITING = 10_000
"""Messages that wait to be sent. The oldest are lost first."""
# Messages in one pipeline, so that a long queue does not block the connection.
_MAX_SENT = 200
_ID = 16
"""The length of the id of a process, with which each message begins."""

_Listener = Callable[[bytes], None]


class PubSub(Protocol):
    """The part of redis-py's class that is used here: its own types are incomplete."""

    async def subscribe(self, *channels: str) -> None: ...
    async def unsubscribe(self, *channels: str) -> None: ...
    async def ping(self) -> None: ...
    async def get_message(self, **options: float) -> dict[str, Any] | None: ...


class RedisMessages:
    """The messages of one process."""

    def __init__(self, client: Redis, prefix: str, why: Callable[[BaseException], str]) -> None:
        self._client = client
        self._prefix = prefix
        self._why = why
        self._me = secrets.token_hex(_ID // 2).encode()
        self._listeners: dict[str, list[_Listener]] = {}
        self._connected: list[Callable[[], None]] = []
        self._outbox: deque[tuple[str, bytes]] = deque(maxlen=_MAX_WAITING)
        self._sending: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._pubsub: PubSub | None = None
        """Set while it is connected."""
        self._reported = False
        self.problem = "Redis has not answered yet"
        self._link = asyncio.get_running_loop().create_task(self._stay_connected())

    def publish(self, channel: str, message: bytes) -> None:
        if self._pubsub is None:
            return
        self._outbox.append((self._prefix + channel, self._me + message))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        try:
            while self._outbox:
                pipeline = cast(Any, self._client.pipeline(transaction=False))
                for _ in range(min(len(self._outbox), _MAX_SENT)):
                    pipeline.publish(*self._outbox.popleft())
                await pipeline.execute()
        except (RedisError, OSError):
            self._outbox.clear()  # the connection that listens will say what is wrong
        finally:
            self._sending = None

    def listen(self, channel: str, on_message: _Listener) -> Callable[[], None]:
        listeners = self._listeners.setdefault(self._prefix + channel, [])
        listeners.append(on_message)
        if len(listeners) == 1:
            self._change(self._prefix + channel, wanted=True)

        def end() -> None:
            listeners.remove(on_message)
            if not listeners:
                self._listeners.pop(self._prefix + channel, None)
                self._change(self._prefix + channel, wanted=False)

        return end

    def on_connect(self, call: Callable[[], None]) -> None:
        self._connected.append(call)

    def _change(self, channel: str, *, wanted: bool) -> None:
        """Tell Redis which channels are wanted. A new connection asks for all that have listeners."""
        if self._pubsub is not None:
            task = asyncio.create_task(self._tell(self._pubsub, channel, wanted))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _tell(self, pubsub: PubSub, channel: str, wanted: bool) -> None:
        with contextlib.suppress(RedisError, OSError):  # the reader sees the same, and connects again
            await (pubsub.subscribe(channel) if wanted else pubsub.unsubscribe(channel))

    async def _stay_connected(self) -> None:
        delay = _FIRST_RETRY
        while True:
            try:
                async with cast(Any, self._client).pubsub() as pubsub:
                    # Subscribe to an unused channel: the confirmation shows that Redis is there.
                    await pubsub.subscribe(self._prefix + "here")
                    await self._read(pubsub)
            except (RedisError, OSError) as error:
                delay = delay if self._reported else _FIRST_RETRY
                self._lost(error)
                # The idle connections of the pool are dead too.
                await self._client.connection_pool.disconnect(inuse_connections=False)
            finally:
                self._pubsub = None
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LAST_RETRY)

    async def _read(self, pubsub: PubSub) -> None:
        """Hand messages on until the connection breaks."""
        asked = True  # for a confirmation
        while True:
            message = await pubsub.get_message(timeout=_PONG if asked else _SILENCE)
            if message is not None:
                asked = False
                self._take(pubsub, message)
            elif asked:
                raise RedisConnectionError("no answer")
            else:
                asked = True
                await pubsub.ping()

    def _take(self, pubsub: PubSub, message: dict[str, Any]) -> None:
        if self._pubsub is None:
            self._found(pubsub)
        if message["type"] != "message":
            return
        sender, data = message["data"][:_ID], message["data"][_ID:]
        if sender == self._me:
            return
        for listener in tuple(self._listeners.get(message["channel"].decode(), ())):
            try:
                listener(data)
            except Exception:  # a message of another version must not end the connection
                log.exception("a message of another process cannot be read")

    def _found(self, pubsub: PubSub) -> None:
        self._pubsub = pubsub
        if self._reported:
            log.warning("Redis can be reached again: state is shared")
        self.problem, self._reported = "", False
        for channel in self._listeners:
            self._change(channel, wanted=True)
        for call in self._connected:
            call()

    def _lost(self, error: BaseException) -> None:
        self.problem = self._why(error)
        if not self._reported:
            self._reported = True
            log.warning("%s; until then this process goes on alone", self.problem)

    async def close(self) -> None:
        """Send what waits, and end."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=0.5)
        for task in (self._link, *self._tasks, *([self._sending] if self._sending else [])):
            task.cancel()
        await asyncio.gather(self._link, *self._tasks, return_exceptions=True)
