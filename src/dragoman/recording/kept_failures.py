"""Keep the bytes of failed exchanges on disk, as recordings, so that a failure can be replayed days later.

Only failed exchanges are written, when they are over and from the ring. So an exchange that succeeds costs
nothing, and a gateway without failures starts no thread.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from ..model.events import FailureKind
from ..observe.tap import Redactor, Track
from ..store.clock_jumps import ClockJumps
from .format import ENDING, dump, file_name, restored
from .retention import RecordingLimits, prune

log = logging.getLogger("dragoman.recorder")

_GOOD = frozenset({"ok", "cancelled"})
_BAD_CALLS = frozenset({"invalid", "cut"})
_REFUSED = frozenset(
    {
        FailureKind.AUTHENTICATION,
        FailureKind.PERMISSION,
        FailureKind.RATE_LIMIT,
        FailureKind.OVERLOADED,
    }
)
"""The gateway itself refuses requests with these. Without an upstream's answer there is nothing to replay."""
# An upstream that is down fails every request. The first ones are enough to find out why.
_MAX_WAITING = 64
_PRUNE_SECONDS = 60.0
_ID = re.compile("[0-9a-f]{16}")


def failures_folder(store: object) -> Path | None:
    """The folder beside the store's file. None: the store is in memory or in a database."""
    return store.with_suffix(".failed") if isinstance(store, Path) else None


def has_failed(track: Track) -> bool:
    """Did the exchange fail, or is a tool call of its answer invalid or cut?"""
    if track.outcome not in _GOOD:
        refused = track.failure is not None and track.failure.kind in _REFUSED
        return track.calls > 0 or not refused
    return track.outcome == "ok" and any(receipt.outcome in _BAD_CALLS for receipt in track.receipts)


def last_failed(folder: Path) -> Path | None:
    """The newest recording in `folder`."""
    # By the time of writing: the names have only seconds.
    return max(folder.glob(f"*{ENDING}"), key=lambda path: path.stat().st_mtime_ns, default=None)


class KeptFailures:
    """Writes failed exchanges to `folder` in a thread, and reads them again."""

    def __init__(
        self,
        folder: Path,
        redactor: Redactor,
        limits: RecordingLimits,
        on_lost: Callable[[], None],
        wanted: Callable[[Track], bool] = has_failed,
    ) -> None:
        """`on_lost` is called for each failure that is not kept. It must be thread-safe.

        `wanted` says which exchanges are kept.
        """
        self._wanted = wanted
        self.folder = folder
        self.limits = limits
        """0 bytes: nothing is kept."""
        self._redactor = redactor
        self._on_lost = on_lost
        self._waiting: deque[Track] = deque()
        self._added = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._warned = False
        self._unpruned = 0
        """Bytes written since the last look at the folder's size."""
        self._prune_at = 0.0
        self._jumps = ClockJumps()

    def add(self, track: Track) -> None:
        """An exchange is over. Never blocks."""
        if not self.limits.bytes or not self._wanted(track):
            return
        if not track.keeps_records or len(self._waiting) >= _MAX_WAITING:
            self._on_lost()
            return
        self._waiting.append(track)
        self._added.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="dragoman-failures", daemon=True)
            self._thread.start()

    def ids(self) -> frozenset[str]:
        """The exchanges that are on disk. Reads the folder."""
        try:
            names = os.listdir(self.folder)
        except OSError:
            return frozenset()
        return frozenset(name[-16 - len(ENDING) : -len(ENDING)] for name in names if name.endswith(ENDING))

    def find(self, id: str) -> Track | None:
        """The exchange with its records, as far as it is on disk. Reads the file."""
        if not _ID.fullmatch(id):
            return None
        for path in self.folder.glob(f"*-{id}{ENDING}"):
            try:
                return restored(path.read_bytes(), str(path))
            except OSError:  # deleted a moment ago
                return None
        return None

    def close(self) -> None:
        """Write what waits. Blocks: do not call it in the event loop."""
        self._closing.set()
        self._added.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while True:
            self._added.wait()
            self._added.clear()
            while self._waiting:
                began = time.monotonic()
                self._keep(self._waiting.popleft())
                # Redacting takes the interpreter away from the streams: rest as long as it took.
                self._closing.wait(time.monotonic() - began)
            if self._closing.is_set():
                return

    def _keep(self, track: Track) -> None:
        """Write one exchange. An error does not affect the next one."""
        try:
            data = dump(track, self._redactor)
            # Asked after the dump: the ring may have dropped the records in the meantime.
            if track.keeps_records and len(data) <= (self.limits.bytes or 0):
                self._write(self.folder / file_name(track), data)
                self._warned = False
                return
        except OSError as error:
            if not self._warned:
                log.warning("failed exchanges are not kept: %s: %s", self.folder, error.strerror)
            self._warned = True
        except Exception:  # one bad exchange must not end the thread that keeps all others
            log.exception("a failed exchange is not kept", extra={"exchange": track.id})
        self._on_lost()

    def _write(self, path: Path, data: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Mode 0600: only the user may read conversations.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
        except OSError:
            path.unlink(missing_ok=True)  # half a recording is useless, and the disk is full
            raise
        self._unpruned += len(data)
        self._prune()

    def _prune(self) -> None:
        now = time.monotonic()
        if now < self._prune_at and self._unpruned < (self.limits.bytes or 0) // 10:
            return
        self._prune_at, self._unpruned = now + _PRUNE_SECONDS, 0
        # After a jump of the clock the ages are wrong. The size is limited anyway.
        steady = self._jumps.steady(time.time(), now)
        limits = self.limits if steady else self.limits._replace(seconds=None)
        prune(self.folder, limits, time.time(), ())
