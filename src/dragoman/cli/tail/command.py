"""The command `tail`."""

from __future__ import annotations

import click

DEFAULT_URL = "http://127.0.0.1:4545"


@click.command()
@click.argument("words", nargs=-1)
@click.option(
    "--url", default=DEFAULT_URL, show_default=True, envvar="DRAGOMAN_URL", help="The gateway's URL."
)
@click.option(
    "--key", envvar="DRAGOMAN_KEY", help="One of the gateway's keys. Prefer the variable DRAGOMAN_KEY."
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
@click.option("--failed", is_flag=True, help="Only failed exchanges.")
@click.option("--mended", is_flag=True, help="Only exchanges with a mended call.")
@click.option("--model", help="Only this model; * matches any text.")
@click.option("--client", help="Only clients of this protocol.")
@click.option("--profile", help="Only this agent: claude-code, codex, …")
@click.option("--status", help="Only this HTTP status or outcome: 429, timeout, …")
@click.option("--rule", help="Only exchanges that this rule mended; `dragoman rules` lists the rules.")
@click.option("--slow", type=float, metavar="SECONDS", help="Only exchanges that took at least this long.")
def tail(url: str, key: str | None, as_json: bool, last: int, words: tuple[str, ...], **only: object) -> None:
    r"""Follow the exchanges of a running gateway.

    Prints one line per exchange when it ends, and below it each mended call with its rule, and each error.
    WORDS filter by id, model, target, error and rule. A terminal also shows the running exchanges.

    \b
    Examples:
      dragoman tail --failed
      dragoman tail --mended --model 'claude-*'
      dragoman tail --json --slow 30 | jq .id
    """
    from ...credentials.secret import Secret
    from ..serve.service import until_interrupted
    from .follow import TailOptions, follow
    from .screen import Screen

    query = {name: "1" if value is True else str(value) for name, value in only.items() if value}
    if words:
        query["q"] = " ".join(words)
    secret = Secret(key) if key else None
    options = TailOptions(url=url, key=secret, as_json=as_json, last=last, query=query)
    until_interrupted(follow(options, Screen(as_json=as_json)))
