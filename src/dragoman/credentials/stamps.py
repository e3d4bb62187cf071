"""The change check for files: what a `stat` tells, and whether it can be relied on."""

from __future__ import annotations

import os
import time

from .base import Stamp

SETTLING = 2.0
"""Seconds after which a change of a file can be trusted to show.

Clocks of file systems tick in milliseconds up to two seconds (FAT), and SQLite makes a commit visible only
after it was flushed, without touching a file again. A younger file is read anew: cheap, and soon over.
"""


def file_stamp(*paths: str, inode_changes: bool = True) -> Stamp:
    """Marks that differ when one of the files was changed, replaced, made or removed.

    `inode_changes` sees copies that keep the old date, and mended rights. Not for SQLite: as the superuser
    it sets the owner of the log at each opening, the same one, and that shows.
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
