"""`dragoman completion`: what a shell has to read to complete commands, options and the names of agents."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    r"""Print the script that makes a shell complete dragoman's commands, options and agents.

    \b
    Once, by shell:
      echo 'eval "$(dragoman completion bash)"' >> ~/.bashrc
      echo 'eval "$(dragoman completion zsh)"' >> ~/.zshrc     # after compinit
      dragoman completion fish > ~/.config/fish/completions/dragoman.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(ctx.find_root().command, {}, "dragoman", "_DRAGOMAN_COMPLETE").source())


def agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The agents `dragoman run` knows, as far as they go on from what is typed."""
    from .run.clients import CLIENTS

    return [name for name in CLIENTS if name.startswith(incomplete)]
