"""The command `tail`."""

from __future__ import annotations

from pathlib import Path

import click

from ..options import CONFIG
from ..time_option import PointInTime


@click.command()
@click.argument("words", nargs=-1)
@CONFIG
@click.option(
    "--url", envvar="DRAGOMAN_URL", help="The gateway's URL. Default: the address in the config (port 4545)."
)
@click.option(
    "--key",
    envvar="DRAGOMAN_KEY",
    help="One of the gateway's keys. Default: $DRAGOMAN_KEY, then a key of the config.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option(
    "-n",
    "--last",
    type=click.IntRange(0, 1000),
    default=10,
    show_default=True,
    help="First show this many past exchanges.",
)
@click.option(
    "--since", type=PointInTime(), help="First show all exchanges since then: 30m, 2h, 7d, or a date."
)
@click.option("--failed", is_flag=True, help="Only failed exchanges.")
@click.option("--mended", is_flag=True, help="Only exchanges with a mended call.")
@click.option("--model", help="Only this model; * matches any text.")
@click.option("--client", help="Only clients of this protocol.")
@click.option("--profile", help="Only this agent: claude-code, codex, …")
@click.option("--session", help="Only this conversation; `dragoman cache` and the inspector show its id.")
@click.option("--status", help="Only this HTTP status or outcome: 429, timeout, …")
@click.option("--rule", help="Only exchanges that this rule mended; `dragoman rules` lists the rules.")
@click.option("--slow", type=float, metavar="SECONDS", help="Only exchanges that took at least this long.")
def tail(
    config_file: Path | None,
    url: str | None,
    key: str | None,
    as_json: bool,
    last: int,
    words: tuple[str, ...],
    **only: object,
) -> None:
    r"""Follow the exchanges of a running gateway.

    Prints one line per exchange when it ends, and below it each mended call with its rule, and each error.
    WORDS filter by id, model, target, error and rule. A terminal also shows the running exchanges.

    \b
    Examples:
      dragoman tail --failed --since 2h
      dragoman tail --mended --model 'claude-*'
      dragoman tail --json --slow 30 | jq .id
    """
    from ...credentials.secret import Secret
    from ..gateway_address import GatewayAddress, configured_address
    from ..serve.service import until_interrupted
    from .follow import ALL, TailOptions, follow
    from .screen import Screen

    query = {name: "1" if value is True else str(value) for name, value in only.items() if value}
    if words:
        query["q"] = " ".join(words)
    gateway = configured_address(config_file) if url is None else GatewayAddress(url)
    secret = Secret(key) if key else gateway.key
    last = ALL if only.get("since") else last
    options = TailOptions(url=gateway.url, key=secret, as_json=as_json, last=last, query=query)
    until_interrupted(follow(options, Screen(as_json=as_json)))
