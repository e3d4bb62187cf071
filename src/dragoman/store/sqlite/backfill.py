"""Fill the columns and tables of usage from receipts that an older Dragoman wrote.

Receipts had these numbers only inside their summary. It is JSON; SQLite's own JSON functions are no
alternative, because not every build has them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec

from .. import usage

_BATCH = 1000
_UPDATE = """UPDATE receipts SET upstream = ?, input = ?, output = ?, cached = ?, reasoning = ?, calls = ?,
    invalid = ? WHERE rowid = ?"""
_SUMS = """count(*), sum(failed), sum(input), sum(output), sum(cached), sum(reasoning), 0, count(*),
    sum(calls), sum(mended), sum(invalid)"""


class _Tokens(msgspec.Struct):
    input: int = 0
    output: int = 0
    cached_input: int = 0
    reasoning: int = 0


class _Summary(msgspec.Struct):
    target: str | None = None
    usage: _Tokens | None = None
    calls: int = 0
    invalid: int = 0


def fill_usage(connection: sqlite3.Connection) -> None:
    """Runs in the transaction of the migration. No older receipt has a cost."""
    rows = connection.execute("SELECT rowid, summary FROM receipts")
    while batch := rows.fetchmany(_BATCH):
        connection.executemany(_UPDATE, list(_updates(batch)))
    connection.execute(
        f"""INSERT INTO usage SELECT CAST(at AS INTEGER) / {usage.HOUR}, key, team, model, upstream, {_SUMS}
            FROM receipts GROUP BY 1, 2, 3, 4, 5"""
    )


def _updates(batch: list[Any]) -> Iterator[tuple[Any, ...]]:
    for rowid, summary in batch:
        try:
            of = msgspec.json.decode(summary, type=_Summary)
        except msgspec.DecodeError:
            continue
        tokens = of.usage or _Tokens()
        upstream = (of.target or "").partition("/")[0]
        counts = (tokens.input, tokens.output, tokens.cached_input, tokens.reasoning, of.calls, of.invalid)
        yield (upstream, *counts, rowid)
