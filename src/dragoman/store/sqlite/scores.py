"""The table of scores in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from .. import scores
from ..types import Receipt, ScoreQuery, ScoreRow

_ADD = f"""INSERT INTO scores ({", ".join(scores.GROUPS)}, count) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT ({", ".join(scores.GROUPS)}) DO UPDATE SET count = count + excluded.count"""


def add(connection: sqlite3.Connection, receipts: Sequence[Receipt]) -> None:
    """Add what receipts count."""
    connection.executemany(_ADD, scores.sums(receipts))


def find(connection: sqlite3.Connection, query: ScoreQuery) -> list[ScoreRow]:
    return scores.rows(connection.execute(*scores.statement(query)))
