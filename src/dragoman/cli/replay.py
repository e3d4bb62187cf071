"""`dragoman replay`."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from ..recording import show
from ..recording.format import load
from ..recording.regression import write_test
from ..recording.replay import Mode, replay


def run(file: Path, *, to: str | None, mode: Mode | None, diff: bool, into: Path | None) -> bool:
    """Plays `file` and says what came of it. Gives whether it is what the client got then."""
    recording = load(file)
    played = replay(recording, to=to, mode=mode)
    if into is not None:
        path = write_test(recording, played, file.read_bytes(), into, to=to, mode=mode)
        click.echo(f"{path} is written; it expects what today's code gives")
        return played.same
    width = shutil.get_terminal_size((110, 24)).columns
    lines = show.differences(recording, played) if diff else show.steps(recording, played, width)
    for line in lines:
        click.echo(line)
    if to is None:
        click.echo(show.verdict(recording, played))
    return played.same
