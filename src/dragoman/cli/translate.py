"""`dragoman translate`: a filter from one protocol's answer to another's."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from .options import CLIENT, UPSTREAM

if TYPE_CHECKING:
    from io import BufferedReader

    from ..model.messages import Tool
    from ..tools.receipts import CallReceipt
    from ..translation.exchange import Exchange

CHUNK = 64 * 1024


@click.command()
@click.option("--from", "source", type=UPSTREAM, required=True, help="The protocol of the answer on stdin.")
@click.option("--to", "target", type=CLIENT, required=True, help="The protocol of the answer on stdout.")
@click.option(
    "--tools",
    "tools_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The tools the client offered, as JSON in any protocol's form. Calls are checked against them.",
)
@click.option(
    "--mode",
    type=click.Choice(["live", "whole"]),
    default="live",
    show_default=True,
    help="Send arguments as they arrive, or in one piece when a call is complete.",
)
@click.option("--body", is_flag=True, help="Write one JSON body at the end instead of a stream.")
@click.option("--explain", is_flag=True, help="Say on stderr what was mended, dropped or cut.")
def translate(
    source: str, target: str, tools_file: Path | None, mode: str, body: bool, explain: bool
) -> None:
    r"""Translate a model's answer: one protocol on stdin, another on stdout.

    The answer may be a stream or a plain body. It is translated as it arrives.

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


def _tools(path: Path | None) -> tuple[Tool, ...]:
    if path is None:
        return ()
    import msgspec

    from ..model.errors import DragomanError
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
