"""Small reads on the event loop's own thread.

Each turn of a conversation looks for carried reasoning, and nearly always there is none. That is one index
lookup of about 10 µs. Handing it to another thread and waking up again costs many times more. So the event
loop has its own read connection. It sees the writes of all processes and never waits: in WAL mode, writers do
not block readers. If the file is locked in another way, or the disk is slow, the worker thread (`worker.py`)
answers instead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

# Another thread may hold the GIL for some milliseconds. A longer read has waited for the disk.
_SLOW = 0.05
# Seconds without reads on the event loop after a slow one.
_PAUSE = 60.0


def connect_to_read(path: Path, wait: float) -> sqlite3.Connection:
    """Open an existing store for reading. `wait`: seconds to wait for a lock."""
    connection = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA query_only = ON")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


class InlineReader:
    """Runs one query at a time: two at once would share the snapshot of the first and miss later writes."""

    def __init__(self, path: Path) -> None:
        """Raises sqlite3.Error."""
        self._connection = connect_to_read(path, 0)
        self._paused_until = 0.0
        self._busy = Lock()  # an event loop of another thread may read too

    def run(self, query: Callable[[sqlite3.Connection], T]) -> T | None:
        """The result of `query`; None if it would have to wait. `query` must fetch all its rows."""
        began = monotonic()
        if began < self._paused_until or not self._busy.acquire(blocking=False):
            return None
        try:
            result = query(self._connection)
        except sqlite3.Error:
            return None  # the worker thread runs the query again, waits for locks, and reports the error
        finally:
            self._busy.release()
        if monotonic() - began > _SLOW:
            self._paused_until = began + _PAUSE
        return result

    def close(self) -> None:
        self._connection.close()
