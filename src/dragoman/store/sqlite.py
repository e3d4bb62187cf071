"""The embedded store: one SQLite file, or nothing but memory.

Several processes may share the file; what one has written, the others read. Values that have expired are
not given out, and are deleted a few at a time while others are written.

Another program may hold the file. Then nobody waits for longer than `_PATIENCE`: the caller gets StoreError,
and what was to be written is written when the file is free again (`worker.py`).
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from time import monotonic
from typing import TypeVar

from . import receipts as receipts_table
from .presence import Sign
from .reader import Reader, connect_to_read
from .schema import connect, problem
from .types import TURNS, Entry, Key, Receipt, Retention, StoreError, Wanted
from .worker import Worker

T = TypeVar("T")

# An entry that is written again unchanged need not be, unless it gains this much life: seconds.
_WORTH_IT = 3600.0
_PRUNE_WRITES = 500
_PRUNE_SECONDS = 60.0
_PRUNE_ROWS = 5000
_KEYS_AT_ONCE = 500
# Seconds: for a file that is held when it is opened, for one that is held later, and for an answer in all.
_OPENING = 5.0
_HELD = 0.25
_PATIENCE = 0.4
# Seconds in which nothing is read after a read that got no answer.
_RESTS = 1.0
_KEYS_AT_HAND = 16
"""So many are looked up by the event loop itself."""

_PUT = f"""INSERT INTO entries (namespace, key, value, expires) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires
    WHERE excluded.expires > expires + {_WORTH_IT} OR excluded.value != value"""


class SqliteStore:
    """`Store` over SQLite. For `path` None it lives in memory, and as long as the process."""

    def __init__(
        self,
        path: Path | None,
        *,
        retention: Retention | None = None,
        now: Callable[[], float] = time.time,
        wait: float = _HELD,
    ) -> None:
        """Raises StoreError. `wait`: how many seconds another process may keep us from the file."""
        self.path = path
        self.warning: str | None = None
        self._retention = retention or Retention()
        self._now = now
        self._pruner = _Pruner(self._retention, now)
        self._wait = wait
        connection = connect(path, _OPENING)
        connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        self._signs = {TURNS: Sign(path, TURNS, seen=_holds(connection, TURNS))}
        self._worker = Worker(connection, self._problem, self._pruner.after_writes)
        self._reader = _reader(path)
        self._second: Worker | None = None
        self._rests_until = 0.0

    def _problem(self, error: Exception) -> StoreError:
        return problem(self.path, error)

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        if not keys:
            return {}
        return await self._asked(lambda connection: _get(connection, keys, self._now()), len(keys))

    def may_hold(self, namespace: str) -> bool:
        sign = self._signs.get(namespace)
        return sign is None or sign.is_there()

    async def _asked(self, question: Callable[[sqlite3.Connection], T], size: int = 1) -> T:
        """At once if it is small, and else by the thread."""
        if self._reader is not None and size <= _KEYS_AT_HAND:
            answer = self._reader.ask(question)
            if answer is not None:
                return answer
        return await self._read(question)

    async def _read(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """By the thread, if it can answer soon."""
        if monotonic() < self._rests_until:
            raise self._silent()
        try:
            async with asyncio.timeout(_PATIENCE):
                return await asyncio.wrap_future(self._worker.submit(question, writes=False))
        except TimeoutError:
            self._rests_until = monotonic() + _RESTS
            raise self._silent() from None

    def _silent(self) -> StoreError:
        slow = f"the store {self.path or 'in memory'} did not answer within {_PATIENCE:g} s: its disk is slow"
        return StoreError(self._worker.trouble or slow)

    async def put(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        now = self._now()
        rows = [
            (e.key.namespace, e.key.key, e.value, now + self._retention.of(e.key.namespace).seconds)
            for e in entries
        ]
        size = sum(len(value) for _, _, value, _ in rows)
        job = self._worker.submit(lambda connection: self._put(connection, rows), writes=True, size=size)
        if self._worker.trouble:
            raise self._silent()
        try:
            async with asyncio.timeout(_PATIENCE):
                await asyncio.wrap_future(job)
        except TimeoutError:
            raise self._silent() from None

    def _put(self, connection: sqlite3.Connection, rows: Sequence[tuple[str, str, bytes, float]]) -> None:
        namespaces = {namespace for namespace, *_ in rows}
        for namespace in namespaces & self._signs.keys():
            self._signs[namespace].leave()
        connection.executemany(_PUT, rows)
        self._pruner.seen |= namespaces

    def add_receipts(self, receipts: Callable[[], Sequence[Receipt]]) -> Future[None]:
        made: list[Receipt] = []
        return self._worker.submit(
            lambda connection: receipts_table.add(connection, made),
            writes=True,
            first=lambda: made.extend(receipts()),
        )

    async def receipt(self, id: str) -> Receipt | None:
        return await self._read(lambda connection: receipts_table.one(connection, id))

    async def receipts(self, wanted: Wanted) -> list[Receipt]:
        searcher = self._searcher()
        job = searcher.submit(lambda connection: receipts_table.some(connection, wanted), writes=False)
        return await asyncio.wrap_future(job)

    def _searcher(self) -> Worker:
        """A search may take long: where the file can be opened twice, nothing waits for it."""
        if self.path is None:
            return self._worker
        if self._second is None:
            try:
                connection = connect_to_read(self.path, self._wait)
            except sqlite3.Error as error:
                raise self._problem(error) from None
            self._second = Worker(connection, self._problem, _nothing)
        return self._second

    async def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._second is not None:
            await asyncio.wrap_future(self._second.close())
        await asyncio.wrap_future(self._worker.close())


def _reader(path: Path | None) -> Reader | None:
    """What is in memory only one connection sees."""
    try:
        return None if path is None else Reader(path)
    except sqlite3.Error:
        return None  # the thread answers everything as well


def _nothing(connection: sqlite3.Connection, count: int) -> None:
    """Whoever only reads has nothing to tidy up."""


def _get(connection: sqlite3.Connection, keys: Sequence[Key], now: float) -> dict[Key, bytes]:
    by_namespace: dict[str, list[str]] = {}
    for namespace, key in keys:
        by_namespace.setdefault(namespace, []).append(key)
    found: dict[Key, bytes] = {}
    for namespace, wanted in by_namespace.items():
        for at in range(0, len(wanted), _KEYS_AT_ONCE):
            some = wanted[at : at + _KEYS_AT_ONCE]
            marks = ", ".join("?" * len(some))
            # The plus keeps SQLite from looking through everything that has not expired.
            rows = connection.execute(
                f"SELECT key, value FROM entries WHERE namespace = ? AND key IN ({marks}) AND +expires > ?",
                (namespace, *some, now),
            )
            found.update((Key(namespace, key), value) for key, value in rows)
    return found


def _holds(connection: sqlite3.Connection, namespace: str) -> bool:
    try:
        row = connection.execute("SELECT 1 FROM entries WHERE namespace = ? LIMIT 1", (namespace,)).fetchone()
    except sqlite3.Error:
        return True  # whoever looks is told what is wrong
    return row is not None


class _Pruner:
    """Keeps the store within its bounds, never for long at a time. Lives in the worker's thread."""

    def __init__(self, retention: Retention, now: Callable[[], float]) -> None:
        self.seen: set[str] = set()
        """The namespaces that were written to: others in the file have not grown."""
        self._retention = retention
        self._now = now
        self._writes = 0
        self._last = 0.0

    def after_writes(self, connection: sqlite3.Connection, count: int) -> None:
        self._writes += count
        now = self._now()
        if self._writes < _PRUNE_WRITES and abs(now - self._last) < _PRUNE_SECONDS:
            return
        self._writes, self._last = 0, now
        over = self._is_too_big(connection)
        for namespace in sorted(self.seen):
            keep = self._retention.of(namespace)
            rows = _Rows(connection, "entries", "expires", "namespace = ?", (namespace,))
            rows.prune(now, keep.rows, at_least=_PRUNE_ROWS if over else 0)
        keep = self._retention.receipts
        _Rows(connection, "receipts", "at", "?", (1,)).prune(now - keep.seconds, keep.rows)

    def _is_too_big(self, connection: sqlite3.Connection) -> bool:
        """Counts the room that is used: what is freed stays in the file, and is used again."""
        pages, free, size = (
            connection.execute(f"PRAGMA {what}").fetchone()[0]
            for what in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size > self._retention.bytes


class _Rows:
    """Some rows of a table, the oldest of which are to go; `age` is the column that says which."""

    def __init__(
        self, connection: sqlite3.Connection, table: str, age: str, where: str, values: tuple[str | int, ...]
    ) -> None:
        self._connection = connection
        self._age = age
        self._from = f"FROM {table} WHERE {where}"
        self._delete = f"DELETE FROM {table} WHERE rowid IN (SELECT rowid {self._from}"
        self._values = values

    def prune(self, until: float, most: int, at_least: int = 0) -> None:
        """Deletes what is as old as `until`, what is more than `most`, and `at_least` so many."""
        surplus = self._connection.execute(f"SELECT count(*) {self._from}", self._values).fetchone()[0] - most
        expired = f"{self._delete} AND {self._age} <= ? LIMIT ?)"
        gone = self._connection.execute(expired, (*self._values, until, _PRUNE_ROWS)).rowcount
        rest = min(max(surplus, at_least) - gone, _PRUNE_ROWS)
        if rest > 0:
            self._connection.execute(f"{self._delete} ORDER BY {self._age} LIMIT ?)", (*self._values, rest))
