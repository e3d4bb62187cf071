"""Notice that the file of an open store was deleted, moved away or replaced.

SQLite goes on with the file that it opened: what is written there would be lost without an error. The same
happens if a damaged file is moved away, as the error message advises.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import monotonic

# Seconds between two looks.
_INTERVAL = 1.0


class FileIdentity:
    """The file that a path named when it was opened. A store in memory (None) has no file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._opened = _identity(path)
        self._look_at = 0.0
        self._changed = False

    def changed(self) -> bool:
        """Does the path name another file now, or none? Looks at most once a second."""
        now = monotonic()
        if self._path is not None and now >= self._look_at:
            self._look_at = now + _INTERVAL
            self._changed = _identity(self._path) != self._opened
        return self._changed


def _identity(path: Path | None) -> tuple[int, int] | None:
    try:
        facts = os.stat(path) if path is not None else None
    except OSError:
        return None
    return None if facts is None else (facts.st_dev, facts.st_ino)
