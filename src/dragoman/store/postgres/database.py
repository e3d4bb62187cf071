"""Connections to the database: opening, retries after a restart, deadlines, and errors as sentences."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg_pool import AsyncConnectionPool

from ..types import StoreError
from .address import NotOpen, PostgresAddress
from .schema import Connection, migrate

T = TypeVar("T")
Operation = Callable[[Connection], Awaitable[T]]

log = logging.getLogger("dragoman.store")

# PostgreSQL allows 100 connections by default, and each replica and worker has its own pool.
_MAX_CONNECTIONS = 4
# Seconds without attempts after the database did not answer, so that no exchange waits for it again.
_PAUSE = 1.0
# Seconds to wait for a connection, and to go on with one attempt to connect. The pool waits longer and longer
# between attempts, so a short one is begun again sooner when the database is back.
_CONNECTION_WAIT = 2.0
_RECONNECT = 3.0
# Seconds that a migration may take, here or at another replica that is waited for.
_MIGRATION = 3600.0
# Seconds between attempts to connect at the start.
_FIRST_RETRY, _LAST_RETRY = 0.5, 10.0
# The driver must not prepare statements: a connection of pgbouncer may be another one for each transaction.
_OPTIONS: dict[str, Any] = {"autocommit": True, "prepare_threshold": None}
_GONE = (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName)


class Database:
    """Lives on the loop of the store's thread."""

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._ready = False
        self._paused_until = 0.0
        self.problem = ""
        """Why nothing can be read or written at the moment, as a sentence."""
        self._opening: asyncio.Task[None] | None = None
        # Its warnings repeat what Dragoman says once.
        logging.getLogger("psycopg.pool").setLevel(logging.ERROR)
        self._pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            address.text.reveal(),
            connection_class=psycopg.AsyncConnection[tuple[Any, ...]],
            kwargs=_OPTIONS,
            min_size=1,
            max_size=_MAX_CONNECTIONS,
            open=False,
            name="dragoman",
            max_idle=60.0,
            reconnect_timeout=_RECONNECT,
        )

    async def open(self, wait: float) -> None:
        """Connect and bring the tables up to date. Raises StoreError if that takes longer than `wait`."""
        try:
            async with asyncio.timeout(wait):
                async with await psycopg.AsyncConnection.connect(
                    self._address.text.reveal(), **_OPTIONS
                ) as connection:
                    await migrate(connection, self._address.shown)
        except (psycopg.Error, TimeoutError, OSError) as error:
            failure = self._address.problem(error)
            self.problem = failure.message
            raise failure from None
        await self._pool.open()
        self._ready = True
        self.problem = ""

    def open_later(self) -> None:
        """Go on trying to open."""
        self._opening = asyncio.ensure_future(self._open_later())

    async def _open_later(self) -> None:
        seconds = _FIRST_RETRY
        while not self._ready:
            await asyncio.sleep(seconds)
            seconds = min(2 * seconds, _LAST_RETRY)
            try:
                await self.open(_MIGRATION)
            except StoreError:
                continue
            log.info("the store %s can be used now", self._address.shown)

    async def run(self, operation: Operation[T], wait: float, *, repeat: bool = True) -> T:
        """Run `operation` on a connection. Raises StoreError.

        `repeat`: after a lost connection, it may run a second time, because the first time has no effect
        or the same one.
        """
        if monotonic() < self._paused_until and not self._pool.get_stats().get("pool_available"):
            raise StoreError(self.problem or f"the store {self._address.shown} did not answer in time")
        try:
            return await self.attempt(operation, wait, repeat=repeat)
        except (psycopg.Error, TimeoutError, OSError) as error:
            failure = self._address.problem(error)
            if isinstance(error, (psycopg.OperationalError, TimeoutError, OSError)):
                self.problem = failure.message
                self._paused_until = monotonic() + _PAUSE
            raise failure from None

    async def attempt(self, operation: Operation[T], wait: float, *, repeat: bool = True) -> T:
        """As `run`, but raises the driver's own error, and tries even if the last attempt failed."""
        if not self._ready:
            raise NotOpen(self.problem)
        async with asyncio.timeout(wait):
            try:
                result = await self._once(operation, wait)
            except psycopg.OperationalError as error:
                self.problem = self._address.problem(error).message
                if not repeat:
                    raise
                await self._pool.check()  # after a restart, every idle connection is dead
                result = await self._once(operation, wait)
            except _GONE:  # the database was created again
                await self._once(lambda connection: migrate(connection, self._address.shown), wait)
                result = await self._once(operation, wait)
        self.problem = ""
        return result

    async def _once(self, operation: Operation[T], wait: float) -> T:
        async with self._pool.connection(timeout=min(wait, _CONNECTION_WAIT)) as connection:
            return await operation(connection)

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
        await self._pool.close(timeout=2)
