"""The command: replays one recording, or serves a folder of them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from ..options import CLIENT, CONFIG


@click.command()
@click.argument("recording", required=False)
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
    help="Ask this model of the config the recorded requests, and compare. RECORDING may be a folder, or the "
    "id of a session that `server.record` recorded. May be repeated.",
)
@click.option(
    "--page",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also write the comparison of --against as a web page.",
)
@CONFIG
def replay(
    recording: str | None,
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
    page: Path | None,
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
      dragoman replay 3f9a0c1d2e4b5a68 --against groq/kimi-k2 --page compared.html
    """
    if targets and recording is None:
        raise click.UsageError("--against needs a recording, a folder of recordings, or a session.")
    if page is not None and not targets:
        raise click.UsageError("--page writes the comparison of --against.")
    if [recording is not None, last_failed, folder is not None].count(True) != 1:
        raise click.UsageError(
            "Give a recording, --last-failed for the gateway's last failed exchange, or --serve DIR."
        )
    if folder is not None:
        from . import serving

        serving.run(folder, host, port, on_miss, faults, config_file)
    elif targets and recording is not None:
        from . import comparing

        comparing.run(recording, targets, page, config_file, click.echo)
    else:
        if diff and target is not None:
            raise click.UsageError(
                "--diff compares with the recorded output, so it cannot be used with --to."
            )
        _show(recording, config_file, into if as_test else None, target, mode, diff=diff)


def _show(
    recording: str | None,
    config_file: Path | None,
    into: Path | None,
    target: str | None,
    mode: Any,
    *,
    diff: bool,
) -> None:
    """Replay one recording, or write a test for it into the folder `into`."""
    if recording is not None and not Path(recording).exists():
        raise click.UsageError(f"There is no file {recording}.")
    if recording is not None and Path(recording).is_dir():
        raise click.UsageError("A folder can only be served (--serve) or compared (--against).")
    from . import showing

    path = Path(recording) if recording else showing.last_failed_recording(config_file)
    if into is not None:
        click.echo(showing.written_test(path, into, target, mode))
        return
    width = shutil.get_terminal_size((110, 24)).columns
    same = showing.show(path, target, mode, width, diff=diff, say=click.echo)
    if diff and not same:
        raise SystemExit(1)
