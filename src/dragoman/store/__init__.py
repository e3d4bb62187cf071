"""Persistent state: carried reasoning, stored responses and receipts. No other package keeps state.

`Store` is the whole contract: entries by namespace and key that expire, and receipts by time. `reasoning.py`
and `responses.py` define what the entries mean. So another store (PostgreSQL or Redis, for several machines)
implements only these methods, and nothing above it changes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from .sqlite import SqliteStore
from .types import (
    ALIASES,
    ISSUERS,
    ITEM_IDS,
    ITEMS,
    RESPONSES,
    TURNS,
    Entry,
    Keep,
    Key,
    Receipt,
    Retention,
    StoreError,
    Wanted,
)

__all__ = [
    "ALIASES",
    "ISSUERS",
    "ITEMS",
    "ITEM_IDS",
    "RESPONSES",
    "TURNS",
    "Entry",
    "Keep",
    "Key",
    "Receipt",
    "Retention",
    "Store",
    "StoreError",
    "Wanted",
    "open_store",
]


class Store(Protocol):
    """Every method raises StoreError if the store fails."""

    warning: str | None
    """A sentence for the log if this store replaces the configured one; else None."""

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        """The values of `keys`. Missing and expired keys are left out."""
        ...

    def may_hold(self, namespace: str) -> bool:
        """False: no process has put anything into `namespace`. Must not wait. True if it is not known."""
        ...

    async def put(self, entries: Sequence[Entry]) -> None:
        """Write all entries or none. After this returns, every process that shares the store reads them."""
        ...

    def add_receipts(self, receipts: Callable[[], Sequence[Receipt]]) -> Future[None]:
        """Write all receipts or none. A receipt with the same id is replaced.

        Callers need not wait. The store's own thread calls `receipts` to make them and resolves the future:
        neither costs time on the event loop.
        """
        ...

    async def receipt(self, id: str) -> Receipt | None: ...

    async def receipts(self, wanted: Wanted) -> list[Receipt]:
        """Matching receipts, newest first, without their `value`."""
        ...

    def retain(self, retention: Retention) -> None:
        """From now on, keep data as `retention` says. Entries that are stored already keep their time."""
        ...

    async def close(self) -> None:
        """Finish all writes. Later calls fail."""
        ...


def open_store(
    path: Path | None,
    *,
    retention: Retention | None = None,
    now: Callable[[], float] = time.time,
    fallback: bool = True,
) -> Store:
    """Open the store in the file `path`, or in memory for None.

    The gateway must serve even if the file is unusable. With `fallback`, a store in memory replaces it, and
    `warning` says so. Without `fallback`, StoreError is raised.
    """
    try:
        return SqliteStore(path, retention=retention, now=now)
    except StoreError as error:
        if not fallback:
            raise
        store = SqliteStore(None, retention=retention, now=now)
        store.warning = (
            f"{error.message}; until then, the store is in memory and is lost when the gateway stops"
        )
        return store
