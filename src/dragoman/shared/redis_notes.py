"""Notes of processes in Redis: a hash for each process, and a key that says that the process lives."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import RedisError

# Seconds between signs of life: a process may miss three of them.
_BEAT = 5.0
_DEAD = 20.0
"""Seconds without a sign of life after which a process counts as dead."""
_KEPT = 86_400
"""Seconds after which notes expire that no process has read."""
_MAX_WAITING = 50_000

_TAKE = """
if redis.call('EXISTS', KEYS[1]) == 1 then return {} end
local values = redis.call('HVALS', KEYS[2])
redis.call('DEL', KEYS[2])
redis.call('SREM', KEYS[3], ARGV[1])
return values
"""


class RedisNotes:
    """The notes of one process, and those of dead ones."""

    def __init__(self, client: Redis, prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        self._me = secrets.token_hex(8)
        self._waiting: dict[str, bytes] = {}
        self._gone: set[str] = set()
        self._signed = False
        self._writing: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None

    def note(self, name: str, value: bytes | None) -> None:
        if value is None:
            self._waiting.pop(name, None)
            self._gone.add(name)  # no hurry: the next sign of life takes it away
        elif len(self._waiting) < _MAX_WAITING:
            self._waiting[name] = value
            self._gone.discard(name)
            if self._beating is None:
                self._beating = asyncio.create_task(self._beat())
            if self._writing is None:
                self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        """Write what waits. What comes meanwhile is written together, next."""
        try:
            if not self._signed:  # notes of a process without a sign of life belong to the dead
                await self._sign()
            while self._waiting:
                waiting, self._waiting = self._waiting, {}
                await cast(Any, self._client).hset(self._notes(self._me), mapping=waiting)
        except (RedisError, OSError):
            self._waiting.clear()  # the gateway writes its notes again when there is a connection
        finally:
            self._writing = None

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            with contextlib.suppress(RedisError, OSError):
                await self._sign()

    async def _sign(self) -> None:
        """Give a sign of life, and take away the notes that are no longer needed."""
        gone, self._gone = self._gone, set[str]()
        pipeline = cast(Any, self._client.pipeline(transaction=True))
        pipeline.set(self._alive(self._me), b"1", px=round(_DEAD * 1000))
        pipeline.sadd(self._processes, self._me)
        if gone:
            pipeline.hdel(self._notes(self._me), *gone)
        pipeline.expire(self._notes(self._me), _KEPT)
        await pipeline.execute()
        self._signed = True

    async def take_orphaned(self) -> list[bytes]:
        client = cast(Any, self._client)
        found: list[bytes] = []
        for member in cast(set[bytes], await client.smembers(self._processes)):
            process = member.decode()
            if process != self._me and not await client.exists(self._alive(process)):
                keys = (self._alive(process), self._notes(process), self._processes)
                found += await cast(Awaitable[list[bytes]], client.eval(_TAKE, 3, *keys, process))
        return found

    @property
    def _processes(self) -> str:
        return f"{self._prefix}processes"

    def _alive(self, process: str) -> str:
        return f"{self._prefix}alive:{process}"

    def _notes(self, process: str) -> str:
        return f"{self._prefix}notes:{process}"

    async def close(self) -> None:
        """End in good order: this process leaves nothing behind."""
        if self._beating is None:
            return
        self._beating.cancel()
        if self._writing is not None:
            await asyncio.wait([self._writing], timeout=0.5)
        pipeline = cast(Any, self._client.pipeline(transaction=True))
        pipeline.delete(self._notes(self._me), self._alive(self._me))
        pipeline.srem(self._processes, self._me)
        try:
            await pipeline.execute()
        except (RedisError, OSError):
            return
