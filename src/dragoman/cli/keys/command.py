"""The commands `dragoman keys create`, `list`, `revoke` and `rotate`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import CONFIG

_NAME = click.argument("name")


@click.group()
def keys() -> None:
    r"""Make, list, revoke and rotate keys of the gateway.

    The keys are in the store of the config. A running gateway uses a change within a second.

    \b
    Examples:
      dragoman keys create research --budget 50/month --models 'claude-*' --rate 60/min --expires 90d
      dragoman keys rotate research --grace 24h
    """


@keys.command()
@_NAME
@CONFIG
@click.option(
    "--role",
    type=click.Choice(["user", "admin"]),
    default="user",
    show_default=True,
    help="A user sees only its own exchanges and usage, an admin those of every key.",
)
@click.option("--team", default="", help="The team that the key belongs to; [teams.NAME] has its limits.")
@click.option("--models", multiple=True, metavar="GLOB", help="A model that the key may use. Repeatable.")
@click.option(
    "--budget",
    multiple=True,
    metavar="AMOUNT/PERIOD",
    help="US dollars or tokens per day or month: 50/month, '2M tokens/day'. Repeatable.",
)
@click.option("--rate", metavar="NUMBER/min", help="Requests per min, hour or day: 60/min.")
@click.option("--tokens", metavar="NUMBER/min", help="Tokens per min, hour or day: 200k/min.")
@click.option("--streams", type=click.IntRange(1), help="Requests at the same time.")
@click.option("--expires", metavar="TIME", help="When the key ends: 90d, 12h, or a date such as 2027-01-31.")
def create(name: str, config_file: Path | None, **options: object) -> None:
    """Make a key and print its secret on stdout. The secret is not shown again."""
    from . import operations

    wanted = operations.new_key(name, options)
    click.echo(operations.create(config_file, wanted))
    click.echo(operations.created(wanted), err=True)


@keys.command("list")
@CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
def list_keys(config_file: Path | None, as_json: bool) -> None:
    """List the keys of the config and of the store, without their secrets."""
    from . import operations

    for line in operations.listed(config_file, as_json=as_json):
        click.echo(line)


@keys.command()
@_NAME
@CONFIG
def revoke(name: str, config_file: Path | None) -> None:
    """Revoke a key. Its name cannot be used again; its exchanges stay."""
    from . import operations

    click.echo(operations.revoke(config_file, name), err=True)


@keys.command()
@_NAME
@CONFIG
@click.option(
    "--grace",
    metavar="TIME",
    default="0s",
    show_default=True,
    help="How long the old secret stays valid: 24h.",
)
def rotate(name: str, config_file: Path | None, grace: str) -> None:
    """Give a key a new secret and print it on stdout. Name, limits, exchanges and state stay."""
    from . import operations

    seconds = operations.seconds(grace, "--grace")
    click.echo(operations.rotate(config_file, name, seconds))
    click.echo(operations.rotated(name, seconds), err=True)
