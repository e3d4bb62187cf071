"""Write exchanges to files while they run: one file each, in a background thread."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from ..observe.tap import ExchangeEnded, Record, Redactor, Subscription, Tap, Track
from ..store.clock_jumps import ClockJumps
from .format import RecordingError, file_header, file_name, frame
from .redact import RecordFilter
from .retention import NO_LIMITS, RecordingLimits, prune

log = logging.getLogger("dragoman.recorder")

# Seconds between two writes. A crash loses at most this much; larger batches compress better.
_WRITE_SECONDS = 0.25
# Seconds between two looks for recordings that are too old.
_PRUNE_SECONDS = 60.0


class Recorder:
    """Records all exchanges of a tap until it is closed."""

    def __init__(
        self, folder: Path, tap: Tap, redactor: Redactor, limits: RecordingLimits = NO_LIMITS
    ) -> None:
        """Raises RecordingError if `folder` is not writable."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "the folder is not writable")
        except OSError as error:
            raise RecordingError(
                f"exchanges cannot be recorded in {folder}: {error.strerror}; give another folder"
            ) from None
        self.folder = folder
        self._tap = tap
        self._redactor = redactor
        self._limits = limits
        self._prune_at = 0.0
        self._jumps = ClockJumps()
        self._files: dict[str, _File] = {}
        self._warned = False
        self._closing = threading.Event()
        self._subscription = Subscription()
        tap.subscribe(self._subscription)
        self._thread = threading.Thread(target=self._run, name="dragoman-recorder", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Write the remaining records. Blocks: do not call it in the event loop."""
        self._tap.unsubscribe(self._subscription)
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            last = self._closing.wait(_WRITE_SECONDS)
            for track, records in self._received():
                self._write(track, records)
            if last:
                return
            self._prune()

    def _prune(self) -> None:
        now = time.monotonic()
        if now < self._prune_at:
            return
        self._prune_at = now + _PRUNE_SECONDS
        if not self._jumps.steady(time.time(), now):
            return
        try:
            prune(self.folder, self._limits, time.time(), {file.path for file in self._files.values()})
        except OSError as error:
            log.warning("old recordings are not deleted: %s: %s", self.folder, error.strerror)

    def _received(self) -> Iterable[tuple[Track, list[Record]]]:
        received: dict[str, tuple[Track, list[Record]]] = {}
        for track, record in self._subscription.take():
            received.setdefault(track.id, (track, []))[1].append(record)
        return received.values()

    def _write(self, track: Track, records: list[Record]) -> None:
        """Write records of one exchange. An error does not affect the other exchanges."""
        file = self._files.get(track.id)
        if file is None:
            file = self._files[track.id] = _File(self.folder, track, self._redactor)
        if isinstance(records[-1], ExchangeEnded):
            del self._files[track.id]
        try:
            file.write(records)
            self._warned = False
        except OSError as error:
            if not self._warned:
                log.warning("exchanges are not recorded: %s: %s", self.folder, error.strerror)
            self._warned = True
        except Exception:  # one bad exchange must not end the recording of all others
            log.exception("a part of an exchange is not recorded", extra={"exchange": track.id})


class _File:
    """One recording. The file is opened for each write, because a thousand exchanges may run at once."""

    def __init__(self, folder: Path, track: Track, redactor: Redactor) -> None:
        self.path = folder / file_name(track)
        self._track = track
        self._filter = RecordFilter(redactor, track)
        self._has_header = False

    def write(self, records: list[Record]) -> None:
        passed = self._filter.filter(records)
        if isinstance(records[-1], ExchangeEnded):
            passed += self._filter.flush()
        if not passed:
            return
        data = frame(passed)
        if not self._has_header:
            data = file_header(self._track) + data
        # Mode 0600: only the user may read conversations.
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "ab") as file:
            file.write(data)
        self._has_header = True
