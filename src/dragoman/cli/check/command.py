"""The command: prints what the probe found."""

from __future__ import annotations

import os
from pathlib import Path

import click

from ..options import CONFIG


@click.command()
@CONFIG
def check(config_file: Path | None) -> None:
    """Check the config, every credential and every upstream, and say how to fix what is wrong."""
    from ...gateway import event_loop
    from ..serve.service import configured
    from . import probe

    config = configured(config_file)
    click.echo(f"config: {config.path or 'from the environment'}")
    for warning in config.warnings:
        click.echo(click.style(f"  note: {warning}", fg="yellow"))
    findings = event_loop.run(probe.check(config, os.environ))
    for finding in findings:
        mark = click.style("ok", fg="green") if finding.good else click.style("NOT OK", fg="red")
        click.echo(f"  {finding.name}: {mark}: {finding.says}")
        if finding.advice:
            click.echo(f"    {finding.advice}")
    if not all(finding.good for finding in findings):
        raise SystemExit(1)
