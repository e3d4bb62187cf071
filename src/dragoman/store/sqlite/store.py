"""`Store` over SQLite: one file, or memory.

Several processes may share the file, and each sees the writes of the others. Expired values are never
returned. They are deleted in small batches, together with writes.

If another program locks the file, callers wait at most `_MAX_WAIT` and then get StoreError. The write happens
when the file is free again (`worker.py`).
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TypeVar

from ..types import (
    TURNS,
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
from . import receipts as receipts_table
from . import tables
from .file_identity import FileIdentity
from .presence import PresenceMarker
from .pruning import Pruner
from .reader import InlineReader, connect_to_read
from .schema import connect, problem, status
from .worker import Worker

T = TypeVar("T")

log = logging.getLogger("dragoman.store")

# Skip writing an unchanged entry unless its expiry moves by at least this many seconds.
_MIN_EXTENSION = 3600.0
_KEYS_PER_QUERY = 500
# Seconds to wait for a lock while opening, for a lock later, and for an answer of the worker in total.
_OPEN_TIMEOUT = 5.0
_LOCK_TIMEOUT = 0.25
_MAX_WAIT = 0.4
_MAX_COUNTER_WAIT = 2.0
# Seconds without reads after a read that timed out.
_READ_PAUSE = 1.0
# Lookups of up to this many keys run on the event loop.
_INLINE_KEYS = 16

_PUT = f"""INSERT INTO entries (namespace, key, value, expires) VALUES (?, ?, ?, ?)
    ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires
    WHERE excluded.expires > expires + {_MIN_EXTENSION} OR excluded.value != value"""


class SqliteStore:
    """`Store` over SQLite. If `path` is None, it is in memory and ends with the process."""

    def __init__(
        self,
        path: Path | None,
        *,
        retention: Retention | None = None,
        now: Callable[[], float] = time.time,
        wait: float = _LOCK_TIMEOUT,
    ) -> None:
        """Raises StoreError. `wait`: seconds to wait for a lock of another process."""
        self.path = path
        self.warning: str | None = None
        self._retention = retention or Retention()
        self._now = now
        self._pruner = Pruner(self._retention, now)
        self._wait = wait
        connection = connect(path, _OPEN_TIMEOUT)
        connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        self._markers = {TURNS: PresenceMarker(path, TURNS, seen=_has_entries(connection, TURNS))}
        self._file = FileIdentity(path)
        self._worker = Worker(connection, self._problem, self._pruner.after_writes, self._renewed)
        self._inline = _inline_reader(path)
        self._search_worker: Worker | None = None
        self._paused_until = 0.0

    @property
    def problem(self) -> str:
        return self._worker.write_problem

    def retain(self, retention: Retention) -> None:
        self._retention = self._pruner.retention = retention

    def _renewed(self) -> sqlite3.Connection | None:
        """Open the file again if it was moved away or replaced. Runs on the worker thread."""
        if not self._file.changed():
            return None
        connection = connect(self.path, self._wait)
        connection.execute(f"PRAGMA busy_timeout = {int(self._wait * 1000)}")
        log.warning("the store %s was moved away or replaced: it is opened again", self.path)
        self._file = FileIdentity(self.path)
        old, self._inline = self._inline, _inline_reader(self.path)
        if old is not None:
            old.close()
        searcher, self._search_worker = self._search_worker, None
        if searcher is not None:
            searcher.close()
        return connection

    def _problem(self, error: Exception) -> StoreError:
        return problem(self.path, error)

    async def get(self, keys: Sequence[EntryKey]) -> dict[EntryKey, bytes]:
        if not keys:
            return {}
        return await self._query(lambda connection: _get(connection, keys, self._now()), len(keys))

    def may_hold(self, namespace: str) -> bool:
        marker = self._markers.get(namespace)
        return marker is None or marker.exists()

    async def _query(self, query: Callable[[sqlite3.Connection], T], size: int = 1) -> T:
        """Run a small query on the event loop, any other on the worker thread."""
        await self._renew_readers()
        if self._inline is not None and size <= _INLINE_KEYS:
            answer = self._inline.run(query)
            if answer is not None:
                return answer
        return await self._read(query)

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """Run a query on the worker thread. Raises StoreError if it takes too long."""
        if monotonic() < self._paused_until:
            raise self._unavailable()
        try:
            async with asyncio.timeout(_MAX_WAIT):
                return await asyncio.wrap_future(self._worker.submit(query, writes=False))
        except TimeoutError:
            self._paused_until = monotonic() + _READ_PAUSE
            raise self._unavailable() from None

    def _unavailable(self) -> StoreError:
        slow = f"the store {self.path or 'in memory'} did not answer within {_MAX_WAIT:g} s: check its disk"
        return StoreError(self._worker.write_problem or slow)

    async def put(self, entries: Sequence[StoredEntry]) -> None:
        if not entries:
            return
        now = self._now()
        rows = [
            (e.key.namespace, e.key.key, e.value, now + self._retention.of(e.key.namespace).seconds)
            for e in entries
        ]
        size = sum(len(value) for _, _, value, _ in rows)
        await self._write(lambda connection: self._put(connection, rows), size)

    async def _write(
        self, work: Callable[[sqlite3.Connection], T], size: int = 0, wait: float | None = None
    ) -> T:
        """Write, and wait for it. Raises StoreError if that takes too long; the write is then made later."""
        job = self._worker.submit(work, writes=True, size=size)
        if self._worker.write_problem:
            raise self._unavailable()
        try:
            async with asyncio.timeout(_MAX_WAIT if wait is None else wait):
                return await asyncio.wrap_future(job)
        except TimeoutError:
            raise self._unavailable() from None

    def _put(self, connection: sqlite3.Connection, rows: Sequence[tuple[str, str, bytes, float]]) -> None:
        namespaces = {namespace for namespace, *_ in rows}
        for namespace in namespaces & self._markers.keys():
            self._markers[namespace].create()
        connection.executemany(_PUT, rows)
        self._pruner.written |= namespaces

    def add_receipts(self, receipts: Callable[[], Sequence[Receipt]]) -> Future[None]:
        made: list[Receipt] = []

        def make() -> int:
            made.extend(receipts())
            return sum(receipt.size for receipt in made)

        return self._worker.submit(
            lambda connection: receipts_table.add(connection, made), writes=True, first=make
        )

    async def receipt(self, id: str) -> Receipt | None:
        return await self._read(lambda connection: receipts_table.get(connection, id))

    async def receipts(self, query: ReceiptQuery) -> list[Receipt]:
        return await self._search(lambda connection: receipts_table.search(connection, query))

    async def export(self, since: float = 0.0, before: float = float("inf")) -> AsyncIterator[Receipt]:
        after = (since, "")
        while page := await self._search(partial(receipts_table.page, after=after, before=before)):
            for receipt in page:
                yield receipt
            after = (page[-1].at, page[-1].id)

    async def usage(self, query: UsageQuery) -> list[UsageRow]:
        return await self._search(lambda connection: tables.find_usage(connection, query))

    async def scores(self, query: ScoreQuery) -> list[ScoreRow]:
        return await self._search(lambda connection: tables.find_scores(connection, query))

    async def sessions(self, query: SessionQuery) -> list[SessionRow]:
        return await self._search(lambda connection: tables.find_sessions(connection, query))

    async def put_key(self, key: StoredKey, *, replace: bool = True) -> bool:
        return await self._write(lambda connection: tables.put_key(connection, key, replace))

    async def keys(self) -> list[StoredKey]:
        return await self._query(tables.keys)

    async def touch_keys(self, used: Mapping[str, float]) -> None:
        await self._write(lambda connection: tables.touch_keys(connection, used))

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        now = self._now()
        # A late answer is better than none: without it, each process would count for itself.
        return await self._write(
            lambda connection: tables.count(connection, additions, now), wait=_MAX_COUNTER_WAIT
        )

    async def status(self) -> StoreStatus:
        return await self._search(lambda connection: status(connection, self.path))

    async def prune(self) -> Pruned:
        receipts = entries = 0
        while True:
            # Each step is a job of its own, so that other writes get in between.
            step = await asyncio.wrap_future(self._worker.submit(self._pruner.step, writes=True))
            receipts, entries = receipts + step.receipts, entries + step.entries
            if not (step.receipts or step.entries):
                return Pruned(receipts, entries)

    async def _renew_readers(self) -> None:
        """Let the worker open a file that was replaced: a reader would go on with the old one."""
        if self._file.changed():
            await self._read(_nothing)

    async def _search(self, query: Callable[[sqlite3.Connection], T]) -> T:
        await self._renew_readers()
        return await asyncio.wrap_future(self._searcher().submit(query, writes=False))

    def _searcher(self) -> Worker:
        """A search may be slow. A file has a second worker for it, so that nothing else waits."""
        if self.path is None:
            return self._worker
        if self._search_worker is None:
            try:
                connection = connect_to_read(self.path, self._wait)
            except sqlite3.Error as error:
                raise self._problem(error) from None
            self._search_worker = Worker(connection, self._problem, _no_cleanup)
        return self._search_worker

    async def close(self) -> None:
        await asyncio.wrap_future(self._worker.close())  # its last batch may still open the file again
        if self._search_worker is not None:
            await asyncio.wrap_future(self._search_worker.close())
        if self._inline is not None:
            self._inline.close()
            self._inline = None


def _inline_reader(path: Path | None) -> InlineReader | None:
    """None for a store in memory, which only one connection can see."""
    try:
        return None if path is None else InlineReader(path)
    except sqlite3.Error:
        return None  # the worker thread can answer everything


def _nothing(connection: sqlite3.Connection) -> None:
    """A query that only waits for the worker."""


def _no_cleanup(connection: sqlite3.Connection, count: int) -> None:
    """The search worker writes nothing, so it has nothing to prune."""


def _get(connection: sqlite3.Connection, keys: Sequence[EntryKey], now: float) -> dict[EntryKey, bytes]:
    by_namespace: dict[str, list[str]] = {}
    for namespace, key in keys:
        by_namespace.setdefault(namespace, []).append(key)
    found: dict[EntryKey, bytes] = {}
    for namespace, wanted in by_namespace.items():
        for at in range(0, len(wanted), _KEYS_PER_QUERY):
            some = wanted[at : at + _KEYS_PER_QUERY]
            marks = ", ".join("?" * len(some))
            # The plus stops SQLite from using the index on `expires`, which would scan all live entries.
            rows = connection.execute(
                f"SELECT key, value FROM entries WHERE namespace = ? AND key IN ({marks}) AND +expires > ?",
                (namespace, *some, now),
            )
            found.update((EntryKey(namespace, key), value) for key, value in rows)
    return found


def _has_entries(connection: sqlite3.Connection, namespace: str) -> bool:
    try:
        row = connection.execute("SELECT 1 FROM entries WHERE namespace = ? LIMIT 1", (namespace,)).fetchone()
    except sqlite3.Error:
        return True  # the next read reports the error
    return row is not None
