"""The group of all commands.

Each command imports the gateway's modules only when it runs, so that `--help` and shell completion stay fast.
"""

from __future__ import annotations

import os
from pathlib import Path

import click

from .. import __version__
from .cache.command import cache
from .check.command import check
from .completion import completion
from .conform import conform
from .demo.command import demo
from .errors import CommandGroup
from .init.command import init
from .keys.command import keys
from .replay.command import replay
from .rules import rules
from .run.command import env, run
from .scores.command import scores
from .serve.command import serve
from .store.command import store
from .tail.command import tail
from .translate import translate
from .usage.command import usage


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="dragoman %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Point any coding agent at any model: every tool call arrives whole, valid and once."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    if ctx.invoked_subcommand is None:
        from .init.next_steps import orientation

        for line in orientation(os.environ, Path.cwd()):
            click.echo(line)


# `--help` lists them in this order: start, look, operate, and what few people need.
for command in (
    demo, init, check, run, env, serve,
    tail, usage, scores, cache, replay,
    keys, store,
    translate, rules, conform, completion,
):  # fmt: skip
    main.add_command(command)
