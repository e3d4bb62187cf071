"""`dragoman rules`: the mending rules as a list."""

from __future__ import annotations

import click

from .printing import print_json


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def rules(as_json: bool) -> None:
    """List the mending rules, in the order they are tried."""
    if as_json:
        listed = [{"name": name, "stage": stage, "reason": reason} for stage, name, reason in _every_rule()]
        print_json(listed)
        return
    width = max(len(name) for _, name, _ in _every_rule())
    last = ""
    for stage, name, reason in _every_rule():
        if stage != last:
            last = stage
            click.echo(click.style(f"\n{stage}", bold=True))
        click.echo(f"  {name:<{width}}  {reason}")


def _every_rule() -> list[tuple[str, str, str]]:
    from ..tools.rules import ANSWER_RULES, RULES

    answer = [("answer", name, reason) for name, reason in ANSWER_RULES.items()]
    return answer + [(rule.stage, rule.name, rule.reason) for rule in RULES]
