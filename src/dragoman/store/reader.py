"""Small questions, answered where they are asked.

A conversation that goes on asks for its last turn, and nearly always there is nothing. That is one look into
an index, about 10 µs: a small part of what it takes to hand it to another thread and to be woken again. So
the event loop has a connection of its own. It reads what any process has written, and waits for nobody: in
WAL mode no writer keeps a reader out, and where something else does, or where the disk is slow, it says so
and the thread (`worker.py`) is asked instead.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Lock
from time import monotonic
from typing import TypeVar

T = TypeVar("T")

# A thread in between may keep us for some milliseconds; whatever takes longer has waited for its disk.
_SLOW = 0.05
_RESTS = 60.0


def connect_to_read(path: Path, wait: float) -> sqlite3.Connection:
    """A connection to a store that exists; `wait` is how many seconds others may hold it."""
    connection = sqlite3.connect(path, timeout=wait, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA query_only = ON")
    return connection


class Reader:
    """For one question at a time: two at once would share what the first one sees, and so miss what was
    written in between."""

    def __init__(self, path: Path) -> None:
        """Raises sqlite3.Error."""
        self._connection = connect_to_read(path, 0)
        self._rests_until = 0.0
        self._busy = Lock()  # with another event loop's question

    def ask(self, question: Callable[[sqlite3.Connection], T]) -> T | None:
        """None: it cannot be told at once. `question` takes all rows it wants before it returns."""
        began = monotonic()
        if began < self._rests_until or not self._busy.acquire(blocking=False):
            return None
        try:
            answer = question(self._connection)
        except sqlite3.Error:
            return None  # the thread will find the same, wait if that helps, and tell it well
        finally:
            self._busy.release()
        if monotonic() - began > _SLOW:
            self._rests_until = began + _RESTS
        return answer

    def close(self) -> None:
        self._connection.close()
