"""The command `usage`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import CONFIG
from ..time_option import PointInTime

_GROUPS = ("key", "team", "model", "upstream", "session", "day", "hour")


@click.command()
@CONFIG
@click.option(
    "--by", type=click.Choice(_GROUPS), default="model", show_default=True, help="One row for each of these."
)
@click.option(
    "--since",
    type=PointInTime(utc=True),
    default="7d",
    show_default=True,
    help="From then on: a time ago (24h, 7d, 4w), or a date (2026-05-31) or time in UTC.",
)
@click.option("--until", type=PointInTime(utc=True), help="Until then, in the same form. Default: now.")
@click.option("--key", help="Only this key.")
@click.option("--team", help="Only this team.")
@click.option("--model", help="Only this model, as clients name it.")
@click.option("--upstream", help="Only this upstream.")
@click.option("--session", help="Only this session.")
@click.option(
    "--order",
    type=click.Choice(["cost", "tokens", "requests", "failed", "mended"]),
    default="cost",
    show_default=True,
    help="Sort rows by this, the largest first. Days and hours are sorted by time.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    help="At most this many rows. Default: 50 in a table, else all.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values, without the total.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as GET /usage gives it.")
def usage(
    config_file: Path | None, as_csv: bool, as_json: bool, limit: int | None, **only: str | float | None
) -> None:
    r"""Show how many requests, tokens and US dollars were used.

    Reads the store of the config directly: no gateway needs to run. Days and hours are those of UTC. A
    price that is not known is shown as unknown; [prices] in the config can give it.

    \b
    Examples:
      dragoman usage --by key --since 30d
      dragoman usage --by day --model claude-opus-4-5
      dragoman usage --by session --since 24h --csv
    """
    from .show import Format, show

    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    form: Format = "csv" if as_csv else "json" if as_json else "table"
    show(config_file, {name: str(value) for name, value in only.items() if value is not None}, limit, form)
