"""Read a session from the store, and print what the cache did."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from ...observe.sessions import Session, SessionDetail, SessionTurn, one
from ...store import SessionQuery
from ..printing import print_json
from ..store.operations import with_store
from ..terminal_text import printable


def show(config_file: Path | None, session: str | None, as_json: bool) -> None:
    found = with_store(config_file, lambda store, config: one(store, SessionQuery(session=session)))
    if found is None:
        if session is None:
            raise click.ClickException("the store has no session yet: the gateway has answered no request")
        raise click.ClickException(
            f"the store has no session {session!r}: `dragoman usage --by session` lists those that it has"
        )
    if as_json:
        print_json(found)
        return
    for line in lines(found):
        click.echo(line)


def lines(found: SessionDetail) -> Iterator[str]:
    """The report for people."""
    session = found.session
    head = f"session {session.session}  {session.profile}  {printable(session.opening)}"
    yield click.style(head.rstrip(), bold=True)
    yield _totals(session)
    if found.left_out:
        yield f"{found.left_out:,} older turns are left out."
    yield ""
    columns = f"{'turn':>4}  {'time':<14}  {'prompt':>8}  {'cached':>6}  {'same':>10}  why"
    yield click.style(columns, bold=True)
    for number, turn in enumerate(found.turns, found.left_out + 1):
        yield from _turn(number, turn)


def _totals(session: Session) -> str:
    turns = f"{session.turns:,} turn{'' if session.turns == 1 else 's'}"
    if not session.input:
        return f"{turns}; the upstream did not report its usage"
    share = session.cached / session.input
    return f"{turns}; {share:.0%} of {session.input:,} prompt tokens came from the cache"


def _turn(number: int, turn: SessionTurn) -> Iterator[str]:
    cache = turn.cache
    when = datetime.fromtimestamp(turn.exchange.at, UTC).astimezone().strftime("%m-%d %H:%M:%S")
    tokens = "-" if cache.input is None else f"{cache.input:,}"
    cached = f"{cache.cached / cache.input:.0%}" if cache.input and cache.cached is not None else "-"
    same = f"{cache.same_bytes / 1000:,.1f} kB"
    first, *more = (printable(sentence) for sentence in (cache.sentence, *cache.also))
    head = f"{number:>4}  {when}  {tokens:>8}  {cached:>6}  {same:>10}  "
    yield head + (click.style(first, fg="yellow") if cache.hit is False else first)
    yield from (" " * len(head) + sentence for sentence in more)
