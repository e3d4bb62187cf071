"""`dragoman replay --serve`: the replay server in the foreground."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from ...gateway.process.run import serve
from ...observe import logs
from ...offline.faults import parse_fault
from ...offline.server import OnMiss, ReplaySettings, ReplayState, config_for
from ..serve.service import load_config, until_interrupted


def run(
    folder: Path, host: str, port: int, on_miss: OnMiss, faults: Sequence[str], config_file: Path | None
) -> None:
    """Serve until interrupted."""
    settings = ReplaySettings(
        folder=folder,
        on_miss=on_miss,
        faults=[parse_fault(fault) for fault in faults],
        on_answer=lambda line: click.echo(line, err=line.startswith("miss")),
    )
    real = None if on_miss == "fail" else load_config(config_file)
    config = config_for(settings, host, port, real)
    logs.set_up("warning")
    until_interrupted(
        serve(
            config,
            ready=lambda url: click.echo(f"Recordings in {folder} answer at {url}. Ctrl-C ends it."),
            make_state=lambda config: ReplayState(config, settings),
        )
    )
