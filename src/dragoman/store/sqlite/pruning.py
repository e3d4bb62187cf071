"""Deletes expired and surplus rows in small batches, on the worker thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from time import monotonic

from ..clock_jumps import ClockJumps
from ..scores import day_of
from ..types import Pruned, Retention
from ..usage import HOUR

# Prune after so many writes, or after this time. A pass deletes few rows at once, so that answers do not wait
# for the writer.
_PRUNE_WRITES = 500
_PRUNE_SECONDS = 60.0
_PRUNE_ROWS = 5000


class Pruner:
    """Keeps the store as `retention` says."""

    def __init__(self, retention: Retention, now: Callable[[], float]) -> None:
        self.written: set[str] = set()
        """Namespaces that this process wrote to. Others need no pruning between its writes."""
        self.retention = retention
        self._now = now
        self._jumps = ClockJumps()
        self._writes = 0
        self._last = 0.0

    def after_writes(self, connection: sqlite3.Connection, count: int) -> None:
        self._writes += count
        now = self._now()
        if self._writes < _PRUNE_WRITES and abs(now - self._last) < _PRUNE_SECONDS:
            return
        self._writes, self._last = 0, now
        if self._jumps.steady(now, monotonic()):
            self._prune(connection, now, self.written)

    def step(self, connection: sqlite3.Connection) -> Pruned:
        """One batch of all that may go."""
        namespaces = {name for (name,) in connection.execute("SELECT DISTINCT namespace FROM entries")}
        return self._prune(connection, self._now(), namespaces)

    def _prune(self, connection: sqlite3.Connection, now: float, namespaces: set[str]) -> Pruned:
        at_least = _PRUNE_ROWS if self._is_too_big(connection) else 0
        entries = 0
        for namespace in sorted(namespaces):
            rule = self.retention.of(namespace)
            rows = _Rows(connection, "entries", "expires", "namespace = ?", (namespace,))
            entries += rows.prune(now, rule.rows, at_least)
        rule = self.retention.receipts
        receipts = _Rows(connection, "receipts", "at", "?", (1,)).prune(
            now - rule.seconds, rule.rows, at_least
        )
        connection.execute("DELETE FROM counters WHERE expires <= ?", (now,))
        for table, seconds in (("usage", self.retention.usage), ("usage_by_session", rule.seconds)):
            connection.execute(f"DELETE FROM {table} WHERE hour < ?", (int((now - seconds) // HOUR),))
        connection.execute("DELETE FROM scores WHERE day < ?", (day_of(now - self.retention.usage),))
        connection.execute("DELETE FROM sessions WHERE last < ?", (now - rule.seconds,))
        return Pruned(receipts, entries)

    def _is_too_big(self, connection: sqlite3.Connection) -> bool:
        """Compare the used pages with the limit. Freed pages stay in the file, and SQLite uses them again."""
        return used_bytes(connection) > self.retention.bytes


def used_bytes(connection: sqlite3.Connection) -> int:
    """The size of the file without its free pages."""
    pages, free, size = (
        connection.execute(f"PRAGMA {what}").fetchone()[0]
        for what in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


class _Rows:
    """A set of rows to prune. `age` is the column that tells which are the oldest."""

    def __init__(
        self, connection: sqlite3.Connection, table: str, age: str, where: str, values: tuple[str | int, ...]
    ) -> None:
        self._connection = connection
        self._age = age
        self._from = f"FROM {table} WHERE {where}"
        self._delete = f"DELETE FROM {table} WHERE rowid IN (SELECT rowid {self._from}"
        self._values = values

    def prune(self, until: float, most: int, at_least: int = 0) -> int:
        """Delete rows up to `until`, rows beyond `most`, and at least `at_least` rows."""
        surplus = self._connection.execute(f"SELECT count(*) {self._from}", self._values).fetchone()[0] - most
        expired = f"{self._delete} AND {self._age} <= ? LIMIT ?)"
        deleted = self._connection.execute(expired, (*self._values, until, _PRUNE_ROWS)).rowcount
        rest = min(max(surplus, at_least) - deleted, _PRUNE_ROWS)
        if rest > 0:
            oldest = f"{self._delete} ORDER BY {self._age} LIMIT ?)"
            deleted += self._connection.execute(oldest, (*self._values, rest)).rowcount
        return deleted
