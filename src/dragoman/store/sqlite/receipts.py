"""The receipts table in SQLite.

Every searchable field has a column, and the index by time contains all of them. A search walks the index from
the newest row and reads only matching rows from the table.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec

from ..globs import sqlite_glob
from ..receipt_query import SqlDialect, conditions
from ..types import RECEIPT_COLUMNS, Receipt, ReceiptQuery
from . import tables

_COLUMNS = RECEIPT_COLUMNS
# Receipts that an export reads at a time.
_PAGE = 500
_MARKS = ", ".join("?" for _ in _COLUMNS)
_ADD = f"INSERT INTO receipts ({', '.join(_COLUMNS)}) VALUES ({_MARKS}) ON CONFLICT (id) DO NOTHING"
_ALL = f"SELECT {', '.join(_COLUMNS)} FROM receipts"
_LIST = f"SELECT {', '.join(_COLUMNS[:-1])} FROM receipts"

_DIALECT = SqlDialect(contains="instr({}, ?)", matches="GLOB", pattern=sqlite_glob)


def add(connection: sqlite3.Connection, receipts: Sequence[Receipt]) -> None:
    """Write the receipts that are not stored yet, and count them."""
    run = connection.execute
    new = [receipt for receipt in receipts if run(_ADD, _row(receipt)).rowcount]
    tables.add(connection, new)


def _row(receipt: Receipt) -> list[Any]:
    """The columns. `sqlite3` searches an adapter for `bytes`, which takes longer than the write itself.

    It does not for `bytearray`.
    """
    *columns, summary, value, _ = msgspec.structs.astuple(receipt)
    return [*columns, bytearray(summary), bytearray(value)]


def get(connection: sqlite3.Connection, id: str) -> Receipt | None:
    row = connection.execute(f"{_ALL} WHERE id = ?", (id,)).fetchone()
    return Receipt(*row) if row else None


def search(connection: sqlite3.Connection, query: ReceiptQuery) -> list[Receipt]:
    """Matching receipts, newest first."""
    condition, values = conditions(query, _DIALECT)
    sql = f"{_ALL if query.details else _LIST} WHERE {condition} ORDER BY at DESC, id DESC LIMIT ?"
    return [Receipt(*row) for row in connection.execute(sql, (*values, query.limit))]


def page(connection: sqlite3.Connection, after: tuple[float, str], before: float) -> list[Receipt]:
    """The next receipts of an export, oldest first."""
    sql = f"{_ALL} WHERE (at, id) > (?, ?) AND at < ? ORDER BY at, id LIMIT ?"
    return [Receipt(*row) for row in connection.execute(sql, (*after, before, _PAGE))]
