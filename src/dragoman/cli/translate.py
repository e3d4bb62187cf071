"""`dragoman translate`: a filter that translates an answer from one protocol to another."""

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
    from ..translation.translation import Translation

CHUNK = 64 * 1024


@click.command()
@click.option("--from", "source", type=UPSTREAM, required=True, help="The protocol of the answer on stdin.")
@click.option("--to", "target", type=CLIENT, required=True, help="The protocol of the answer on stdout.")
@click.option(
    "--tools",
    "tools_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The tools of the request, as JSON in the form of any protocol. Calls are checked against them.",
)
@click.option(
    "--mode",
    type=click.Choice(["live", "whole"]),
    default="live",
    show_default=True,
    help="Send tool arguments as they arrive, or in one piece when a call is complete.",
)
@click.option("--body", is_flag=True, help="Write one JSON body at the end instead of a stream.")
@click.option("--explain", is_flag=True, help="Print on stderr which calls were mended, dropped or cut off.")
def translate(
    source: str, target: str, tools_file: Path | None, mode: str, body: bool, explain: bool
) -> None:
    r"""Translate a model's answer from one protocol to another.

    Reads the answer from stdin, as a stream or as one body, and writes the translation to stdout as the
    answer arrives.

    \b
    Example:
      curl -sN … | dragoman translate --from openai-chat --to anthropic --tools tools.json
    """
    import secrets
    import time

    from ..translation.translation import Options, Translation

    tools = _tools(tools_file)
    options = Options(
        stream=not body,
        mode="whole" if mode == "whole" else "live",
        id=secrets.token_hex(8),
        created=int(time.time()),
    )
    exchange = Translation(source, target, tools=tools, options=options)
    for data in _translated(exchange):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    if explain:
        for receipt in exchange.receipts:
            click.echo(_explain(receipt), err=True)
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


def _translated(exchange: Translation) -> Iterator[bytes]:
    stdin = cast("BufferedReader", sys.stdin.buffer)
    while not exchange.over and (data := stdin.read1(CHUNK)):
        yield exchange.feed(data)
    yield exchange.close()


def _explain(receipt: CallReceipt) -> str:
    lines = [f"call {receipt.id} {receipt.name}: {_outcome(receipt)}"]
    lines += [f"  {fix.rule} at {fix.path or '/'}: {fix.before} -> {fix.after}" for fix in receipt.fixes]
    lines += [f"  does not fit: {problem}" for problem in receipt.problems]
    return "\n".join(lines)


def _outcome(receipt: CallReceipt) -> str:
    if receipt.dropped:
        return f"dropped ({receipt.dropped})"
    if not receipt.complete:
        return "cut off; the client did not get it as a complete call"
    if receipt.recovered:
        return f"recovered from text ({receipt.recovered})"
    return "mended" if receipt.fixes else "passed unchanged"
