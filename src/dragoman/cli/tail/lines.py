"""An exchange as a line for people, and what was mended as lines under it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import click

from ...observe.receipts import Detail, Summary
from ...observe.receipts.detail import CallDetail
from ...profiles import UNKNOWN

# What a model or an upstream wrote must not steer the terminal: control characters, and those that turn text.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_MOST_FIXES = 12
_LONGEST = 160
_ROUTE = 48  # columns for model and target, so that figures stand below each other where they can


def safe(text: str, longest: int = _LONGEST) -> str:
    r"""`text` in one line, shortened, with nothing in it that a terminal obeys.

    >>> safe("a\x1b[2Jb\nc")
    'a�[2Jb�c'
    """
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(said: Summary, elapsed: float | None = None) -> str:
    """`elapsed` is for one that still runs."""
    mark, colour = _mark(said)
    model = safe(said.model or "no model", 60)
    target = safe(f" → {said.target}", 80) if said.target and said.target != said.model else ""
    gap = " " * max(0, _ROUTE - len(model) - len(target))
    parts = [
        click.style(time.strftime("%H:%M:%S", time.localtime(said.at)), dim=True),
        click.style(mark, fg=colour),
        f"{safe(said.client if said.profile in (None, UNKNOWN.name) else said.profile, 24):<12}",
        model + click.style(target, dim=True) + gap,
        click.style(f"{_seconds(said.seconds if elapsed is None else elapsed):>7}", bold=True),
        *_figures(said),
    ]
    return " ".join(part for part in parts if part)


def _mark(said: Summary) -> tuple[str, str | None]:
    if said.outcome == "running":
        return "…", None
    if said.outcome == "cancelled":
        return "-", None
    if said.failed:
        return "✗", "red"
    return ("●", "cyan") if said.mended else ("·", None)


def _figures(said: Summary) -> Iterator[str]:
    if said.usage is not None:
        yield f"{said.usage.input:,} → {said.usage.output:,} tokens"
    if said.cost is not None:
        yield f"${said.cost:.4f}"
    if said.calls:
        yield f"{said.calls} call{'s' if said.calls > 1 else ''}"
    if said.mended:
        yield click.style(f"{said.mended} mended", fg="cyan")
    if said.invalid:
        yield click.style(f"{said.invalid} invalid", fg="red")
    if said.outcome == "cancelled":
        yield "cancelled"
    elif said.failed:
        status = f"{said.status} " if said.status >= 400 else ""
        yield click.style(f"{status}{safe(said.outcome)}", fg="red")


def under(said: Summary, detail: Detail | None) -> list[str]:
    """Why it failed, and what was mended: one line for each."""
    lines = [click.style(f"    {safe(said.error)}", fg="red")] if said.error else []
    if detail is None:
        return lines + ([f"    mended by {', '.join(said.rules)}"] if said.rules else [])
    told = [line for call in detail.tool_calls for line in _call(call)]
    lines += told[:_MOST_FIXES]
    if len(told) > _MOST_FIXES:
        lines.append(f"    … and {len(told) - _MOST_FIXES} more")
    return lines


def _call(call: CallDetail) -> Iterator[str]:
    name = safe(call.name, 40)
    if call.dropped:
        yield f"    {name}: left out ({safe(call.dropped)})"
    if call.recovered:
        yield f"    {name}: found in text ({safe(call.recovered)})"
    for fix in call.fixes:
        change = f"{safe(fix.before, 60)} → {safe(fix.after, 60)}"
        yield f"    {name}{safe(fix.path)}: {change}  {click.style(fix.rule, fg='cyan')}"
    for problem in call.problems:
        wrong = "does not fit" if call.offered else "cannot be run"
        yield click.style(f"    {name} {wrong}: {safe(problem)}", fg="red")
    if not call.complete:
        yield click.style(f"    {name} was cut off, not given out as complete", fg="red")


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
