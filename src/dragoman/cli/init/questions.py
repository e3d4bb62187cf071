"""What is asked on a terminal. Every question has an answer that Enter gives."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import click

from ...config.providers import providers
from ...model.errors import DragomanError
from ...protocols.registry import PROTOCOLS
from .found import Candidate
from .given import USUAL, checked
from .text import everything_else


def upstreams(found: Sequence[Candidate]) -> list[Candidate]:
    """Which of those found, and which others."""
    if not found:
        click.echo("No provider's key is in the environment, and no model server answers on this machine.")
    chosen = [each for each in found if click.confirm(f"Use {each.name} ({each.why})?", default=each.usual)]
    click.echo(f"Others are: {', '.join(providers())}; or any server by its address.")
    while True:
        said = click.prompt(
            f"{'Another' if chosen else 'An'} upstream, by name or address (Enter: none)",
            default="",
            show_default=False,
        ).strip()
        if not said:
            return chosen
        added = _added(said)
        if added is not None:
            chosen = [*(each for each in chosen if each.name != added.name), added]


def model(chosen: Sequence[Candidate]) -> str:
    """Where requests go that no other route takes."""
    click.echo(
        "Agents ask for their maker's models. Which one do they get, where that maker is none of yours?"
    )
    while True:
        said: str = click.prompt("UPSTREAM/MODEL (* keeps the name)", default=everything_else(chosen))
        problem = wrong_model(said, chosen)
        if problem is None:
            return said
        click.echo(f"  {problem}")


def port(usual: int) -> int:
    """Where the gateway is to listen."""
    return click.prompt("Port", default=usual, type=click.IntRange(0, 65535))


def wrong_model(said: str, chosen: Sequence[Candidate]) -> str | None:
    """Why a config would not take `said` as a target; None if it would."""
    upstream, _, rest = said.partition("/")
    names = [each.name for each in chosen]
    if not rest:
        return f'"{said}" is no target: write {names[0]}/MODEL'
    if upstream not in names:
        return f'"{said}" begins with no upstream of this config: {", ".join(names)}'
    return f'"{said}" has more than one "*"' if rest.count("*") > 1 else None


def _added(said: str) -> Candidate | None:
    try:
        if said in providers() and "base_url" in providers()[said].upstream:
            return checked(said, {})
        return _server(said)
    except DragomanError as error:
        click.echo(f"  {error.message.removeprefix('--upstream ')}")
        return None


def _server(said: str) -> Candidate | None:
    """One that is known by its address, or a provider who has another for each customer."""
    known = said in providers()
    url: str = click.prompt("  Its address (https://…)") if known else said
    if "://" not in url:
        click.echo(f"  {said} is neither a provider's name nor an address (https://…)")
        return None
    if known:
        return checked(said, {"base_url": url})
    protocol: str = click.prompt("  What it speaks", default=USUAL, type=click.Choice(list(PROTOCOLS)))
    name: str = click.prompt("  What to call it", default=_name_of(url))
    variable: str = click.prompt(
        "  The environment variable with its key (Enter: it needs none)", default="", show_default=False
    ).strip()
    credential = {"credential": f"env:{variable.removeprefix('$')}"} if variable else {}
    return checked(name.strip(), {"protocol": protocol, "base_url": url, **credential})


def _name_of(url: str) -> str:
    """`https://llm.example.net/v1` is `example`; what has no name is `local`."""
    try:
        labels = (urlsplit(url).hostname or "").split(".")
    except ValueError:
        return "local"
    named = [label for label in labels if label and not label.isdigit()]
    return named[-2] if len(named) > 1 else "local"
