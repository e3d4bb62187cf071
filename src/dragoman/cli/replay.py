"""`dragoman replay`: runs a recording through the installed version."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from .options import CLIENT


@click.command()
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", "target", type=CLIENT, help="Answer in another protocol.")
@click.option("--mode", type=click.Choice(["live", "whole"]), help="Assemble tool arguments in this mode.")
@click.option("--diff", is_flag=True, help="Show only the differences from the recorded output.")
@click.option("--as-test", is_flag=True, help="Write a regression test that expects the replayed output.")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    metavar="DIR",
    help="The folder for the three files of --as-test. Default: the working directory.",
)
def replay(recording: Path, target: str | None, mode: Any, diff: bool, as_test: bool, into: Path) -> None:
    r"""Replay a recording and show both sides, step by step.

    `dragoman serve --record DIR` writes recordings, and the inspector offers them for download. A replay
    needs no upstream: the recording holds the upstream's bytes. With --diff, the exit code is 1 if the
    output differs.

    \b
    Example:
      dragoman replay recordings/20260101-120000-3f….dragoman --diff
    """
    if diff and target is not None:
        raise click.UsageError("--diff compares with the recorded output, so it cannot be used with --to.")
    from ..recording import load, show
    from ..recording import replay as play
    from ..recording.regression import write_test

    recorded = load(recording)
    played = play(recorded, to=target, mode=mode)
    if as_test:
        path = write_test(recorded, played, recording.read_bytes(), into, to=target, mode=mode)
        click.echo(f"Wrote {path}. The test expects the output of this version.")
    else:
        width = shutil.get_terminal_size((110, 24)).columns
        for line in show.differences(recorded, played) if diff else show.steps(recorded, played, width):
            click.echo(line)
        if target is None:
            click.echo(show.verdict(recorded, played))
    if diff and not played.same:
        raise SystemExit(1)
