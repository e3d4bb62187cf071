"""What must outlive a request: carried reasoning, the state of responses, receipts. Nothing else keeps state.

`Store` is the whole contract: entries by namespace and key that expire by themselves, and receipts by time.
What the entries mean is for `carry` and `responses_state` to know, so another store (PostgreSQL or Redis,
for several machines) has these few methods to write and nothing above it changes.
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
    """Every method raises StoreError where the store cannot do its work."""

    warning: str | None
    """One sentence for the log, where this is not the store that was asked for."""

    async def get(self, keys: Sequence[Key]) -> dict[Key, bytes]:
        """The values there are; what is missing or expired is left out."""
        ...

    def may_hold(self, namespace: str) -> bool:
        """False: no process that shares the store has put anything there. Told at once, or not at all."""
        ...

    async def put(self, entries: Sequence[Entry]) -> None:
        """All of them or none. When this returns, every process that shares the store reads them."""
        ...

    def add_receipts(self, receipts: Callable[[], Sequence[Receipt]]) -> Future[None]:
        """All of them or none. One of the same id is replaced.

        Nobody need wait for it: both making them and telling that they are written is done where the store
        does its work, which is not the event loop.
        """
        ...

    async def receipt(self, id: str) -> Receipt | None: ...

    async def receipts(self, wanted: Wanted) -> list[Receipt]:
        """The newest first, without their `value`."""
        ...

    async def close(self) -> None:
        """What was put before is written; nothing can be put after."""
        ...


def open_store(
    path: Path | None,
    *,
    retention: Retention | None = None,
    now: Callable[[], float] = time.time,
    fallback: bool = True,
) -> Store:
    """The store in the file `path`, or in memory for None.

    A file that cannot be used is no reason not to serve: with `fallback`, memory stands in for it and
    `warning` says so. Without, StoreError is raised.
    """
    try:
        return SqliteStore(path, retention=retention, now=now)
    except StoreError as error:
        if not fallback:
            raise
        store = SqliteStore(None, retention=retention, now=now)
        store.warning = f"{error.message}; until then memory stands in for it, and is lost at the end"
        return store
