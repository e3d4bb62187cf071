"""Replay one recording: show it, or turn it into a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...model.errors import DragomanError
from ...recording import load, replay
from ...recording import show as lines
from ...recording.kept_failures import failures_folder, last_failed
from ...recording.regression import write_test
from ...recording.replay import Mode
from ..serve.service import ServeOptions, effective_config


def show(
    path: Path, to: str | None, mode: Mode | None, width: int, *, diff: bool, say: Callable[[str], None]
) -> bool:
    """Print the replay of `path`, or only its differences. Returns whether the client gets the same bytes."""
    recorded = load(path)
    played = replay(recorded, to=to, mode=mode)
    for line in lines.differences(recorded, played) if diff else lines.steps(recorded, played, width):
        say(line)
    if to is None:
        say(lines.verdict(recorded, played))
    return played.same


def written_test(path: Path, into: Path, to: str | None, mode: Mode | None) -> str:
    """Write the test for `path`. Returns a sentence about it."""
    recorded = load(path)
    test = write_test(recorded, replay(recorded, to=to, mode=mode), path.read_bytes(), into, to=to, mode=mode)
    return f"Wrote {test}. The test expects the output of this version."


def last_failed_recording(file: Path | None) -> Path:
    """The newest failure that the gateway of this config has kept. Raises DragomanError if it has none."""
    folder = failures_folder(effective_config(ServeOptions(file=file), needs_upstream=False).server.store)
    if folder is None:
        raise DragomanError(
            "failed exchanges are kept beside the store's file, and the store of this config is a database; "
            "record with `dragoman serve --record DIR`"
        )
    found = last_failed(folder)
    if found is None:
        raise DragomanError(
            f"there is no failed exchange in {folder}: none failed, or server.keep_failed is 0; "
            "--config names another gateway's config"
        )
    return found
