"""The change check for files, by `stat`."""

from __future__ import annotations

import os
import time

from .base import Stamp

SETTLING = 2.0
"""Seconds after a change before equal marks prove that the file is unchanged.

Time stamps of file systems have steps of milliseconds up to two seconds (FAT). SQLite makes a commit visible
only after the flush, without another write. A younger file is read for every request, which is cheap and
short.
"""


def file_stamp(*paths: str, inode_changes: bool = True) -> Stamp:
    """Marks that differ if one of the files was changed, replaced, created or removed.

    `inode_changes` also detects copies with the old date, and changed permissions. Do not use it for SQLite:
    as root, SQLite sets the owner of the `-wal` file at each open, and that changes the ctime.
    """
    marks: list[tuple[int, ...] | None] = []
    newest = 0.0
    for path in paths:
        try:
            stat = os.stat(path)
        except OSError:
            marks.append(None)
            continue
        changed = stat.st_ctime_ns if inode_changes else 0
        marks.append((stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, changed))
        newest = max(newest, stat.st_mtime)
    return Stamp(tuple(marks), settled=newest + SETTLING < time.time())
