"""The command: looks, asks, writes, and says what comes next."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ...model.errors import DragomanError

if TYPE_CHECKING:
    from .found import Candidate

FILE = "dragoman.toml"
PORT = 4545


@click.command()
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    default=FILE,
    show_default=True,
    help="The file to write. One that is there is never changed.",
)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: use every key and every server that is found.")
@click.option(
    "--upstream",
    "given",
    multiple=True,
    metavar="NAME[=PART,…]",
    help="Use this one, and none but those named so: a known provider, or an address, a protocol and where "
    "the key is (env:NAME, file:PATH, client, none). May be repeated.",
)
@click.option(
    "--model", metavar="UPSTREAM/MODEL", help="What answers requests for models whose maker is not here."
)
@click.option("--port", type=click.IntRange(0, 65535), help=f"Where the gateway is to listen ({PORT}).")
def init(output: Path, yes: bool, given: tuple[str, ...], model: str | None, port: int | None) -> None:
    r"""Write a first dragoman.toml, with a comment on everything in it.

    Looks for provider keys in the environment and for model servers on this machine (Ollama, LM Studio,
    llama.cpp, vLLM). On a terminal it asks which to use. Keys are never written, only where
    they are.

    \b
    Examples:
      dragoman init
      dragoman init --yes --port 4600
      dragoman init --upstream groq --upstream work=https://llm.example.net/v1,env:WORK_KEY
    """
    from . import given as flags
    from . import questions, steps, writing

    writing.must_be_free(output)
    asks = not yes and not given and _on_terminal()
    chosen = [flags.read(said) for said in given] if given else _found(os.environ, asks=asks)
    if not chosen:
        raise DragomanError(
            "there is nothing to write a config for: no provider's key is in the environment, and no model "
            "server answers on this machine; set a key, start one, or name one with --upstream"
        )
    if model is not None and (problem := questions.wrong_model(model, chosen)):
        raise DragomanError(f"--model {problem}")
    if asks:
        model = model or questions.model(chosen)
        port = questions.port(PORT) if port is None else port
    writing.write(output, chosen, port=PORT if port is None else port, model=model)
    for line in steps.after_writing(output, chosen, os.environ, Path.cwd()):
        click.echo(line)


def _found(env: Mapping[str, str], *, asks: bool) -> Sequence[Candidate]:

    from ...gateway import event_loop
    from . import questions
    from .found import keys
    from .servers import servers

    found = [*keys(env), *event_loop.run(servers(env))]
    return questions.upstreams(found) if asks else [each for each in found if each.usual]


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()
