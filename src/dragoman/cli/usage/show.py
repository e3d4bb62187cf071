"""Read the store and print a report of usage: as a table, as CSV or as JSON."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click
import msgspec

from ...model.errors import BadRequest
from ...observe.usage import Sums, UsageReport, parse, report
from ..printing import aligned, print_json
from ..store.operations import with_store
from ..terminal_text import printable

Format = Literal["table", "csv", "json"]
_ROWS = 50  # in a table
_ALL = sys.maxsize
# Names that a terminal shows for groups without one.
_NAMELESS = {"key": "(no name)", "team": "(no team)", "session": "(no session)", "upstream": "(none)"}


def show(config_file: Path | None, query: dict[str, str], limit: int | None, form: Format) -> None:
    try:
        wanted = parse(query, time.time())
    except BadRequest as error:
        raise click.UsageError(f"--{error.message}") from None
    limit = limit or (_ROWS if form == "table" else _ALL)
    wanted = msgspec.structs.replace(wanted, limit=limit)
    found = with_store(config_file, lambda store, config: report(store, wanted))
    if form == "json":
        print_json(found)
    elif form == "csv":
        _write_csv(found)
    else:
        for line in table(found):
            click.echo(line)


def _write_csv(found: UsageReport) -> None:
    fields = [name for name in Sums.__struct_fields__ if name != "group"]
    writer = csv.writer(sys.stdout)
    writer.writerow([found.by, *fields])
    for row in found.rows:
        # An unknown cost is an empty field, never 0.
        writer.writerow([_harmless(row.group), *(getattr(row, name) for name in fields)])


def _harmless(name: str) -> str:
    """A name that no spreadsheet takes for a formula: clients choose the names of models."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name


def table(found: UsageReport) -> Iterator[str]:
    """The lines of a table for people."""
    yield f"by {found.by}, from {_time(found.since)} to {_time(found.until)} UTC"
    yield ""
    if not found.rows:
        yield "No requests in this time."
        return
    named = [(_name(row.group, found.by), row) for row in found.rows]
    yield from _lines(found, named)
    if found.more:
        yield f"{found.more:,} more rows are left out: use --limit, or --csv for all"
    if found.total.unpriced:
        yield ""
        yield (
            f"The price of {_requests(found.total.unpriced)} is unknown, and not in the sums. "
            "[prices] in the config can give it."
        )


def _lines(found: UsageReport, named: list[tuple[str, Sums]]) -> Iterator[str]:
    heads = (found.by, "requests", "failed", "input", "cached", "output", "calls", "mended", "cost")
    lines = [*named, ("total", found.total)]
    doubt = " + ?" if any(row.unpriced and row.cost is not None for _, row in lines) else ""
    cells = [(*heads[:-1], heads[-1] + " " * len(doubt)), *(_cells(name, row, doubt) for name, row in lines)]
    for number, line in enumerate(aligned(cells)):
        bold = number in (0, len(cells) - 1)
        yield click.style(line, bold=True) if bold else line


def _cells(name: str, row: Sums, doubt: str) -> tuple[str, ...]:
    """`doubt` stands after the cost of rows with requests of unknown price."""
    return (
        name,
        f"{row.requests:,}",
        f"{row.failed:,}" if row.failed else "-",
        _short(row.input),
        f"{row.cached / row.input:.0%}" if row.input else "-",
        _short(row.output),
        f"{row.calls:,}",
        f"{row.mended:,}" if row.mended else "-",
        _cost(row) + (doubt if row.unpriced and row.cost is not None else " " * len(doubt)),
    )


def _cost(row: Sums) -> str:
    return "unknown" if row.cost is None else _dollars(row.cost)


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.1 or not amount else f"${amount:.4f}"


def _short(number: int) -> str:
    if number < 10_000:
        return f"{number:,}"
    return f"{number / 1000:.1f}k" if number < 1_000_000 else f"{number / 1_000_000:,.1f}M"


def _name(group: str, by: str) -> str:
    return printable(group) or _NAMELESS.get(by, "(none)")


def _requests(number: int) -> str:
    return f"{number:,} request" if number == 1 else f"{number:,} requests"


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
