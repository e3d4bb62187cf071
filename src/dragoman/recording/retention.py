"""Delete old recordings, by their age and by the space that all of them take."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from .format import ENDING


class RecordingLimits(NamedTuple):
    """What is kept. None: no limit."""

    seconds: float | None = None
    bytes: int | None = None


NO_LIMITS = RecordingLimits()


def prune(folder: Path, limits: RecordingLimits, now: float, running: Collection[Path]) -> int:
    """Delete recordings beyond the limits, the oldest first, but none of `running`. Returns their number.

    Other files of the folder are left alone. Several processes may do this at the same time.
    """
    if limits == NO_LIMITS:
        return 0
    files = sorted(_recordings(folder, running))
    total = sum(size for _, size, _ in files)
    deleted = 0
    for modified, size, path in files:
        too_old = limits.seconds is not None and modified < now - limits.seconds
        if not too_old and (limits.bytes is None or total <= limits.bytes):
            break
        path.unlink(missing_ok=True)
        total -= size
        deleted += 1
    return deleted


def _recordings(folder: Path, running: Collection[Path]) -> list[tuple[float, int, Path]]:
    """The time of the last write, the size and the path of each recording that has ended."""
    found: list[tuple[float, int, Path]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            path = Path(entry.path)
            if not entry.name.endswith(ENDING) or path in running:
                continue
            try:
                facts = entry.stat()
            except FileNotFoundError:  # another process deleted it
                continue
            found.append((facts.st_mtime, facts.st_size, path))
    return found
