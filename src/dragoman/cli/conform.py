"""`dragoman conform`: the conformance suite on the command line."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import click

from ..model.errors import DragomanError
from .printing import print_json
from .protocol_choice import ProtocolChoice

if TYPE_CHECKING:
    from ..conform.report import ConformanceReport
    from ..conform.run import SuiteOptions

_PROTOCOL = ProtocolChoice("clients")
_UPSTREAM_PROTOCOL = ProtocolChoice("both")


@click.command()
@click.argument("url", required=False)
@click.option("--protocol", type=_PROTOCOL, help="The protocol of the endpoint.")
@click.option("--model", help="The model to request. Default: the first one that the endpoint lists.")
@click.option(
    "--key",
    envvar="DRAGOMAN_CONFORM_KEY",
    show_envvar=True,
    help="The endpoint's key, or env:NAME. Default: requests carry no key.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 3600),
    default=60.0,
    show_default=True,
    help="Seconds for each request, until the end of its answer.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="GLOB",
    help="Run only trials whose name matches. Recorded cases also match by theme.",
)
@click.option("--strict", is_flag=True, help="Count noted breaches as broken.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--list", "listing", is_flag=True, help="List the trials, then exit.")
@click.option(
    "--upstream-port",
    type=click.IntRange(0, 65535),
    help="Test a gateway: play recorded cases to it from a built-in upstream on this port.",
)
@click.option(
    "--upstream-protocol",
    "upstream_protocols",
    type=_UPSTREAM_PROTOCOL,
    multiple=True,
    help="Play only the cases of this upstream protocol. Default: all.",
)
@click.option("--whole", is_flag=True, help="Request each case as one body, without streaming.")
@click.option("--how", is_flag=True, help="Print a config that points Dragoman at the upstream, then exit.")
@click.pass_context
def conform(
    ctx: click.Context,
    url: str | None,
    protocol: str | None,
    model: str | None,
    key: str | None,
    timeout: float,
    only: tuple[str, ...],
    strict: bool,
    as_json: bool,
    listing: bool,
    upstream_port: int | None,
    upstream_protocols: tuple[str, ...],
    whole: bool,
    how: bool,
) -> None:
    r"""Check whether an endpoint keeps the laws of its protocol.

    Sends a few real requests: text, tools, parallel tools, tool results, a cut answer, errors. With
    --upstream-port the endpoint is a gateway: a built-in upstream plays recorded failures of real providers
    to it, and the suite judges the gateway's answers.

    \b
    Examples:
      dragoman conform http://127.0.0.1:4545 --protocol anthropic --model demo
      dragoman conform https://api.example.com/v1 --protocol openai-chat --key env:EXAMPLE_KEY
      dragoman conform http://127.0.0.1:4545 --protocol gemini --upstream-port 9099

    Exit code: 0 all laws are kept, 1 laws are broken, 2 the suite could not run.
    """
    from ..conform.run import SuiteOptions

    options = SuiteOptions(
        url=url or "",
        protocol=protocol or "",
        model=model,
        key=_key(key),
        timeout=timeout,
        only=only,
        strict=strict,
        upstream_port=upstream_port,
        upstream_protocols=upstream_protocols,
        stream=not whole,
    )
    if how:
        _show_how(options)
        return
    if protocol is None:
        raise click.UsageError("name the protocol of the endpoint with --protocol")
    if listing:
        _list(options, as_json=as_json)
        return
    if upstream_port is not None and not _has_upstreams(protocol):
        raise click.UsageError(
            f"--upstream-port does not work with --protocol {protocol}: no upstream speaks it"
        )
    if url is None:
        raise click.UsageError("give the endpoint's URL: dragoman conform URL --protocol PROTOCOL")
    ctx.exit(_run(options, as_json=as_json))


def _has_upstreams(protocol: str) -> bool:
    from ..protocols.registry import PROTOCOLS

    return protocol in PROTOCOLS


def _run(options: SuiteOptions, *, as_json: bool) -> int:
    from ..conform import report, run, table
    from ..gateway.process import event_loop

    try:
        found: ConformanceReport = event_loop.run(run.run(options, _progress, _say))
    except DragomanError as error:
        _clear()
        if not as_json:
            click.echo(f"Error: {error.message}", err=True)
            return report.COULD_NOT_RUN
        found = run.could_not(options, error.message)
    except KeyboardInterrupt:
        _clear()
        return 130
    _clear()
    if as_json:
        print_json(report.as_json(found))
    else:
        for line in table.lines(found):
            click.echo(line)
    return found.exit_code


def _list(options: SuiteOptions, *, as_json: bool) -> None:
    from ..conform.run import chosen_cases, chosen_probes

    if options.upstream_port is None:
        trials = [(probe.name, probe.says) for probe in chosen_probes(options)]
    else:
        trials = [(case["id"], case["title"]) for case in chosen_cases(options)]
    if as_json:
        listed = [{"name": name, "says": says} for name, says in trials]
        print_json(listed)
        return
    width = max((len(name) for name, _ in trials), default=0)
    for name, says in trials:
        click.echo(f"{name:<{width}}  {says}")


def _show_how(options: SuiteOptions) -> None:
    from ..conform.corpus_trials import DEFAULT_MODEL, how_to
    from ..protocols.registry import PROTOCOLS

    port = options.upstream_port or 9099
    protocols = list(options.upstream_protocols or PROTOCOLS)
    click.echo(how_to(f"http://127.0.0.1:{port}", protocols, options.model or DEFAULT_MODEL))


def _key(given: str | None) -> str | None:
    if given is None or not given.startswith("env:"):
        return given
    name = given.removeprefix("env:")
    if not os.environ.get(name):
        raise click.UsageError(f"--key env:{name}: the environment variable {name} is not set")
    return os.environ[name]


def _progress(number: int, count: int, name: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[K  {number}/{count}  {name}", nl=False, err=True)


def _clear() -> None:
    if sys.stderr.isatty():
        click.echo("\r\x1b[K", nl=False, err=True)


def _say(text: str) -> None:
    click.echo(text, err=True)
