"""The command `cache`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import CONFIG


@click.command()
@CONFIG
@click.argument("session", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as GET /sessions/ID gives it.")
def cache(config_file: Path | None, session: str | None, as_json: bool) -> None:
    r"""Show how much of each turn of a session was cached, and why.

    SESSION is the id of a session (16 digits), as the inspector and `dragoman usage --by session` show it.
    Default: the session with the newest request. Reads the store of the config directly: no gateway needs to
    run.

    \b
    Examples:
      dragoman cache
      dragoman cache 3f9a0c1d2e4b5a68 --json
    """
    from .show import show

    show(config_file, session, as_json)
