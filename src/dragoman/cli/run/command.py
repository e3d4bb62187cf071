"""The commands `run` and `env`."""

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

    Put Dragoman's options before CLIENT; everything after CLIENT goes to the agent. If no gateway is running,
    this command starts one and stops it with the agent. The agent's own settings do not change.

    \b
    Examples:
      dragoman run claude
      dragoman run --model openrouter/qwen/qwen3-coder codex exec "Fix the tests"
    """
    from ..serve.service import ServeOptions
    from .agents import find_agent
    from .start import Launch, start_agent

    if client is None:
        _list_agents()
        return
    options = ServeOptions(file=config_file, port=port)
    launch = Launch(agent=find_agent(client), args=args, model=model, options=options)
    raise SystemExit(start_agent(launch, os.environ, _say_on_terminal))


@click.command()
@CONFIG
@PORT
@MODEL
@click.option(
    "--shell",
    type=click.Choice(["sh", "fish", "powershell"]),
    default="sh",
    show_default=True,
    help="The shell to print for.",
)
@click.option(
    "--write", is_flag=True, help="Also write the files that the settings need, into Dragoman's data folder."
)
@click.argument("client", shell_complete=agents)
def env(
    config_file: Path | None, port: int | None, model: str | None, shell: str, write: bool, client: str
) -> None:
    r"""Print an agent's settings as shell commands.

    They are the settings that `dragoman run CLIENT` uses. The output may hold a key.

    \b
    Example:
      eval "$(dragoman env claude)" && claude
    """
    from ..serve.service import ServeOptions
    from .agents import find_agent
    from .shell import settings_of
    from .start import Launch

    options = ServeOptions(file=config_file, port=port)
    launch = Launch(agent=find_agent(client), model=model, options=options)
    for line in settings_of(launch, os.environ, shell, write=write):
        click.echo(line)


def _list_agents() -> None:
    from .agents import AGENTS

    width = max(map(len, AGENTS))
    for agent in AGENTS.values():
        found = shutil.which(agent.program)
        state = found or f"not installed ({agent.install})"
        click.echo(f"  {agent.name:<{width}}  {agent.title}: {state}")


def _say_on_terminal(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(text, err=True)
