"""The tables of usage, sessions, scores, keys and counters in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from .. import scores, sessions, usage
from ..key_rows import KEY, key_of, key_row
from ..types import (
    Addition,
    Receipt,
    ScoreQuery,
    ScoreRow,
    SessionQuery,
    SessionRow,
    StoredKey,
    UsageQuery,
    UsageRow,
)


def _added(table: str, groups: Sequence[str]) -> str:
    columns = [*groups, *usage.SUMS]
    sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in usage.SUMS)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' for _ in columns)}) "
        f"ON CONFLICT ({', '.join(groups)}) DO UPDATE SET {sums}"
    )


_ADD = _added("usage", usage.GROUPS)
_ADD_SESSIONS = _added("usage_by_session", usage.SESSION_GROUPS)
_ADD_TO_SESSION = f"""INSERT INTO sessions ({", ".join(sessions.COLUMNS)})
    VALUES ({", ".join("?" for _ in sessions.COLUMNS)}) ON CONFLICT (session) DO UPDATE SET
    first = min(first, excluded.first), last = max(last, excluded.last),
    profile = CASE WHEN profile = '' THEN excluded.profile ELSE profile END,
    opening = CASE WHEN opening = '' THEN excluded.opening ELSE opening END"""
_ADD_SCORES = f"""INSERT INTO scores ({", ".join(scores.GROUPS)}, count) VALUES (?, ?, ?, ?, ?, ?)
    ON CONFLICT ({", ".join(scores.GROUPS)}) DO UPDATE SET count = count + excluded.count"""
# SQLite's default limit of values in a statement was 999 for long.
_SESSIONS_PER_QUERY = 500
_PUT_KEY = f"INTO access_keys ({', '.join(KEY)}) VALUES ({', '.join('?' for _ in KEY)})"
# Not `?1`: Python 3.12.0 to 3.12.3 takes it for a named parameter, and warns.
_COUNT = """INSERT INTO counters (name, value, expires) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET
    value = CASE WHEN expires <= ? THEN 0 ELSE value END + excluded.value,
    expires = CASE WHEN expires <= ? THEN excluded.expires ELSE expires END
    RETURNING value"""


def add(connection: sqlite3.Connection, receipts: Sequence[Receipt]) -> None:
    """Add receipts to the sums, and what they count to the scores."""
    connection.executemany(_ADD, usage.sums(receipts, usage.GROUPS))
    with_session = [receipt for receipt in receipts if receipt.session]
    connection.executemany(_ADD_SESSIONS, usage.sums(with_session, usage.SESSION_GROUPS))
    connection.executemany(_ADD_TO_SESSION, sessions.merged(with_session))
    connection.executemany(_ADD_SCORES, scores.sums(receipts))


def find_usage(connection: sqlite3.Connection, query: UsageQuery) -> list[UsageRow]:
    return usage.rows(query, connection.execute(*usage.statement(query)))


def find_scores(connection: sqlite3.Connection, query: ScoreQuery) -> list[ScoreRow]:
    return scores.rows(connection.execute(*scores.statement(query)))


def find_sessions(connection: sqlite3.Connection, query: SessionQuery) -> list[SessionRow]:
    found = connection.execute(*sessions.statement(query)).fetchall()
    names = [row[0] for row in found]
    sums: list[tuple[Any, ...]] = []
    for at in range(0, len(names), _SESSIONS_PER_QUERY):
        some = names[at : at + _SESSIONS_PER_QUERY]
        sums += connection.execute(*sessions.usage_statement(some, query.key))
    return sessions.rows(found, sums)


def put_key(connection: sqlite3.Connection, key: StoredKey, replace: bool) -> bool:
    sql = f"INSERT OR REPLACE {_PUT_KEY}" if replace else f"INSERT {_PUT_KEY} ON CONFLICT (name) DO NOTHING"
    return connection.execute(sql, key_row(key)).rowcount > 0


def keys(connection: sqlite3.Connection) -> list[StoredKey]:
    rows = connection.execute(f"SELECT {', '.join(KEY)} FROM access_keys ORDER BY name")
    return [key_of(row) for row in rows]


def touch_keys(connection: sqlite3.Connection, used: Mapping[str, float]) -> None:
    connection.executemany(
        "UPDATE access_keys SET last_used = max(coalesce(last_used, 0), ?) WHERE name = ?",
        [(at, name) for name, at in used.items()],
    )


def count(connection: sqlite3.Connection, additions: Sequence[Addition], now: float) -> list[int]:
    """Add to counters and return their values."""
    return [connection.execute(_COUNT, (*addition, now, now)).fetchone()[0] for addition in additions]
