"""The tables of entries, usage, scores, keys and counters in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import scores, sessions, usage
from ..key_rows import KEY, key_of, key_row
from ..types import (
    Addition,
    EntryKey,
    ScoreQuery,
    ScoreRow,
    SessionQuery,
    SessionRow,
    StoredEntry,
    StoredKey,
    UsageQuery,
    UsageRow,
)
from .receipts import clean
from .schema import Connection

# Skip writing an unchanged entry unless its expiry moves by at least this many seconds.
_MIN_EXTENSION = 3600.0
_GET = b"""SELECT e.namespace, e.key, e.value FROM dragoman.entries e
    JOIN unnest(%s::text[], %s::text[]) AS wanted (namespace, key)
    ON e.namespace = wanted.namespace AND e.key = wanted.key WHERE e.expires > %s"""
_PUT = f"""INSERT INTO dragoman.entries AS e (namespace, key, value, expires)
    SELECT * FROM unnest(%s::text[], %s::text[], %b::bytea[], %s::double precision[])
    ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value, expires = excluded.expires
    WHERE excluded.expires > e.expires + {_MIN_EXTENSION} OR excluded.value <> e.value""".encode()
_MARKS = ", ".join("%s" for _ in KEY)
_PUT_KEY = f"INSERT INTO dragoman.access_keys ({', '.join(KEY)}) VALUES ({_MARKS}) ON CONFLICT (name) DO "
_REPLACED = "UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in KEY)
_KEYS = f"SELECT {', '.join(KEY)} FROM dragoman.access_keys ORDER BY name".encode()
_TOUCH = b"""UPDATE dragoman.access_keys k SET last_used = greatest(k.last_used, used.at)
    FROM unnest(%s::text[], %s::double precision[]) AS used (name, at) WHERE k.name = used.name"""
_COUNT = b"""INSERT INTO dragoman.counters AS c (name, value, expires)
    SELECT * FROM unnest(%s::text[], %s::bigint[], %s::double precision[])
    ON CONFLICT (name) DO UPDATE SET
    value = CASE WHEN c.expires <= %s THEN 0 ELSE c.value END + excluded.value,
    expires = CASE WHEN c.expires <= %s THEN excluded.expires ELSE c.expires END
    RETURNING name, value"""


async def get(connection: Connection, keys: Sequence[EntryKey], now: float) -> dict[EntryKey, bytes]:
    """The values of `keys`, in the order of `keys`."""
    asked = {(clean(key.namespace), clean(key.key)): key for key in keys}
    namespaces, names = zip(*asked, strict=True)
    cursor = await connection.execute(_GET, (list(namespaces), list(names), now), binary=True)
    found = {asked[namespace, name]: value for namespace, name, value in await cursor.fetchall()}
    return {key: found[key] for key in keys if key in found}


async def put(connection: Connection, entries: Sequence[StoredEntry], expires: Sequence[float]) -> None:
    # One statement cannot write a row twice. The order keeps two replicas from blocking each other.
    rows = {
        (clean(entry.key.namespace), clean(entry.key.key)): (entry.value, until)
        for entry, until in zip(entries, expires, strict=True)
    }
    ordered = sorted(rows)
    values = [rows[key] for key in ordered]
    await connection.execute(
        _PUT,
        (
            [namespace for namespace, _ in ordered],
            [key for _, key in ordered],
            [value for value, _ in values],
            [until for _, until in values],
        ),
    )


async def find_usage(connection: Connection, query: UsageQuery) -> list[UsageRow]:
    sql, values = usage.statement(query, "dragoman.")
    cursor = await connection.execute(sql.replace("?", "%s").encode(), [clean(value) for value in values])
    return usage.rows(query, await cursor.fetchall())


async def find_scores(connection: Connection, query: ScoreQuery) -> list[ScoreRow]:
    sql, values = scores.statement(query, "dragoman.")
    cursor = await connection.execute(sql.replace("?", "%s").encode(), [clean(value) for value in values])
    return scores.rows(await cursor.fetchall())


async def find_sessions(connection: Connection, query: SessionQuery) -> list[SessionRow]:
    sql, values = sessions.statement(query, "dragoman.")
    cursor = await connection.execute(sql.replace("?", "%s").encode(), [clean(value) for value in values])
    found = await cursor.fetchall()
    if not found:
        return []
    sql, values = sessions.usage_statement([row[0] for row in found], query.key, "dragoman.")
    cursor = await connection.execute(sql.replace("?", "%s").encode(), [clean(value) for value in values])
    return sessions.rows(found, await cursor.fetchall())


async def put_key(connection: Connection, key: StoredKey, replace: bool) -> bool:
    sql = _PUT_KEY + (_REPLACED if replace else "NOTHING")
    cursor = await connection.execute(sql.encode(), [clean(value) for value in key_row(key)])
    return cursor.rowcount > 0


async def keys(connection: Connection) -> list[StoredKey]:
    cursor = await connection.execute(_KEYS)
    return [key_of(row) for row in await cursor.fetchall()]


async def touch_keys(connection: Connection, used: Mapping[str, float]) -> None:
    names = sorted(used)
    await connection.execute(_TOUCH, ([clean(name) for name in names], [used[name] for name in names]))


async def count(connection: Connection, additions: Sequence[Addition], now: float) -> list[int]:
    """Add to counters and return their values."""
    ordered = sorted(additions)  # two replicas that lock the same counters must lock them in one order
    names = [clean(addition.counter) for addition in ordered]
    amounts, expires = ([a.amount for a in ordered], [a.expires for a in ordered])
    cursor = await connection.execute(_COUNT, (names, amounts, expires, now, now))
    values = dict(await cursor.fetchall())
    return [values[clean(addition.counter)] for addition in additions]
