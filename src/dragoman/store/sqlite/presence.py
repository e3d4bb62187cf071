"""Marker files that tell whether a namespace of the store may have entries, without a query.

Every turn of a conversation looks for carried reasoning, and nearly no conversation has any. A query costs
locks and a statement, a check for a file one system call. So a process creates an empty marker file next to
the store before it writes the first entry. While the file is missing, no process has entries to find.

Watching SQLite's own `-shm` file is no alternative: POSIX drops all locks of a process on a file when the
process closes any descriptor of it, so opening and closing `-shm` would break SQLite's locks.
"""

from __future__ import annotations

import os
from pathlib import Path


class PresenceMarker:
    """The marker of one namespace."""

    __slots__ = ("_path", "_seen")

    def __init__(self, store: Path | None, namespace: str, *, seen: bool) -> None:
        """`seen`: the store has entries already. A store in memory (None) needs no file."""
        # SQLite resolves links for its `-wal` too: processes that use different links share the marker.
        self._path = None if store is None else f"{os.path.realpath(store)}-{namespace}"
        self._seen = seen

    def exists(self) -> bool:
        """Has any process created the marker?"""
        if not self._seen and self._path is not None:
            self._seen = os.access(self._path, os.F_OK)
        return self._seen

    def create(self) -> None:
        """Call this before the first entry is visible. Raises OSError."""
        if self._path is not None:
            os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
        self._seen = True
