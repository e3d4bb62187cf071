"""The command `serve`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import CONFIG


@click.command()
@CONFIG
@click.option(
    "--host",
    help="Listen on this address instead of server.host. Any address but loopback needs keys.",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), help="Listen on this port instead of server.port (4545)."
)
@click.option("--workers", type=click.IntRange(1, 64), help="Run this many processes on one port.")
@click.option(
    "--record",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Record every exchange in this folder, without secrets, for `dragoman replay`.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much to log on stderr. `debug` also logs which target was chosen and why.",
)
def serve(
    config_file: Path | None,
    host: str | None,
    port: int | None,
    workers: int | None,
    record: Path | None,
    log_level: str,
) -> None:
    """Run the gateway.

    Without a config file the gateway uses the provider keys in the environment
    (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …).
    """
    from .service import ServeOptions, run

    record = record.absolute() if record else None
    run(ServeOptions(file=config_file, host=host, port=port, log_level=log_level, record=record), workers)
