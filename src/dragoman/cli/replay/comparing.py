"""`dragoman replay --against`: a table of what other models answer to a recorded conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path

from ...observe import logs
from ...offline.compare import ComparedAnswer, compare, session
from ..serve.service import load_config

_RECORDED = "(recorded)"
_HEAD = ("turn", "target", "outcome", "valid", "mended", "bad", "in", "out", "cost", "seconds", "calls")
_RIGHT = frozenset({"valid", "mended", "bad", "in", "out", "cost", "seconds"})


def run(path: Path, targets: Sequence[str], config_file: Path | None, say: Callable[[str], None]) -> None:
    """Ask, and print the table and the totals."""
    config = load_config(config_file)
    logs.set_up("error")
    rows = asyncio.run(_all(compare(config, session(path), targets)))
    cells = [_cells(str(row.turn), [row]) for row in rows]
    cells += [
        _cells("all", [row for row in rows if row.target == name])
        for name in dict.fromkeys(r.target for r in rows)
    ]
    for line in _table(cells):
        say(line)
    for row in rows:
        if row.error:
            say(f"turn {row.turn}, {row.target}: {row.error}")


async def _all(rows: AsyncIterator[ComparedAnswer]) -> list[ComparedAnswer]:
    return [row async for row in rows]


def _cells(turn: str, rows: Sequence[ComparedAnswer]) -> tuple[str, ...]:
    """One line: a row, or the sum of all rows of a target."""
    failed = sum(row.outcome != "ok" for row in rows)
    costs = [row.cost for row in rows]
    known = [cost for cost in costs if cost is not None]
    outcome = rows[0].outcome if turn != "all" else f"{len(rows) - failed} of {len(rows)} ok"
    return (
        turn,
        rows[0].target or _RECORDED,
        outcome,
        *(str(sum(number)) for number in zip(*(_judged(row) for row in rows), strict=True)),
        str(sum(row.usage.prompt for row in rows)),
        str(sum(row.usage.output or 0 for row in rows)),
        f"${sum(known):.4f}" if len(known) == len(costs) else "-",
        f"{sum(row.seconds for row in rows):.2f}",
        " ".join(name for row in rows for name in row.calls.names) if turn != "all" else "",
    )


def _judged(row: ComparedAnswer) -> tuple[int, int, int]:
    return row.calls.valid, row.calls.mended, row.calls.bad


def _table(rows: Sequence[Sequence[str]]) -> Iterable[str]:
    lines = [_HEAD, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEAD))]
    for line in lines:
        cells = (
            cell.rjust(width) if name in _RIGHT else cell.ljust(width)
            for cell, width, name in zip(line, widths, _HEAD, strict=True)
        )
        yield "  ".join(cells).rstrip()
