"""A lock between the worker processes of one user."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

Lock = Callable[[str], AbstractAsyncContextManager[None]]
"""Holds the lock for a file. Replicas that share a file need one that reaches other machines."""

MAX_WAIT = 15.0
"""Seconds to wait for another worker. Then go on without the lock: a stuck worker must not block others."""


@asynccontextmanager
async def process_lock(path: str) -> AsyncGenerator[None]:
    """Hold the lock for `path`. The lock file is in the temporary folder, because `path` is not ours."""
    handle = _open(path)
    try:
        waited = 0.0
        while handle is not None and not _lock(handle) and waited < MAX_WAIT:
            await asyncio.sleep(0.05)
            waited += 0.05
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _open(path: str) -> int | None:
    name = hashlib.sha256(os.path.realpath(path).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    user = os.getuid() if hasattr(os, "getuid") else 0
    flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        return os.open(os.path.join(tempfile.gettempdir(), f"dragoman-{user}-{name}.lock"), flags, 0o600)
    except OSError:
        return None


if sys.platform == "win32":
    import msvcrt

    def _lock(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # closing the handle releases it, as with flock
        except OSError:
            return False
        return True

else:
    import fcntl

    def _lock(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
