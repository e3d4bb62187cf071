"""The command: replays one recording, or serves a folder of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from ..options import CLIENT, CONFIG


@click.command()
@click.argument("recording", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--last-failed", is_flag=True, help="Replay the last failed exchange of the gateway (server.keep_failed)."
)
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
@click.option(
    "--serve",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Answer like a gateway, from the recordings in this folder.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address of --serve.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=4545, show_default=True, help="The port of --serve."
)
@click.option(
    "--on-miss",
    type=click.Choice(["fail", "record", "pass"]),
    default="fail",
    show_default=True,
    help="What --serve does with a request that was not recorded: refuse it, ask the model of the config and "
    "record the answer, or only ask.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="FAULT",
    help="Damage the answers of --serve: cut@3 (after the third event), misnamed, misnamed:2 (only the "
    "second answer). An unknown name lists all. May be repeated.",
)
@click.option(
    "--against",
    "targets",
    multiple=True,
    metavar="UPSTREAM/MODEL",
    help="Ask this model of the config the recorded requests, and compare. RECORDING may be a folder. May be "
    "repeated.",
)
@CONFIG
def replay(
    recording: Path | None,
    last_failed: bool,
    target: str | None,
    mode: Any,
    diff: bool,
    as_test: bool,
    into: Path,
    folder: Path | None,
    host: str,
    port: int,
    on_miss: Any,
    faults: tuple[str, ...],
    targets: tuple[str, ...],
    config_file: Path | None,
) -> None:
    r"""Replay a recording and show both sides, step by step. Or serve recordings to an agent.

    `dragoman serve --record DIR` writes recordings, and the inspector offers them for download. A replay
    needs no upstream: the recording holds the upstream's bytes. With --diff, the exit code is 1 if the
    output differs.

    \b
    Examples:
      dragoman replay recordings/20260101-120000-3f….dragoman --diff
      dragoman replay --last-failed --as-test
      dragoman replay --serve recordings --port 4600 --fault cut@3
      dragoman replay recordings --against groq/kimi-k2 --against local/qwen3
    """
    if [recording is not None, last_failed, folder is not None].count(True) != 1:
        raise click.UsageError(
            "Give a recording, --last-failed for the gateway's last failed exchange, or --serve DIR."
        )
    if targets and recording is None:
        raise click.UsageError("--against needs a recording, or a folder of recordings.")
    if folder is not None:
        from . import serving

        serving.run(folder, host, port, on_miss, faults, config_file)
        return
    if targets and recording is not None:
        from . import comparing

        comparing.run(recording, targets, config_file, click.echo)
        return
    if recording is not None and recording.is_dir():
        raise click.UsageError("A folder can only be served (--serve) or compared (--against).")
    if diff and target is not None:
        raise click.UsageError("--diff compares with the recorded output, so it cannot be used with --to.")
    from . import showing

    path = recording or showing.last_failed_recording(config_file)
    if as_test:
        click.echo(showing.written_test(path, into, target, mode))
        return
    width = shutil.get_terminal_size((110, 24)).columns
    same = showing.show(path, target, mode, width, diff=diff, say=click.echo)
    if diff and not same:
        raise SystemExit(1)
