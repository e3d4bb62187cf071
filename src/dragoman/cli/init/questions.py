"""The questions on a terminal. Enter accepts the default of each."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

import click

from ...config.providers import providers
from ...model.errors import DragomanError
from ...protocols.registry import DEFAULT_PROTOCOL, PROTOCOLS
from .candidates import UpstreamCandidate
from .config_text import everything_else
from .upstream_option import checked


def upstreams(found: Sequence[UpstreamCandidate]) -> list[UpstreamCandidate]:
    """Ask which of the found upstreams to use, and which others."""
    if not found:
        click.echo("No provider key is set in the environment, and no model server answers on this machine.")
    chosen = [each for each in found if click.confirm(f"Use {each.name} ({each.why})?", default=each.usual)]
    click.echo(f"You can add others: {', '.join(providers())}; or any server by its address.")
    while True:
        text = click.prompt(
            f"Add {'another' if chosen else 'an'} upstream, by name or address (Enter: none)",
            default="",
            show_default=False,
        ).strip()
        if not text:
            return chosen
        added = _added(text)
        if added is not None:
            chosen = [*(each for each in chosen if each.name != added.name), added]


def model(chosen: Sequence[UpstreamCandidate]) -> str:
    """Ask for the target of the `*` route."""
    click.echo("Which model answers if an agent asks for a model that none of your upstreams makes?")
    while True:
        text: str = click.prompt(
            "UPSTREAM/MODEL (UPSTREAM/* keeps the model's name)", default=everything_else(chosen)
        )
        problem = wrong_model(text, chosen)
        if problem is None:
            return text
        click.echo(f"  {problem}")


def port(usual: int) -> int:
    return click.prompt("Port", default=usual, type=click.IntRange(0, 65535))


def wrong_model(text: str, chosen: Sequence[UpstreamCandidate]) -> str | None:
    """Why `text` cannot be a target of this config; None if it can."""
    upstream, _, rest = text.partition("/")
    names = [each.name for each in chosen]
    if not rest:
        return f'"{text}" is not a target: write {names[0]}/MODEL'
    if upstream not in names:
        return f'"{text}" does not begin with an upstream of this config: {", ".join(names)}'
    return f'"{text}" has more than one "*"' if rest.count("*") > 1 else None


def _added(text: str) -> UpstreamCandidate | None:
    try:
        if text in providers() and "base_url" in providers()[text].upstream:
            return checked(text, {})
        return _server(text)
    except DragomanError as error:
        click.echo(f"  {error.message.removeprefix('--upstream ')}")
        return None


def _server(text: str) -> UpstreamCandidate | None:
    """A server by its address, or a provider with one address per customer, such as Azure."""
    known = text in providers()
    url: str = click.prompt("  Its address (https://…)") if known else text
    if "://" not in url:
        click.echo(f"  {text} is neither a provider's name nor an address (https://…)")
        return None
    if known:
        return checked(text, {"base_url": url})
    protocol: str = click.prompt(
        "  Its protocol", default=DEFAULT_PROTOCOL.name, type=click.Choice(list(PROTOCOLS))
    )
    name: str = click.prompt("  Its name in the config", default=_name_of(url))
    variable: str = click.prompt(
        "  The environment variable with its key (Enter: no key)", default="", show_default=False
    ).strip()
    credential = {"credential": f"env:{variable.removeprefix('$')}"} if variable else {}
    return checked(name.strip(), {"protocol": protocol, "base_url": url, **credential})


def _name_of(url: str) -> str:
    """`example` for `https://llm.example.net/v1`; `local` for an IP address or a host without a domain."""
    try:
        labels = (urlsplit(url).hostname or "").split(".")
    except ValueError:
        return "local"
    named = [label for label in labels if label and not label.isdigit()]
    return named[-2] if len(named) > 1 else "local"
