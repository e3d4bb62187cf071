"""`dragoman completion`: prints the shell script that completes commands, options and names of agents."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    r"""Print a shell completion script.

    It completes commands, options and the names of agents.

    \b
    Install it once:
      echo 'eval "$(dragoman completion bash)"' >> ~/.bashrc
      echo 'eval "$(dragoman completion zsh)"' >> ~/.zshrc     # after compinit
      dragoman completion fish > ~/.config/fish/completions/dragoman.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(ctx.find_root().command, {}, "dragoman", "_DRAGOMAN_COMPLETE").source())


def agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the name of an agent for `dragoman run`."""
    from .run.agents import AGENTS

    return [name for name in AGENTS if name.startswith(incomplete)]
