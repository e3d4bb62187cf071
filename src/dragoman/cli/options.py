"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from .protocol_choice import ProtocolChoice

UPSTREAM = ProtocolChoice("upstreams")
CLIENT = ProtocolChoice("clients")

CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The config file. Default: $DRAGOMAN_CONFIG, ./dragoman.toml, then the user's config folder.",
)
MODEL = click.option("--model", help="The model for the agent, by a name that the gateway routes.")
PORT = click.option("--port", type=click.IntRange(0, 65535), help="The gateway's port.")
