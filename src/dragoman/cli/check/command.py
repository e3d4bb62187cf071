"""The command: runs the probe and prints its findings."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..options import CONFIG

if TYPE_CHECKING:
    from ...config import Config


@click.command()
@CONFIG
def check(config_file: Path | None) -> None:
    """Check the config, the credentials and the upstreams.

    Sends one request for the list of models to every upstream, with each of its keys. Each problem comes with
    a fix. At the end are the routes, in the order in which they are tried.
    """
    from ...gateway.process import event_loop
    from ..serve.service import load_config
    from . import probe

    # What is logged is also a finding: without a handler, Python would write it to stderr, too.
    logging.getLogger("dragoman").addHandler(logging.NullHandler())
    config = load_config(config_file)
    click.echo(f"config: {config.path or 'from the environment'}")
    for warning in config.warnings:
        click.echo(click.style(f"  note: {warning}", fg="yellow"))
    findings = event_loop.run(probe.check(config, os.environ))
    for finding in findings:
        mark = click.style("ok", fg="green") if finding.ok else click.style("NOT OK", fg="red")
        click.echo(f"  {finding.name}: {mark}: {finding.message}")
        if finding.advice:
            click.echo(f"    {finding.advice}")
    for line in _routes(config):
        click.echo(line)
    if not all(finding.ok for finding in findings):
        raise SystemExit(1)


def _routes(config: Config) -> Iterator[str]:
    from ...routing.conditions import described

    if config.routes:
        yield "routes:"
    for route in config.routes:
        when = "" if route.when is None else f" when {described(route.when)}"
        targets = ", ".join(f"{target.upstream}/{target.model}" for target in route.to)
        yield f"  {route.match}{when} → {targets}"
