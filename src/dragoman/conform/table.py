"""The report as a table on a terminal."""

from __future__ import annotations

from collections.abc import Iterator

import click

from .laws import Breach
from .report import UNSEEN, ConformanceReport, LawResult
from .trial import BROKEN, KEPT, NOTED, SKIPPED, Trial

_COLOURS = {KEPT: "green", BROKEN: "red", NOTED: "yellow", SKIPPED: "bright_black"}
_BYTES = 100
_BREACHES = 3


def lines(report: ConformanceReport) -> Iterator[str]:
    """The lines of the table: laws, trials and the summary."""
    yield f"{report.url} as {report.protocol}, model {report.model}"
    yield ""
    rows = [row for row in report.rows() if row.state != UNSEEN]
    if rows:
        yield from _laws(rows)
        yield ""
    yield from _trials(report)
    if report.problem:
        yield click.style(report.problem, fg="yellow")
    yield click.style(report.summary, bold=True)


def _laws(rows: list[LawResult]) -> Iterator[str]:
    width = max(len(row.law.name) for row in rows)
    yield click.style(f"  {'':<6}  {'law':<{width}}  {'kept':>4}  {'broken':>6}", bold=True)
    for row in rows:
        count = row.broken + row.noted or "·"
        counts = f"{row.kept or '·':>4}  {count:>6}"
        yield f"  {_mark(row.state)}  {row.law.name:<{width}}  {counts}  {row.law.says}"
        if row.first:
            yield from _breach(*row.first)


def _breach(trial: Trial, broken: Breach) -> Iterator[str]:
    where = f"{trial.name}, {broken.place}" if broken.place else trial.name
    yield f"            {where}: {broken.text}"
    if broken.excerpt:
        at = "" if broken.offset is None else f" at {broken.offset}"
        yield click.style(f"            bytes{at}: {_shown(broken.excerpt)}", fg="cyan")


def _trials(report: ConformanceReport) -> Iterator[str]:
    width = max((len(trial.name) for trial in report.trials), default=0)
    # A gateway run has hundreds of cases: show only those that were not kept.
    many = report.mode == "gateway"
    for trial in report.trials:
        if many and trial.state == KEPT:
            continue
        yield f"  {_mark(trial.state)}  {trial.name:<{width}}  {trial.says}"
        if trial.skipped:
            yield f"            {trial.skipped}"
        for broken in trial.complaints.found[:_BREACHES]:
            yield f"            {broken.law.name}: {broken}"
        more = len(trial.complaints.found) - _BREACHES
        if more > 0:
            yield f"            … and {more} more"
    yield ""


def _mark(state: str) -> str:
    word = state.upper() if state == BROKEN else "—" if state == SKIPPED else state
    return click.style(f"{word:<6}", fg=_COLOURS[state])


def _shown(excerpt: bytes) -> str:
    """The bytes without characters that control a terminal."""
    text = repr(excerpt)[2:-1]
    return text if len(text) <= _BYTES else text[:_BYTES] + "…"
