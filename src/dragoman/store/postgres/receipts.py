"""The receipts table in PostgreSQL.

A batch of receipts is one statement, and so one round trip. It writes the receipts that are not stored yet,
and adds those, and only those, to the sums. It takes effect as a whole or not at all, also behind a pooler.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..globs import regex
from ..receipt_query import SqlDialect, conditions
from ..scores import GROUPS as SCORE_GROUPS
from ..scores import day_of
from ..sessions import COLUMNS
from ..types import RECEIPT_COLUMNS, Receipt, ReceiptQuery
from ..usage import GROUPS, HOUR, SESSION_GROUPS, SUMS
from .schema import Connection

_COLUMNS = RECEIPT_COLUMNS
_WHOLE = (
    "status",
    "failed",
    "mended",
    "input",
    "output",
    "cached",
    "reasoning",
    "calls",
    "invalid",
    "micros",
)
_TYPES = {
    **dict.fromkeys(_WHOLE, "bigint"),
    **dict.fromkeys(("at", "seconds"), "double precision"),
    **dict.fromkeys(("summary", "value"), "bytea"),
}
"""Of the columns that are not text."""
_DIALECT = SqlDialect(contains="strpos({}, ?) > 0", matches="~", pattern=regex)
_COUNTED = {
    "id": "text",
    "at": "double precision",
    "day": "bigint",
    **dict.fromkeys(SCORE_GROUPS[1:], "text"),
    "count": "bigint",
}
"""The columns of what receipts count, and their types."""
# Receipts that an export reads at a time.
_PAGE = 500


def _arrays() -> str:
    """One array for each column. Bytes are sent as they are (`%b`); as text they would be twice as long."""
    kinds = [_TYPES.get(name, "text") for name in _COLUMNS]
    return ", ".join(f"{'%b' if kind == 'bytea' else '%s'}::{kind}[]" for kind in kinds)


def _summed(table: str, groups: Sequence[str], where: str = "") -> str:
    """Add the rows of `new` to a table of sums. The order keeps two replicas from blocking each other."""
    values = {
        "hour": f"floor(at / {HOUR})::bigint",
        "requests": "count(*)",
        "unpriced": "count(*) FILTER (WHERE micros IS NULL)",
        "micros": "coalesce(sum(micros), 0)",
    }
    selected = [
        *(values.get(name, name) for name in groups),
        *(values.get(name, f"sum({name})") for name in SUMS),
    ]
    numbers = ", ".join(str(place + 1) for place in range(len(groups)))
    updates = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in SUMS)
    return f"""INSERT INTO dragoman.{table} ({", ".join((*groups, *SUMS))})
        SELECT {", ".join(selected)} FROM new {where} GROUP BY {numbers} ORDER BY {numbers}
        ON CONFLICT ({", ".join(groups)}) DO UPDATE SET {updates}"""


def _scored() -> str:
    """Add what the rows of `new` count. Each count comes with the receipt that it belongs to."""
    columns = ", ".join(SCORE_GROUPS)
    groups = ", ".join(f"counted.{name}" for name in SCORE_GROUPS)
    arrays = ", ".join(f"%s::{kind}[]" for kind in _COUNTED.values())
    return f"""INSERT INTO dragoman.scores ({columns}, count)
        SELECT {groups}, sum(counted.count) FROM unnest({arrays}) AS counted ({", ".join(_COUNTED)})
        JOIN new ON new.id = counted.id AND new.at = counted.at
        GROUP BY {groups} ORDER BY {groups}
        ON CONFLICT ({columns}) DO UPDATE SET count = scores.count + excluded.count"""


# The first of a conversation that is not empty, in the order of time.
_FIRST = "(array_agg({0} ORDER BY {0} = '', at))[1]"
_CONVERSATIONS = f"""INSERT INTO dragoman.sessions ({", ".join(COLUMNS)})
        SELECT session, max(key), max(team), {_FIRST.format("profile")}, {_FIRST.format("opening")},
            min(at), max(at)
        FROM new WHERE session <> '' GROUP BY session ORDER BY session
        ON CONFLICT (session) DO UPDATE SET first = least(sessions.first, excluded.first),
            last = greatest(sessions.last, excluded.last),
            profile = CASE WHEN sessions.profile = '' THEN excluded.profile ELSE sessions.profile END,
            opening = CASE WHEN sessions.opening = '' THEN excluded.opening ELSE sessions.opening END"""
_ADD = f"""WITH new AS (
        INSERT INTO dragoman.receipts ({", ".join(_COLUMNS)}) SELECT * FROM unnest({_arrays()})
        ON CONFLICT DO NOTHING
        RETURNING id, at, key, team, model, upstream, session, failed, input, output, cached, reasoning,
            micros, calls, mended, invalid, profile, opening),
    conversations AS ({_CONVERSATIONS}),
    sessions AS ({_summed("usage_by_session", SESSION_GROUPS, "WHERE session <> ''")}),
    scored AS ({_scored()})
    {_summed("usage", GROUPS)}""".encode()
_ALL = f"SELECT {', '.join(_COLUMNS)} FROM dragoman.receipts"
_LIST = f"SELECT {', '.join(_COLUMNS[:-1])} FROM dragoman.receipts"


def clean(value: Any) -> Any:
    """PostgreSQL has no text with a NUL in it."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) and "\0" in value else value


async def add(connection: Connection, receipts: Sequence[Receipt]) -> None:
    columns = list(zip(*map(msgspec.structs.astuple, receipts), strict=True))[: len(_COLUMNS)]
    await connection.execute(_ADD, [list(map(clean, column)) for column in (*columns, *_counted(receipts))])


def _counted(receipts: Sequence[Receipt]) -> list[list[Any]]:
    """The columns of `_scored`. A receipt that is in the batch twice counts once, as it is written once."""
    once = {(receipt.id, receipt.at): receipt for receipt in reversed(receipts)}
    counts = [
        (receipt.id, receipt.at, day_of(receipt.at), *count)
        for receipt in once.values()
        for count in receipt.scores
    ]
    return [[row[place] for row in counts] for place in range(len(_COUNTED))]


async def get(connection: Connection, id: str) -> Receipt | None:
    cursor = await connection.execute(f"{_ALL} WHERE id = %s LIMIT 1".encode(), (clean(id),), binary=True)
    row = await cursor.fetchone()
    return Receipt(*row) if row else None


async def search(connection: Connection, query: ReceiptQuery) -> list[Receipt]:
    """Matching receipts, newest first."""
    condition, values = conditions(query, _DIALECT)
    sql = f"{_ALL if query.details else _LIST} WHERE {condition} ORDER BY at DESC, id DESC LIMIT ?".replace(
        "?", "%s"
    )
    cursor = await connection.execute(sql.encode(), [*map(clean, values), query.limit], binary=True)
    return [Receipt(*row) for row in await cursor.fetchall()]


async def page(connection: Connection, after: tuple[float, str], before: float) -> list[Receipt]:
    """The next receipts of an export, oldest first."""
    sql = f"{_ALL} WHERE (at, id) > (%s, %s) AND at >= %s AND at < %s ORDER BY at, id LIMIT {_PAGE}"
    cursor = await connection.execute(sql.encode(), (*after, after[0], before), binary=True)
    return [Receipt(*row) for row in await cursor.fetchall()]
