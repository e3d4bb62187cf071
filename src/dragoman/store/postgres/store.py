"""`Store` over PostgreSQL.

The gateway serves even if the database cannot be reached. Reads then fail at once, receipts wait
(`writer.py`), and the store connects as soon as it can.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TypeVar

import psycopg

from ...credentials.secret import Secret
from ..clock_jumps import ClockJumps
from ..types import (
    Addition,
    EntryKey,
    Pruned,
    Receipt,
    ReceiptQuery,
    Retention,
    ScoreQuery,
    ScoreRow,
    SessionQuery,
    SessionRow,
    StoredEntry,
    StoredKey,
    StoreError,
    StoreStatus,
    UsageQuery,
    UsageRow,
)  # fmt: skip
from . import partitions, pruning, receipts, tables
from .address import PostgresAddress
from .database import Database, Operation
from .schema import Connection
from .status import status
from .thread import LoopThread
from .writer import ReceiptWriter

T = TypeVar("T")

# Seconds to wait for an answer: of lookups that an exchange waits for, and of searches.
_MAX_WAIT = 1.0
_SEARCH_WAIT = 30.0
_WRITE_WAIT = 20.0
_PRUNE_WAIT = 600.0
_OPEN_WAIT = 15.0
_MIGRATION_WAIT = 3600.0
_PRUNE_SECONDS = 600.0


class PostgresStore:
    """`Store` over PostgreSQL."""

    def __init__(
        self,
        url: Secret,
        *,
        retention: Retention | None = None,
        now: Callable[[], float] = time.time,
        fallback: bool = True,
    ) -> None:
        """Raises StoreError. With `fallback`, a database that cannot be reached is tried again later."""
        self.warning: str | None = None
        self._address = PostgresAddress(url)
        self._retention = retention or Retention()
        self._now = now
        self._thread = LoopThread()
        try:
            self._thread.submit(self._open(fallback)).result()
        except BaseException:
            self._thread.close()
            raise

    async def _open(self, fallback: bool) -> None:
        self._database = Database(self._address)
        try:
            # A gateway serves meanwhile. A command has nothing else to do.
            await self._database.open(_OPEN_WAIT if fallback else _MIGRATION_WAIT)
        except StoreError as error:
            if not fallback:
                await self._database.close()
                raise
            self.warning = f"{error.message}; until then, receipts wait, and nothing else is stored"
            self._database.open_later()
        self._writer = ReceiptWriter(self._write_receipts, self._address.problem)
        self._upkeep = asyncio.ensure_future(self._keep_up())

    @property
    def problem(self) -> str:
        return self._writer.problem or self._database.problem

    def retain(self, retention: Retention) -> None:
        self._retention = retention

    def may_hold(self, namespace: str) -> bool:
        return True  # another machine may have put something there at any time

    async def get(self, keys: Sequence[EntryKey]) -> dict[EntryKey, bytes]:
        if not keys:
            return {}
        return await self._read(lambda connection: tables.get(connection, keys, self._now()))

    async def put(self, entries: Sequence[StoredEntry]) -> None:
        if not entries:
            return
        now = self._now()
        expires = [now + self._retention.of(entry.key.namespace).seconds for entry in entries]
        await self._write(lambda connection: tables.put(connection, entries, expires))

    def add_receipts(self, receipts: Callable[[], Sequence[Receipt]]) -> Future[None]:
        future: Future[None] = Future()
        self._thread.call(lambda: self._writer.add(receipts, future))
        return future

    async def receipt(self, id: str) -> Receipt | None:
        return await self._read(lambda connection: receipts.get(connection, id))

    async def receipts(self, query: ReceiptQuery) -> list[Receipt]:
        return await self._read(lambda connection: receipts.search(connection, query), _SEARCH_WAIT)

    async def export(self, since: float = 0.0, before: float = float("inf")) -> AsyncIterator[Receipt]:
        after = (since, "")
        while page := await self._read(partial(receipts.page, after=after, before=before), _SEARCH_WAIT):
            for receipt in page:
                yield receipt
            after = (page[-1].at, page[-1].id)

    async def usage(self, query: UsageQuery) -> list[UsageRow]:
        return await self._read(lambda connection: tables.find_usage(connection, query), _SEARCH_WAIT)

    async def scores(self, query: ScoreQuery) -> list[ScoreRow]:
        return await self._read(lambda connection: tables.find_scores(connection, query), _SEARCH_WAIT)

    async def sessions(self, query: SessionQuery) -> list[SessionRow]:
        return await self._read(lambda connection: tables.find_sessions(connection, query), _SEARCH_WAIT)

    async def put_key(self, key: StoredKey, *, replace: bool = True) -> bool:
        # A second attempt would find the name taken by the first.
        return await self._write(lambda connection: tables.put_key(connection, key, replace), repeat=replace)

    async def keys(self) -> list[StoredKey]:
        return await self._read(tables.keys)

    async def touch_keys(self, used: Mapping[str, float]) -> None:
        await self._write(lambda connection: tables.touch_keys(connection, used))

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        if not additions:
            return []
        now = self._now()
        return await self._write(lambda connection: tables.count(connection, additions, now), repeat=False)

    async def status(self) -> StoreStatus:
        return await self._read(lambda connection: status(connection, self._address.shown), _SEARCH_WAIT)

    async def prune(self) -> Pruned:
        return await self._read(self._prune, _PRUNE_WAIT)

    async def close(self) -> None:
        with suppress(StoreError):  # it is closed already
            await self._thread.run(self._close())
            await asyncio.to_thread(self._thread.close)

    async def _close(self) -> None:
        self._upkeep.cancel()
        await self._writer.close()
        await self._database.close()

    async def _read(self, operation: Operation[T], wait: float = _MAX_WAIT) -> T:
        return await self._thread.run(self._database.run(operation, wait))

    async def _write(self, operation: Operation[T], *, repeat: bool = True) -> T:
        """Write, even if the caller no longer waits for it."""
        work = self._database.run(operation, _MAX_WAIT, repeat=repeat)
        return await asyncio.shield(asyncio.wrap_future(self._thread.submit(work)))

    async def _write_receipts(self, made: Sequence[Receipt]) -> None:
        if not made:
            return
        days = {partitions.day_of(receipt.at) for receipt in made}

        async def write(connection: Connection) -> None:
            try:
                await receipts.add(connection, made)
            except psycopg.errors.CheckViolation:  # no partition for one of the days
                await partitions.create(connection, days)
                await receipts.add(connection, made)

        await self._database.attempt(write, _WRITE_WAIT)

    async def _prune(self, connection: Connection) -> Pruned:
        return await pruning.prune(connection, self._retention, self._now())

    async def _keep_up(self) -> None:
        """Make tomorrow's partition, and prune. Replicas that start together do so at different times."""
        jumps = ClockJumps()
        while True:
            now = self._now()
            steady = jumps.steady(now, monotonic())
            await asyncio.sleep(_PRUNE_SECONDS * random.uniform(0.1, 1.0))
            day = partitions.day_of(now)
            with suppress(StoreError):  # the next time does it
                await self._database.run(
                    lambda connection, day=day: partitions.create(connection, (day, day + 1)), _SEARCH_WAIT
                )
                if steady and jumps.steady(self._now(), monotonic()):
                    await self._database.run(self._prune, _PRUNE_WAIT)
