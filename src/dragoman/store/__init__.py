"""Persistent state: carried reasoning, stored responses, receipts, usage and keys.

`Store` is the whole contract: entries by namespace and key that expire, receipts by time with sums over them,
keys of the gateway, and counters. `reasoning.py` and `responses.py` define what the entries mean. Another
engine implements only these methods, and nothing above it changes.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from ..credentials.secret import Secret
from .sqlite import SqliteStore
from .sqlite import read_status as read_file_status
from .types import (
    ALIASES,
    DESCRIPTIONS,
    ISSUERS,
    ITEM_IDS,
    ITEMS,
    OWNERS,
    RESPONSES,
    SEARCHES,
    TURNS,
    Addition,
    EntryKey,
    Pruned,
    Receipt,
    ReceiptQuery,
    Retention,
    RetentionRule,
    ScoreCount,
    ScoreQuery,
    ScoreRow,
    SessionQuery,
    SessionRow,
    StoredEntry,
    StoredKey,
    StoreError,
    StoreStatus,
    UsageGroup,
    UsageQuery,
    UsageRow,
    micros,
)

__all__ = [
    "ALIASES",
    "DESCRIPTIONS",
    "ISSUERS",
    "ITEMS",
    "ITEM_IDS",
    "OWNERS",
    "RESPONSES",
    "SEARCHES",
    "TURNS",
    "Addition",
    "EntryKey",
    "Pruned",
    "Receipt",
    "ReceiptQuery",
    "Retention",
    "RetentionRule",
    "ScoreCount",
    "ScoreQuery",
    "ScoreRow",
    "SessionQuery",
    "SessionRow",
    "Store",
    "StoreError",
    "StoreStatus",
    "StoredEntry",
    "StoredKey",
    "UsageGroup",
    "UsageQuery",
    "UsageRow",
    "micros",
    "open_store",
    "store_status",
]


class Store(Protocol):
    """Every method raises StoreError if the store fails."""

    warning: str | None
    """A sentence for the log if this store replaces the configured one; else None."""

    @property
    def problem(self) -> str:
        """Why writes fail or wait at the moment, as a sentence; empty if they do not. Must not wait."""
        ...

    async def get(self, keys: Sequence[EntryKey]) -> dict[EntryKey, bytes]:
        """The values of `keys`. Missing and expired keys are left out."""
        ...

    def may_hold(self, namespace: str) -> bool:
        """False: no process has put anything into `namespace`. Must not wait. True if it is not known."""
        ...

    async def put(self, entries: Sequence[StoredEntry]) -> None:
        """Write all entries or none. After this returns, every process that shares the store reads them."""
        ...

    def add_receipts(self, receipts: Callable[[], Sequence[Receipt]]) -> Future[None]:
        """Write all receipts or none, and add them to the usage and the scores.

        A receipt that is stored already is left alone.

        Callers need not wait. The store's own thread calls `receipts` to make them and resolves the future:
        neither costs time on the event loop.
        """
        ...

    async def receipt(self, id: str) -> Receipt | None: ...

    async def receipts(self, query: ReceiptQuery) -> list[Receipt]:
        """Matching receipts, newest first, without their `value` unless `details` is set."""
        ...

    def export(self, since: float = 0.0, before: float = float("inf")) -> AsyncIterator[Receipt]:
        """All receipts of that time, oldest first, with their `value`. Reads them in small batches."""
        ...

    async def usage(self, query: UsageQuery) -> list[UsageRow]:
        """Sums over receipts, ordered by group. Exact, and kept longer than the receipts."""
        ...

    async def scores(self, query: ScoreQuery) -> list[ScoreRow]:
        """Counts of targets, ordered by their columns. Exact, and kept as long as the usage."""
        ...

    async def sessions(self, query: SessionQuery) -> list[SessionRow]:
        """Conversations, the one with the newest request first. Kept no longer than receipts."""
        ...

    async def put_key(self, key: StoredKey, *, replace: bool = True) -> bool:
        """Write a key. False, and nothing is written, if its name is taken and `replace` is False."""
        ...

    async def keys(self) -> list[StoredKey]:
        """All keys, also expired and revoked ones, ordered by name."""
        ...

    async def touch_keys(self, used: Mapping[str, float]) -> None:
        """Set `last_used` of the keys with these names, unless it is later already."""
        ...

    async def add(self, additions: Sequence[Addition]) -> list[int]:
        """Add to counters, all or none, and return their new values. The names must differ.

        Atomic across all processes that share the store. If StoreError is raised, the additions may still be
        made. A counter whose time is over begins at 0.
        """
        ...

    async def status(self) -> StoreStatus: ...

    async def prune(self) -> Pruned:
        """Delete all that `retention` does not keep. Between writes, the store does this in small steps."""
        ...

    def retain(self, retention: Retention) -> None:
        """From now on, keep data as `retention` says. Entries that are stored already keep their time."""
        ...

    async def close(self) -> None:
        """Finish all writes. Later calls fail."""
        ...


def open_store(
    place: Path | Secret | None,
    *,
    retention: Retention | None = None,
    now: Callable[[], float] = time.time,
    fallback: bool = True,
) -> Store:
    """Open the store in a file, in a database of PostgreSQL (its address is a secret), or in memory for None.

    The gateway must serve even if the store is unusable. With `fallback`, a store in memory replaces a file,
    and a database is tried again until it can be used; `warning` says so. Without `fallback`, StoreError is
    raised.
    """
    if isinstance(place, Secret):
        with _driver():
            from .postgres import PostgresStore
        return PostgresStore(place, retention=retention, now=now, fallback=fallback)
    try:
        return SqliteStore(place, retention=retention, now=now)
    except StoreError as error:
        if not fallback:
            raise
        store = SqliteStore(None, retention=retention, now=now)
        store.warning = (
            f"{error.message}; until then, the store is in memory and is lost when the gateway stops"
        )
        return store


def store_status(place: Path | Secret) -> StoreStatus:
    """The status of a store without changing it, not even its tables. Raises StoreError."""
    if isinstance(place, Secret):
        with _driver():
            from .postgres import read_status
        return read_status(place)
    return read_file_status(place)


@contextmanager
def _driver() -> Generator[None]:
    """Say what to install if the driver of PostgreSQL, which is an extra, cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise StoreError(
            f"server.store names PostgreSQL, and its driver cannot be imported ({error}): "
            "install it with `pip install 'dragoman[postgres]'`"
        ) from None
