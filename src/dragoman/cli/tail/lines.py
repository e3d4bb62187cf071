"""Format an exchange as one line, and its mended calls and errors as lines below it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from ...observe.receipts import Detail, ExchangeSummary
from ...observe.receipts.detail import CallDetail
from ...profiles import UNKNOWN
from ..terminal_text import printable

_MAX_FIXES = 12
_LONGEST = 160
_ROUTE = 48  # columns for model and target, so that the figures line up


def safe(text: str, longest: int = _LONGEST) -> str:
    """`text` as one short line, without characters that control a terminal."""
    return printable(text if len(text) <= longest else text[: longest - 1] + "…")


def one_line(summary: ExchangeSummary, elapsed: float | None = None) -> str:
    """The line of an exchange. `elapsed` is its duration so far, if it is still running."""
    mark, colour = _mark(summary)
    model = safe(summary.model or "no model", 60)
    target = safe(f" → {summary.target}", 80) if summary.target and summary.target != summary.model else ""
    gap = " " * max(0, _ROUTE - len(model) - len(target))
    parts = [
        click.style(when(summary.at), dim=True),
        click.style(mark, fg=colour),
        f"{safe(summary.client if summary.profile in (None, UNKNOWN.name) else summary.profile, 24):<12}",
        model + click.style(target, dim=True) + gap,
        click.style(f"{_seconds(summary.seconds if elapsed is None else elapsed):>7}", bold=True),
        *_figures(summary),
    ]
    return " ".join(part for part in parts if part)


def when(at: float, now: float | None = None) -> str:
    """The time of day; with the date if that is not today."""
    then, today = time.localtime(at), time.localtime(now)
    same_day = (then.tm_year, then.tm_yday) == (today.tm_year, today.tm_yday)
    return time.strftime("%H:%M:%S" if same_day else "%Y-%m-%d %H:%M:%S", then)


def _mark(summary: ExchangeSummary) -> tuple[str, str | None]:
    if summary.outcome == "running":
        return "…", None
    if summary.outcome == "cancelled":
        return "-", None
    if summary.failed:
        return "✗", "red"
    return ("●", "cyan") if summary.mended else ("·", None)


def _figures(summary: ExchangeSummary) -> Iterator[str]:
    if summary.usage is not None:
        yield f"{summary.usage.input:,} → {summary.usage.output:,} tokens"
        yield "$?" if summary.cost is None else f"${summary.cost:.4f}"
    if summary.calls:
        yield f"{summary.calls} call{'s' if summary.calls > 1 else ''}"
    if summary.mended:
        yield click.style(f"{summary.mended} mended", fg="cyan")
    if summary.invalid:
        yield click.style(f"{summary.invalid} invalid", fg="red")
    if summary.outcome == "cancelled":
        yield "cancelled"
    elif summary.failed:
        status = f"{summary.status} " if summary.status >= 400 else ""
        yield click.style(f"{status}{safe(summary.outcome)}", fg="red")


def detail_lines(summary: ExchangeSummary, detail: Detail | None) -> list[str]:
    """One line for the error, and one for each mended, dropped or invalid call."""
    lines = [click.style(f"    {safe(summary.error)}", fg="red")] if summary.error else []
    if detail is None:
        return lines + ([f"    mended by {', '.join(summary.rules)}"] if summary.rules else [])
    changes = [line for call in detail.tool_calls for line in _call(call)]
    lines += changes[:_MAX_FIXES]
    if len(changes) > _MAX_FIXES:
        lines.append(f"    … and {len(changes) - _MAX_FIXES} more")
    return lines


def _call(call: CallDetail) -> Iterator[str]:
    name = safe(call.name, 40)
    if call.dropped:
        yield f"    {name}: dropped ({safe(call.dropped)})"
    if call.recovered:
        yield f"    {name}: found in text ({safe(call.recovered)})"
    for fix in call.fixes:
        change = f"{safe(fix.before, 60)} → {safe(fix.after, 60)}"
        yield f"    {name}{safe(fix.path)}: {change}  {click.style(fix.rule, fg='cyan')}"
    for problem in call.problems:
        wrong = "does not fit" if call.offered else "cannot be run"
        yield click.style(f"    {name} {wrong}: {safe(problem)}", fg="red")
    if not call.complete:
        yield click.style(f"    {name} was cut off; the client did not get it as a complete call", fg="red")


def _seconds(seconds: float) -> str:
    """
    >>> _seconds(0.25), _seconds(3.456), _seconds(75)
    ('250 ms', '3.5 s', '1 min 15 s')
    """
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"
