"""Receipts in SQLite: written many at a time, found by what one asks for.

What one can ask for is in columns of its own, and all of them in the index by time: that is walked from the
newest on, and only rows that are wanted are read themselves.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from .types import Receipt, Wanted

_COLUMNS = Receipt.__struct_fields__
_ADD = f"INSERT OR REPLACE INTO receipts ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' for _ in _COLUMNS)})"
_ONE = f"SELECT {', '.join(_COLUMNS)} FROM receipts WHERE id = ?"
_LIST = f"SELECT {', '.join(_COLUMNS[:-1])} FROM receipts"


def add(connection: sqlite3.Connection, receipts: Sequence[Receipt]) -> None:
    connection.executemany(_ADD, map(_row, receipts))


def _row(receipt: Receipt) -> list[Any]:
    """Its columns. `sqlite3` looks for an adapter of whatever is not exactly a number, a text or a bytearray,
    and that takes longer than to write the row."""
    *known, summary, value = msgspec.structs.astuple(receipt)
    return [*known, bytearray(summary), bytearray(value)]


def one(connection: sqlite3.Connection, id: str) -> Receipt | None:
    row = connection.execute(_ONE, (id,)).fetchone()
    return Receipt(*row) if row else None


def some(connection: sqlite3.Connection, wanted: Wanted) -> list[Receipt]:
    """The newest first; their `value` is left out."""
    conditions, values = zip(*_conditions(wanted), strict=True)
    bound = [value for several in values for value in several]
    order = "ORDER BY at DESC, id DESC LIMIT ?"
    rows = connection.execute(f"{_LIST} WHERE {' AND '.join(conditions)} {order}", (*bound, wanted.limit))
    return [Receipt(*row) for row in rows]


def _conditions(wanted: Wanted) -> Iterator[tuple[str, tuple[Any, ...]]]:
    yield "at >= ?", (wanted.since,)
    yield "at < ?", (wanted.before,)
    if wanted.after is not None:
        yield "(at, id) < (?, ?)", wanted.after
    for column in ("client", "profile", "outcome", "status"):
        if getattr(wanted, column) is not None:
            yield f"{column} = ?", (getattr(wanted, column),)
    if wanted.model is not None:
        yield "model GLOB ?", (wanted.model,)
    if wanted.rule is not None:
        yield "instr(rules, ?)", (f" {wanted.rule} ",)
    if wanted.slow is not None:
        yield "seconds >= ?", (wanted.slow,)
    if wanted.failed:
        yield "failed", ()
    if wanted.mended:
        yield "mended", ()
    for word in wanted.words:
        yield "instr(words, ?)", (word,)
