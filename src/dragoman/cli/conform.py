"""`dragoman conform`: the suite on the command line. What it needs is loaded when it runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ..model.errors import DragomanError
from .protocol_choice import ProtocolChoice

if TYPE_CHECKING:
    from ..conform.report import Report
    from ..conform.run import Settings

_PROTOCOL = ProtocolChoice("clients")
_UPSTREAM_PROTOCOL = ProtocolChoice("upstreams")


@click.command()
@click.argument("url", required=False)
@click.option("--protocol", type=_PROTOCOL, help="What the endpoint speaks.")
@click.option("--model", help="The model to ask for. Default: the first the endpoint lists.")
@click.option(
    "--key",
    envvar="DRAGOMAN_CONFORM_KEY",
    show_envvar=True,
    help="The endpoint's key, or env:NAME. Without one, requests carry none.",
)
@click.option(
    "--timeout",
    "patience",
    type=click.FloatRange(0.1, 3600),
    default=60.0,
    show_default=True,
    help="Seconds for each request, to its end.",
)
@click.option("--only", multiple=True, metavar="GLOB", help="Only trials of such names (cases: or themes).")
@click.option("--strict", is_flag=True, help="What is only noted counts as broken.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON, for programs.")
@click.option("--list", "listing", is_flag=True, help="List the trials, and end.")
@click.option(
    "--upstream-port",
    type=click.IntRange(0, 65535),
    help="The endpoint is a gateway: play recorded cases to it from an upstream on this port.",
)
@click.option(
    "--upstream-protocol",
    "upstream_protocols",
    type=_UPSTREAM_PROTOCOL,
    multiple=True,
    help="Only cases of such upstreams. Default: all.",
)
@click.option("--whole", is_flag=True, help="Ask for cases in one body each, not streamed.")
@click.option("--how", is_flag=True, help="Show how to point a Dragoman at the upstream, and end.")
@click.pass_context
def conform(
    ctx: click.Context,
    url: str | None,
    protocol: str | None,
    model: str | None,
    key: str | None,
    patience: float,
    only: tuple[str, ...],
    strict: bool,
    as_json: bool,
    listing: bool,
    upstream_port: int | None,
    upstream_protocols: tuple[str, ...],
    whole: bool,
    how: bool,
) -> None:
    r"""Judge an endpoint: which laws of its protocol does it keep, and which does it break?

    Any endpoint gets a handful of real requests: text, tools, parallel tools, tool results, a cut answer,
    errors. With --upstream-port the endpoint is a gateway, and a built-in upstream plays it recorded failures
    of real providers; what comes out must be whole, legal and honest.

    \b
    Examples:
      dragoman conform http://127.0.0.1:4545 --protocol anthropic --model demo
      dragoman conform https://api.example.com/v1 --protocol openai-chat --key env:EXAMPLE_KEY
      dragoman conform http://127.0.0.1:4545 --protocol gemini --upstream-port 9099

    Exit code: 0 all laws are kept, 1 laws are broken, 2 it could not run.
    """
    from ..conform.run import Settings

    settings = Settings(
        url=url or "",
        protocol=protocol or "",
        model=model,
        key=_key(key),
        patience=patience,
        only=only,
        strict=strict,
        upstream_port=upstream_port,
        upstream_protocols=upstream_protocols,
        stream=not whole,
    )
    if how:
        _show_how(settings)
        return
    if protocol is None:
        raise click.UsageError("say what the endpoint speaks: --protocol")
    if listing:
        _list(settings, as_json=as_json)
        return
    if upstream_port is not None and not _has_upstreams(protocol):
        raise click.UsageError(f"recorded cases are not played in {protocol}: no upstream speaks it")
    if url is None:
        raise click.UsageError("say where the endpoint is: dragoman conform URL --protocol P")
    ctx.exit(_run(settings, as_json=as_json))


def _has_upstreams(protocol: str) -> bool:
    from ..protocols.registry import PROTOCOLS

    return protocol in PROTOCOLS


def _run(settings: Settings, *, as_json: bool) -> int:

    from ..conform import report, run, table
    from ..gateway import event_loop

    try:
        found: Report = event_loop.run(run.run(settings, _progress, _say))
    except DragomanError as error:
        _clear()
        if not as_json:
            click.echo(f"Error: {error.message}", err=True)
            return report.COULD_NOT_RUN
        found = run.could_not(settings, error.message)
    except KeyboardInterrupt:
        _clear()
        return 130
    _clear()
    if as_json:
        _echo_json(report.as_json(found))
    else:
        for line in table.lines(found):
            click.echo(line)
    return found.exit_code


def _list(settings: Settings, *, as_json: bool) -> None:
    from ..conform.run import chosen_cases, chosen_probes

    if settings.upstream_port is None:
        trials = [(probe.name, probe.says) for probe in chosen_probes(settings)]
    else:
        trials = [(case["id"], case["title"]) for case in chosen_cases(settings)]
    if as_json:
        listed = [{"name": name, "says": says} for name, says in trials]
        _echo_json(listed)
        return
    width = max((len(name) for name, _ in trials), default=0)
    for name, says in trials:
        click.echo(f"{name:<{width}}  {says}")


def _echo_json(value: object) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def _show_how(settings: Settings) -> None:
    from ..conform.corpus_trials import DEFAULT_MODEL, how_to
    from ..protocols.registry import PROTOCOLS

    port = settings.upstream_port or 9099
    protocols = list(settings.upstream_protocols or PROTOCOLS)
    click.echo(how_to(f"http://127.0.0.1:{port}", protocols, settings.model or DEFAULT_MODEL))


def _key(given: str | None) -> str | None:
    if given is None or not given.startswith("env:"):
        return given
    name = given.removeprefix("env:")
    if not os.environ.get(name):
        raise click.UsageError(f"--key names ${name}, which is not set")
    return os.environ[name]


def _progress(number: int, count: int, name: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K  {number}/{count}  {name}", nl=False, err=True)


def _clear() -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)


def _say(text: str) -> None:
    click.echo(text, err=True)
