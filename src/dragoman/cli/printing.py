"""What several commands print: JSON for programs, and tables for people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import click


def print_json(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))


def aligned(rows: Sequence[Sequence[str]], left: Collection[int] = (0,)) -> Iterator[str]:
    """The rows as lines of a table. `left`: the columns whose cells begin at the left edge."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield "  ".join(cells).rstrip()
