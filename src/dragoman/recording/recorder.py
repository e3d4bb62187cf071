"""Writing exchanges down as they happen: one file each, by a thread that nobody waits for."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from ..observe.tap import Ear, Ended, Record, Redactor, Said, Tap, Track
from .format import ENDING, RecordingError, frame, opening
from .redact import Censor

log = logging.getLogger("dragoman.recorder")

# Bytes are written so often, at the latest: a crash costs the last moment. Gathered, they also pack better.
_PACE = 0.25


class Recorder:
    """Listens at a tap until it is closed."""

    def __init__(self, folder: Path, tap: Tap, redactor: Redactor) -> None:
        """Raises RecordingError where `folder` cannot be written to."""
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "it cannot be written")
        except OSError as error:
            raise RecordingError(
                f"exchanges cannot be recorded in {folder}: {error.strerror}; give another folder"
            ) from None
        self.folder = folder
        self._tap = tap
        self._redactor = redactor
        self._files: dict[str, _File] = {}
        self._complained = False
        self._closing = threading.Event()
        self._ear = Ear()
        tap.listen(self._ear)
        self._thread = threading.Thread(target=self._run, name="dragoman-recorder", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """What was heard is written. Takes a moment: not for the event loop."""
        self._tap.leave(self._ear)
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            last = self._closing.wait(_PACE)
            for track, records in self._heard():
                self._write(track, records)
            if last:
                return

    def _heard(self) -> Iterable[tuple[Track, list[Record]]]:
        heard: dict[str, tuple[Track, list[Record]]] = {}
        for track, record in self._ear.take():
            if not isinstance(record, Said):
                heard.setdefault(track.id, (track, []))[1].append(record)
        return heard.values()

    def _write(self, track: Track, records: list[Record]) -> None:
        """What one exchange said. Whatever goes wrong with it, the others are recorded."""
        file = self._files.get(track.id)
        if file is None:
            file = self._files[track.id] = _File(self.folder, track, self._redactor)
        if isinstance(records[-1], Ended):
            del self._files[track.id]
        try:
            file.write(records)
            self._complained = False
        except OSError as error:
            if not self._complained:
                log.warning("exchanges are not recorded: %s: %s", self.folder, error.strerror)
            self._complained = True
        except Exception:
            log.exception("a part of an exchange is not recorded", extra={"exchange": track.id})


class _File:
    """One recording. Opened for each write: a thousand may be under way."""

    def __init__(self, folder: Path, track: Track, redactor: Redactor) -> None:
        when = time.strftime("%Y%m%d-%H%M%S", time.gmtime(track.at))
        self._path = folder / f"{when}-{track.id}{ENDING}"
        self._track = track
        self._censor = Censor(redactor, track)
        self._begun = False

    def write(self, records: list[Record]) -> None:
        passed = self._censor.passed(records)
        if isinstance(records[-1], Ended):
            passed += self._censor.rest()
        if not passed:
            return
        data = frame(passed)
        if not self._begun:
            data = opening(self._track) + data
        # Conversations are nobody else's business.
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(handle, "ab") as file:
            file.write(data)
        self._begun = True
