"""The command line: parses and calls, nothing more."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from .. import __version__
from ..model.errors import DragomanError
from .completion import agents, completion
from .conform import conform
from .errors import Friendly
from .init.command import init
from .protocol_choice import ProtocolChoice
from .tail.command import tail

if TYPE_CHECKING:
    from io import BufferedReader

    from ..model.messages import Tool
    from ..tools.receipts import CallReceipt
    from ..translation.exchange import Exchange

# What a command needs is imported when it runs: `--help`, and every Tab in a shell, must not wait for it.

UPSTREAM = ProtocolChoice("upstreams")
CLIENT = ProtocolChoice("clients")
CHUNK = 64 * 1024


@click.group(
    cls=Friendly,
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
        from .init.steps import orientation

        for line in orientation(os.environ, Path.cwd()):
            click.echo(line)


main.add_command(init)
main.add_command(conform)
main.add_command(completion)


@main.command()
@click.option("--from", "source", type=UPSTREAM, required=True, help="What the answer on stdin speaks.")
@click.option("--to", "target", type=CLIENT, required=True, help="What the answer on stdout is to speak.")
@click.option(
    "--tools",
    "tools_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The tools the client offered, as JSON in any protocol's shape. Calls are checked against them.",
)
@click.option(
    "--mode",
    type=click.Choice(["live", "whole"]),
    default="live",
    show_default=True,
    help="Arguments as they come, or in one piece when a call is complete.",
)
@click.option("--body", is_flag=True, help="Give one JSON body at the end instead of a stream.")
@click.option("--explain", is_flag=True, help="Say on stderr what was mended, dropped or cut.")
def translate(
    source: str, target: str, tools_file: Path | None, mode: str, body: bool, explain: bool
) -> None:
    r"""Translate a model's answer: one protocol on stdin, another on stdout.

    The answer may be a stream or a plain body; it is translated as it arrives.

    \b
    Example:
      curl -sN … | dragoman translate --from openai-chat --to anthropic --tools tools.json
    """
    import secrets
    import time

    from ..translation.exchange import Exchange, Options

    tools = _tools(tools_file)
    options = Options(
        stream=not body,
        mode="whole" if mode == "whole" else "live",
        id=secrets.token_hex(8),
        created=int(time.time()),
    )
    exchange = Exchange(source, target, tools=tools, options=options)
    for data in _through(exchange):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    if explain:
        for receipt in exchange.receipts:
            click.echo(_explained(receipt), err=True)
    if exchange.failure is not None:
        click.echo(f"dragoman: the answer ended in an error: {exchange.failure.message}", err=True)


@main.command()
@click.option("--json", "as_json", is_flag=True, help="As JSON, for programs.")
def rules(as_json: bool) -> None:
    """List the rules that find and mend tool calls, in the order they are tried."""
    if as_json:
        import msgspec

        listed = [{"name": name, "stage": stage, "reason": reason} for stage, name, reason in _every_rule()]
        click.echo(msgspec.json.format(msgspec.json.encode(listed), indent=2))
        return
    width = max(len(name) for _, name, _ in _every_rule())
    last = ""
    for stage, name, reason in _every_rule():
        if stage != last:
            last = stage
            click.echo(click.style(f"\n{stage}", bold=True))
        click.echo(f"  {name:<{width}}  {reason}")


CONFIG = click.option(
    "--config",
    "config_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The config file. Default: $DRAGOMAN_CONFIG, ./dragoman.toml, then the user's config folder.",
)
LOG_LEVEL = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much to say on stderr; debug names the choice of target and why.",
)


@main.command()
@CONFIG
@click.option("--host", help="Listen here instead of server.host. Not loopback: needs server.keys.")
@click.option("--port", type=click.IntRange(0, 65535), help="Listen here instead of server.port (4545).")
@click.option("--workers", type=click.IntRange(1, 64), help="Processes on the same port.")
@click.option(
    "--record",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Record every exchange in this folder, without secrets, for `dragoman replay`.",
)
@LOG_LEVEL
def serve(
    config_file: Path | None,
    host: str | None,
    port: int | None,
    workers: int | None,
    record: Path | None,
    log_level: str,
) -> None:
    """Run the gateway.

    Without a config file it uses the provider keys it finds in the environment
    (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY, OPENROUTER_API_KEY, …).
    """
    from .serve import Settings, run

    record = record.absolute() if record else None
    run(Settings(file=config_file, host=host, port=port, log_level=log_level, record=record), workers)


@main.command()
@CONFIG
def check(config_file: Path | None) -> None:
    """Read the config, resolve every credential, knock at every upstream, and say what to mend."""
    import asyncio

    from . import check as checking
    from .serve import configured

    config = configured(config_file)
    click.echo(f"config: {config.path or 'from the environment'}")
    for warning in config.warnings:
        click.echo(click.style(f"  note: {warning}", fg="yellow"))
    findings = asyncio.run(checking.check(config, os.environ))
    for finding in findings:
        mark = click.style("ok", fg="green") if finding.good else click.style("NOT OK", fg="red")
        click.echo(f"  {finding.name}: {mark}: {finding.says}")
        if finding.advice:
            click.echo(f"    {finding.advice}")
    if not all(finding.good for finding in findings):
        raise SystemExit(1)


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=4545, show_default=True)
@click.option("--show", is_flag=True, help="Only show broken answers arriving and leaving whole, then end.")
def demo(host: str, port: int, show: bool) -> None:
    """Run the gateway with a scripted model behind it. Needs no key and no network."""
    if show:
        from . import demo_scenes

        for line in demo_scenes.lines():
            click.echo(line)
        return
    from . import demo as gateway

    gateway.run(host, port, click.echo)


MODEL = click.option("--model", help="The model it is to use, by a name the gateway knows.")
PORT = click.option("--port", type=click.IntRange(0, 65535), help="Where the gateway is, or is to be.")


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@CONFIG
@PORT
@MODEL
@click.argument("client", required=False, shell_complete=agents)
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
def run(
    config_file: Path | None, port: int | None, model: str | None, client: str | None, args: tuple[str, ...]
) -> None:
    r"""Start an agent that talks to the gateway; without CLIENT, list the agents.

    Options for Dragoman stand before CLIENT; all that follows it goes to the agent. If no gateway
    runs, one is started and ends with the agent. The agent's own settings are not changed.

    \b
    Examples:
      dragoman run claude
      dragoman run --model openrouter/qwen/qwen3-coder codex exec "Fix the tests"
    """
    from . import run as launch
    from .serve import Settings

    if client is None:
        _list_clients()
        return
    settings = Settings(file=config_file, port=port)
    order = launch.Order(client=launch.client(client), args=args, model=model, settings=settings)
    raise SystemExit(launch.run(order, os.environ, _say_on_terminal))


@main.command()
@CONFIG
@PORT
@MODEL
@click.option("--shell", type=click.Choice(["sh", "fish", "powershell"]), default="sh", show_default=True)
@click.option("--write", is_flag=True, help="Write the files it speaks of, into Dragoman's own folder.")
@click.argument("client", shell_complete=agents)
def env(
    config_file: Path | None, port: int | None, model: str | None, shell: str, write: bool, client: str
) -> None:
    r"""Print what `dragoman run CLIENT` would set, for a shell to take in. It may hold a key.

    \b
    Example:
      eval "$(dragoman env claude)" && claude
    """
    from . import run as launch
    from .serve import Settings

    settings = Settings(file=config_file, port=port)
    order = launch.Order(client=launch.client(client), model=model, settings=settings)
    for line in launch.settings_of(order, os.environ, shell, write=write):
        click.echo(line)


main.add_command(tail)


def _list_clients() -> None:
    from .run import CLIENTS

    width = max(map(len, CLIENTS))
    for client in CLIENTS.values():
        found = shutil.which(client.program)
        says = f"{client.title}: {found}" if found else f"{client.title}: not installed ({client.install})"
        click.echo(f"  {client.name:<{width}}  {says}")


def _say_on_terminal(text: str) -> None:
    if sys.stderr.isatty():
        click.echo(text, err=True)


@main.command()
@click.argument("recording", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--to", "target", type=CLIENT, help="Answer a client of another protocol.")
@click.option("--mode", type=click.Choice(["live", "whole"]), help="Another way to give tool arguments.")
@click.option("--diff", is_flag=True, help="Show what differs from what the client got then.")
@click.option("--as-test", is_flag=True, help="Write a regression test that expects what comes out now.")
@click.option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=".",
    metavar="DIR",
    help="Where --as-test puts its three files; by default here.",
)
def replay(recording: Path, target: str | None, mode: Any, diff: bool, as_test: bool, into: Path) -> None:
    r"""Play a recording through today's code and show both sides, step by step.

    Recordings are made by `dragoman serve --record DIR`, and downloaded from the inspector. Nobody is asked
    anything: the upstream's bytes are in the file. With --diff, the exit code is 1 if something differs.

    \b
    Example:
      dragoman replay recordings/20260101-120000-3f….dragoman --diff
    """
    from . import replay as command

    if diff and target is not None:
        raise click.UsageError("--diff compares with what the client got then: leave --to out.")
    same = command.run(recording, to=target, mode=mode, diff=diff, into=into if as_test else None)
    if diff and not same:
        raise SystemExit(1)


def _every_rule() -> list[tuple[str, str, str]]:
    from ..tools.rules import ANSWER_RULES, RULES

    answer = [("answer", name, reason) for name, reason in ANSWER_RULES.items()]
    return answer + [(rule.stage, rule.name, rule.reason) for rule in RULES]


def _tools(path: Path | None) -> tuple[Tool, ...]:
    if path is None:
        return ()
    import msgspec

    from ..tools.tool_lists import read_tools

    try:
        return read_tools(msgspec.json.decode(path.read_bytes()))
    except msgspec.DecodeError as error:
        raise DragomanError(f"{path} is not JSON: {error}") from None


def _through(exchange: Exchange) -> Iterator[bytes]:
    stdin = cast("BufferedReader", sys.stdin.buffer)
    while not exchange.over and (data := stdin.read1(CHUNK)):
        yield exchange.feed(data)
    yield exchange.close()


def _explained(receipt: CallReceipt) -> str:
    lines = [f"call {receipt.id} {receipt.name}: {_fate(receipt)}"]
    lines += [f"  {fix.rule} at {fix.path or '/'}: {fix.before} -> {fix.after}" for fix in receipt.fixes]
    lines += [f"  does not fit: {problem}" for problem in receipt.problems]
    return "\n".join(lines)


def _fate(receipt: CallReceipt) -> str:
    if receipt.dropped:
        return f"left out ({receipt.dropped})"
    if not receipt.complete:
        return "cut off, not given out as complete"
    if receipt.recovered:
        return f"recovered from text ({receipt.recovered})"
    return "mended" if receipt.fixes else "passed unchanged"
