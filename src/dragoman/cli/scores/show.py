"""Read the store and print scores: as a table, as JSON or as a report in Markdown."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from ...model.errors import BadRequest
from ...observe.receipts.score_counts import CALL_CLASSES
from ...observe.scores import ScoreReport, ScoreRequest, Share, TargetScore, parse, report
from ...observe.scores.examples import Example, example
from ...observe.scores.markdown import MAX_EXAMPLES, markdown
from ...routing.reliability import percent
from ...store import Store
from ..printing import aligned, print_json
from ..store.operations import with_store
from ..terminal_text import printable

_MAX_RULES = 6
"""Rules that the terminal names for each target."""


def show(config_file: Path | None, query: dict[str, str], *, as_json: bool, report_file: Path | None) -> None:
    try:
        wanted = parse(query, time.time())
    except BadRequest as error:
        raise click.UsageError(f"--{error.message}") from None
    if report_file is not None:
        _write(with_store(config_file, lambda store, config: _markdown(store, wanted)), report_file)
        return
    found = with_store(config_file, lambda store, config: report(store, wanted))
    if as_json:
        print_json(found)
        return
    for line in table(found):
        click.echo(line)


async def _markdown(store: Store, wanted: ScoreRequest) -> str:
    found = await report(store, wanted)
    examples: dict[str, Sequence[Example]] = {}
    for score in found.rows:
        named = [
            await example(store, score.target, rule, found.since, found.until)
            for rule in list(score.rules)[:MAX_EXAMPLES]
        ]
        examples[score.target] = [one for one in named if one is not None]
    return markdown(found, examples)


def _write(text: str, file: Path) -> None:
    if str(file) == "-":
        click.echo(text, nl=False)
        return
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(file), error.strerror or str(error)) from None
    click.echo(f"The report is in {file}. Read it before you send it.")


def table(found: ScoreReport) -> Iterator[str]:
    """The lines of a table for people, and below it the notes."""
    yield f"from {_day(found.since)} to {_day(found.until)} UTC; (low-high) is the 95% interval of a share"
    yield ""
    if not found.rows:
        yield "No answers were counted in this time."
        return
    rows = [_cells(score) for score in found.rows]
    # Most models make few kinds of mistakes. A column without any number is left out.
    kept = [place for place in range(len(_HEADS)) if any(row[place] != "-" for row in rows)]
    lines = [[row[place] for place in kept] for row in (_HEADS, *rows)]
    for number, line in enumerate(aligned(lines)):
        yield line if number else click.style(line, bold=True)
    if found.more:
        yield f"{found.more:,} more targets are left out: use --limit"
    yield from _notes(found)


_SHORT = {"duplicate": "twice"}
_HEADS = (
    "target", "answers", "good", "calls", CALL_CLASSES[0],
    *(_SHORT.get(name, name) for name in CALL_CLASSES[1:]), "reasked", "half began",
)  # fmt: skip


def _cells(score: TargetScore) -> tuple[str, ...]:
    calls = score.calls
    return (
        printable(score.target),
        f"{score.answers:,}",
        _with_interval(score.good),
        f"{score.total_calls:,}",
        _with_interval(calls[CALL_CLASSES[0]]),
        *(_plain(calls[name]) for name in CALL_CLASSES[1:]),
        _plain(score.reasked),
        _first(score),
    )


def _with_interval(share: Share) -> str:
    if share.share is None or share.low is None or share.high is None:
        return "-"
    # Rounded outwards: the interval that is shown contains the one that was computed.
    return f"{percent(share.share)} ({math.floor(100 * share.low)}-{math.ceil(100 * share.high)})"


def _plain(share: Share) -> str:
    return percent(share.share) if share.share else "-"


def _first(score: TargetScore) -> str:
    first = score.first_event
    if not first.count:
        return "-"
    return "> 120 s" if first.half_within is None else f"<= {first.half_within:g} s"


def _notes(found: ScoreReport) -> Iterator[str]:
    failed = [score for score in found.rows if score.failures]
    if failed:
        yield ""
        yield "Failed attempts:"
        for score in failed:
            yield f"  {printable(score.target)}: {_listed(score.failures)}"
    mended = [score for score in found.rows if score.rules]
    if mended:
        yield ""
        yield "Calls by the rule that mended them (dragoman rules explains each):"
        for score in mended:
            yield f"  {printable(score.target)}: {_listed(score.rules, _MAX_RULES)}"


def _listed(counts: dict[str, int], most: int | None = None) -> str:
    named = [f"{name} {count:,}" for name, count in list(counts.items())[:most]]
    left = len(counts) - len(named)
    return ", ".join(named) + (f", and {left} more" if left else "")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
