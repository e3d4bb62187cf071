"""The command `scores`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import CONFIG
from ..time_option import PointInTime


@click.command()
@CONFIG
@click.option(
    "--since",
    type=PointInTime(utc=True),
    default="30d",
    show_default=True,
    help="From that day on: a time ago (24h, 7d, 4w), or a date (2026-05-31) in UTC.",
)
@click.option("--until", type=PointInTime(utc=True), help="Until then, in the same form. Default: now.")
@click.option("--model", help="Only this model, as the upstream names it.")
@click.option("--upstream", help="Only this upstream.")
@click.option("--limit", type=click.IntRange(1, 10_000), help="At most this many targets. Default: 100.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as GET /scores gives it.")
@click.option(
    "--report",
    "report_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a Markdown report that can be sent to a provider, with redacted examples; - prints it.",
)
def scores(
    config_file: Path | None, as_json: bool, report_file: Path | None, **only: str | float | None
) -> None:
    r"""Show how reliable each model of each upstream was.

    For each target: the share of good answers and of valid, mended and broken tool calls, with 95% intervals,
    and the failures. Reads the store of the config directly: no gateway needs to run.

    \b
    Examples:
      dragoman scores --since 7d
      dragoman scores --upstream openrouter --json
      dragoman scores --model qwen/qwen3-coder --report qwen.md
    """
    from .show import show

    if as_json and report_file:
        raise click.UsageError("--json and --report exclude each other")
    query = {name: str(value) for name, value in only.items() if value is not None}
    show(config_file, query, as_json=as_json, report_file=report_file)
