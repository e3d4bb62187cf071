"""The receipts table in SQLite.

Every searchable field has a column, and the index by time contains all of them. A search walks the index from
the newest row and reads only matching rows from the table.
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
    """The columns. `sqlite3` searches an adapter for `bytes`, which takes longer than the write itself.

    It does not for `bytearray`.
    """
    *columns, summary, value = msgspec.structs.astuple(receipt)
    return [*columns, bytearray(summary), bytearray(value)]


def get(connection: sqlite3.Connection, id: str) -> Receipt | None:
    row = connection.execute(_ONE, (id,)).fetchone()
    return Receipt(*row) if row else None


def search(connection: sqlite3.Connection, wanted: Wanted) -> list[Receipt]:
    """Matching receipts, newest first, without their `value`."""
    conditions, values = zip(*_conditions(wanted), strict=True)
    bound = [value for group in values for value in group]
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
