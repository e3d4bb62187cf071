"""Shared state on Redis or Valkey, through redis-py.

A process has few connections to it, however many streams run: `batches.py` sends additions that wait
together, and messages that wait are sent together, too. Another connection only listens. It notices that the
server is gone.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast
from urllib.parse import urlsplit

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, RedisError, ResponseError

from ..credentials.secret import Secret
from ..store import Addition
from .contract import SharedStateError
from .redis_messages import RedisMessages
from .redis_notes import RedisNotes

log = logging.getLogger("dragoman.shared")

# Seconds for one command and for a connection. A request may wait for this, once: then this process counts
# alone for a while (`access/counters.py`).
_TIMEOUT = 1.0
_LOCKED = 30.0
"""Seconds after which a lock expires: the process that held it has died."""
# Seconds to wait for a lock. A request that waits longer goes on without it.
_LOCK_WAIT = 15.0
_LOCK_POLL = 0.1

# Counters are kept by their time to live, not by the clock of the server, which may differ from ours.
_ADD = """
local values = {}
for i, name in ipairs(KEYS) do
  values[i] = redis.call('INCRBY', name, ARGV[2 * i - 1])
  if redis.call('PTTL', name) < 0 then redis.call('PEXPIRE', name, ARGV[2 * i]) end
end
return values
"""
_RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"


class RedisState:
    """`SharedState` on Redis. Needs a running event loop. It connects, again and again, in the background."""

    def __init__(self, address: Secret, clock: Callable[[], float] = time.time) -> None:
        """Raises SharedStateError if `address` is not an address."""
        self._clock = clock
        url = address.reveal()
        try:
            self._place = _shown(url)
            self._client = Redis.from_url(  # pyright: ignore[reportUnknownMemberType]
                url,
                socket_timeout=_TIMEOUT,
                socket_connect_timeout=_TIMEOUT,
                # A second attempt could count twice.
                retry=Retry(NoBackoff(), 0),
                retry_on_timeout=False,
                client_name="dragoman",
            )
        except (ValueError, TypeError, RedisError):
            raise SharedStateError(
                "server.redis is not a valid address; write redis://USER:PASSWORD@HOST:PORT/NUMBER"
            ) from None
        # Channels are common to all databases of a server, so their names need the number. The braces keep
        # all names in one slot of a cluster: a script may use only one.
        number = int(self._client.connection_pool.connection_kwargs.get("db") or 0)
        self._prefix = f"{{dragoman:{number}}}:"
        self._messages = RedisMessages(self._client, self._prefix, self._why)
        self.publish = self._messages.publish
        self.listen = self._messages.listen
        self.on_connect = self._messages.on_connect
        self._notes = RedisNotes(self._client, self._prefix)
        self.note = self._notes.note

    @property
    def problem(self) -> str:
        return self._messages.problem

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        if not additions:
            return []
        now = self._clock()
        names = [self._prefix + addition.counter for addition in additions]
        numbers = [
            number
            for _, amount, expires in additions
            for number in (amount, max(1, round((expires - now) * 1000)))
        ]
        try:
            answer = self._client.eval(_ADD, len(names), *names, *cast(list[Any], numbers))
            return cast(list[int], await answer)
        except (RedisError, OSError) as error:
            raise SharedStateError(self._why(error)) from None

    async def take_orphaned(self) -> list[bytes]:
        try:
            return await self._notes.take_orphaned()
        except (RedisError, OSError) as error:
            raise SharedStateError(self._why(error)) from None

    @asynccontextmanager
    async def lock(self, name: str) -> AsyncGenerator[None]:
        key, token = f"{self._prefix}lock:{name}", secrets.token_hex(8)
        locked = await self._acquire(key, token)
        try:
            yield
        finally:
            if locked:
                await self._release(key, token)

    async def _acquire(self, key: str, token: str) -> bool:
        until = time.monotonic() + _LOCK_WAIT
        try:
            while not await self._client.set(key, token, nx=True, px=round(_LOCKED * 1000)):
                if time.monotonic() > until:
                    log.warning("another process holds a lock for a long time; going on without it")
                    return False
                await asyncio.sleep(_LOCK_POLL)
        except (RedisError, OSError) as error:
            log.warning("going on without a lock: %s", self._why(error))
            return False
        return True

    async def _release(self, key: str, token: str) -> None:
        try:
            await self._client.eval(_RELEASE, 1, key, token)
        except (RedisError, OSError) as error:
            log.warning("a lock stays for %g s: %s", _LOCKED, self._why(error))

    async def close(self) -> None:
        await self._notes.close()
        await self._messages.close()
        await self._client.aclose()

    def _why(self, error: BaseException) -> str:
        """A sentence without secrets: what a server says may repeat what it was sent."""
        where = f"Redis at {self._place}"
        if isinstance(error, AuthenticationError):
            return f"{where} refused the user or the password in server.redis; correct them"
        if isinstance(error, ResponseError):
            return f"{where} refused a command ({str(error).partition(' ')[0][:40]})"
        return f"{where} cannot be reached ({type(error).__name__}); check that it runs, and server.redis"


def _shown(url: str) -> str:
    """Host and port, or the path of a Unix socket: no password."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return parts.path
    return f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
