"""The command: finds upstreams, asks, writes the config, and prints the next steps."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...model.errors import DragomanError

if TYPE_CHECKING:
    from .candidates import UpstreamCandidate

FILE = "dragoman.toml"
PORT = 4545


@click.command()
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default=FILE,
    show_default=True,
    help="The file to write. An existing file is never changed.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask: use every key and every server that is found.")
@click.option(
    "--upstream",
    "given",
    multiple=True,
    metavar="NAME[=PART,…]",
    help="Use only the upstreams given with this option. NAME alone is a known provider. A PART is an "
    "address, a protocol, or where the key is (env:NAME, file:PATH, client, none). Repeatable.",
)
@click.option(
    "--model",
    metavar="UPSTREAM/MODEL",
    help="The target for models that none of the configured providers makes.",
)
@click.option("--port", type=click.IntRange(0, 65535), help=f"The gateway's port. Default: {PORT}.")
def init(output: Path, yes: bool, given: tuple[str, ...], model: str | None, port: int | None) -> None:
    r"""Write a first dragoman.toml, with comments.

    Finds provider keys in the environment and model servers on this machine (Ollama, LM Studio, llama.cpp,
    vLLM). On a terminal it asks which to use. If it finds none, it writes a template with examples. The file
    names where a key is, and never holds the key itself.

    \b
    Examples:
      dragoman init
      dragoman init --yes --port 4600
      dragoman init --upstream groq --upstream work=https://llm.example.net/v1,env:WORK_KEY
    """
    from . import config_file, next_steps, questions, upstream_option

    config_file.must_be_free(output)
    asks = not yes and not given and _on_terminal()
    chosen = [upstream_option.parse(text) for text in given] if given else _found(os.environ, asks=asks)
    if not chosen:
        config_file.write_template(output, port=PORT if port is None else port)
        for line in next_steps.after_template(output):
            click.echo(line)
        return
    if model is not None and (problem := questions.wrong_model(model, chosen)):
        raise DragomanError(f"--model {problem}")
    if asks:
        model = model or questions.model(chosen)
        port = questions.port(PORT) if port is None else port
    config_file.write(output, chosen, port=PORT if port is None else port, model=model)
    for line in next_steps.after_writing(output, chosen, os.environ, Path.cwd()):
        click.echo(line)


def _found(env: Mapping[str, str], *, asks: bool) -> Sequence[UpstreamCandidate]:
    from ...gateway.process import event_loop
    from . import questions
    from .candidates import keys
    from .servers import servers

    found = [*keys(env), *event_loop.run(servers(env))]
    return questions.upstreams(found) if asks else [each for each in found if each.usual]


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
