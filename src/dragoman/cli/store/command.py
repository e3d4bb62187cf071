"""The commands `dragoman store status`, `migrate`, `export` and `prune`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import CONFIG
from ..time_option import PointInTime


@click.group()
def store() -> None:
    r"""Inspect, migrate, export and prune the store.

    The store is the one of the config (server.store): a file, or a database of PostgreSQL.

    \b
    Examples:
      dragoman store status
      dragoman store export --since 7d > receipts.jsonl
    """


@store.command()
@CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def status(config_file: Path | None, as_json: bool) -> None:
    """Show what the store holds, its size, and whether its tables are up to date. Changes nothing."""
    from . import operations

    click.echo(operations.status(config_file, as_json=as_json))


@store.command()
@CONFIG
def migrate(config_file: Path | None) -> None:
    """Bring the tables up to date. A gateway does this too when it starts."""
    from . import operations

    click.echo(operations.migrate(config_file))


@store.command()
@CONFIG
@click.option(
    "--since",
    type=PointInTime(utc=True),
    metavar="TIME",
    help="Only receipts since then: 7d, 12h, or a date (2026-01-31).",
)
@click.option("--before", type=PointInTime(utc=True), metavar="TIME", help="Only receipts before then.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    metavar="FILE",
    help="Write to this file instead of stdout.",
)
def export(config_file: Path | None, since: float | None, before: float | None, output: Path | None) -> None:
    """Print all receipts as JSON lines, the oldest first. Progress goes to stderr."""
    from . import operations

    operations.export(config_file, since or 0.0, float("inf") if before is None else before, output)


@store.command()
@CONFIG
def prune(config_file: Path | None) -> None:
    """Delete receipts, answers and recordings that the config does not keep. A gateway does this too."""
    from . import operations

    click.echo(operations.prune(config_file))
