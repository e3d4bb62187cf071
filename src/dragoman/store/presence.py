"""Whether anything of a kind may be in a store's file, told without a look into it.

Every turn of a conversation asks whether reasoning was kept for it, and nearly nobody has any. SQLite needs
locks and a statement to say so. So whoever puts something there leaves an empty file beside the store's
before it can be found: as long as that is missing, no process has told anybody that it kept something.

Not SQLite's own `-shm`, which changes with every write as well: to close a file that SQLite has locked, even
one that was only read, takes those locks away from the whole process.
"""

from __future__ import annotations

import os
from pathlib import Path


class Sign:
    """One for each kind of entry."""

    __slots__ = ("_path", "_seen")

    def __init__(self, store: Path | None, kind: str, *, seen: bool) -> None:
        """`seen`: there are such entries already. Without a file there is nobody else to leave a sign for."""
        # As SQLite does it: whoever comes by a link is to find the same files.
        self._path = None if store is None else f"{os.path.realpath(store)}-{kind}"
        self._seen = seen

    def is_there(self) -> bool:
        """Did any process leave it?"""
        if not self._seen and self._path is not None:
            self._seen = os.access(self._path, os.F_OK)
        return self._seen

    def leave(self) -> None:
        """Before there is anything to be found. Raises OSError."""
        if self._path is not None:
            os.close(os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600))
        self._seen = True
