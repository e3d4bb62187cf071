"""The commands `run` and `env`: parse their options and hand over."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from ..completion import agents
from ..options import CONFIG, MODEL, PORT


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@CONFIG
@PORT
@MODEL
@click.argument("client", required=False, shell_complete=agents)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    config_file: Path | None, port: int | None, model: str | None, client: str | None, args: tuple[str, ...]
) -> None:
    r"""Start an agent that talks to the gateway. Without CLIENT, list the agents.

    Put options for Dragoman before CLIENT; everything after CLIENT goes to the agent. If no gateway
    is running, this command starts one and ends it with the agent. The agent's own settings do not change.

    \b
    Examples:
      dragoman run claude
      dragoman run --model openrouter/qwen/qwen3-coder codex exec "Fix the tests"
    """
    from ..serve.service import Settings
    from .clients import client as find
    from .start import Order, start_agent

    if client is None:
        _list_clients()
        return
    settings = Settings(file=config_file, port=port)
    order = Order(client=find(client), args=args, model=model, settings=settings)
    raise SystemExit(start_agent(order, os.environ, _say_on_terminal))


@click.command()
@CONFIG
@PORT
@MODEL
@click.option("--shell", type=click.Choice(["sh", "fish", "powershell"]), default="sh", show_default=True)
@click.option(
    "--write", is_flag=True, help="Write the files that the settings name, into Dragoman's own folder."
)
@click.argument("client", shell_complete=agents)
def env(
    config_file: Path | None, port: int | None, model: str | None, shell: str, write: bool, client: str
) -> None:
    r"""Print what `dragoman run CLIENT` would set, as lines for a shell. The output may hold a key.

    \b
    Example:
      eval "$(dragoman env claude)" && claude
    """
    from ..serve.service import Settings
    from .clients import client as find
    from .shell import settings_of
    from .start import Order

    settings = Settings(file=config_file, port=port)
    order = Order(client=find(client), model=model, settings=settings)
    for line in settings_of(order, os.environ, shell, write=write):
        click.echo(line)


def _list_clients() -> None:
    from .clients import CLIENTS

    width = max(map(len, CLIENTS))
    for client in CLIENTS.values():
        found = shutil.which(client.program)
        says = f"{client.title}: {found}" if found else f"{client.title}: not installed ({client.install})"
        click.echo(f"  {client.name:<{width}}  {says}")


def _say_on_terminal(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(text, err=True)
