"""The command: parses and calls."""

from __future__ import annotations

import click

DEFAULT_URL = "http://127.0.0.1:4545"


@click.command()
@click.argument("words", nargs=-1)
@click.option("--url", default=DEFAULT_URL, show_default=True, envvar="DRAGOMAN_URL", help="The gateway.")
@click.option("--key", envvar="DRAGOMAN_KEY", help="One of its server.keys. Better set DRAGOMAN_KEY.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, for programs.")
@click.option(
    "-n", "--last", type=click.IntRange(0, 1000), default=10, show_default=True, help="Begin with so many."
)
@click.option("--failed", is_flag=True, help="Only what failed.")
@click.option("--mended", is_flag=True, help="Only what had a call mended.")
@click.option("--model", help="Only this model; * stands for anything.")
@click.option("--client", help="Only clients of this protocol.")
@click.option("--profile", help="Only this agent: claude-code, codex, …")
@click.option("--status", help="Only this HTTP status or outcome: 429, timeout, …")
@click.option("--rule", help="Only where this rule fired; `dragoman rules` lists them.")
@click.option("--slow", type=float, metavar="SECONDS", help="Only what took this long or longer.")
def tail(url: str, key: str | None, as_json: bool, last: int, words: tuple[str, ...], **only: object) -> None:
    r"""Follow the exchanges of a running gateway.

    A line for each as it ends, and under it what was mended, by which rule, and what failed. WORDS are looked
    for in ids, models, targets, errors and rules. On a terminal, what is still running stands below.

    \b
    Examples:
      dragoman tail --failed
      dragoman tail --mended --model 'claude-*'
      dragoman tail --json --slow 30 | jq .id
    """
    from ...credentials.secret import Secret
    from ..serve.service import until_interrupted
    from .follow import Settings, follow
    from .screen import Screen

    query = {name: "1" if value is True else str(value) for name, value in only.items() if value}
    if words:
        query["q"] = " ".join(words)
    secret = Secret(key) if key else None
    settings = Settings(url=url, key=secret, as_json=as_json, last=last, query=query)
    until_interrupted(follow(settings, Screen(as_json=as_json)))
