"""Deletes what is not kept. Several replicas may do so at once: each row and each day goes once.

Receipts go by whole days (`partitions.py`), so they are kept for at least as long as agreed, and for at most
one day longer. Entries go one by one, in batches.
"""

from __future__ import annotations

from .. import scores
from ..types import Pruned, Retention, RetentionRule
from ..usage import HOUR
from . import partitions
from .partitions import Partition, day_of
from .schema import Connection

_BATCH = 5000
UNLIMITED = 1 << 40
"""As a number of rows: no limit, so nothing is counted."""


async def prune(connection: Connection, retention: Retention, now: float) -> Pruned:
    """Delete all that is not kept."""
    days = await partitions.partitions(connection)
    rule = retention.receipts
    surplus = await _total(connection) - retention.bytes
    receipts = 0
    for partition in await _to_drop(connection, days, rule, surplus, now):
        rows = await _count(connection, partition)
        if await partitions.drop(connection, partition):
            receipts += rows
            surplus -= partition.bytes
    entries = 0
    for namespace in await _namespaces(connection):
        entries += await _prune_entries(connection, namespace, retention.of(namespace), now)
    if surplus > 0:
        entries += await _oldest_entries(connection)
    await connection.execute("DELETE FROM dragoman.counters WHERE expires <= %s", (now,))
    for table, seconds in (("usage", retention.usage), ("usage_by_session", rule.seconds)):
        hour = int((now - seconds) // HOUR)
        await connection.execute(f"DELETE FROM dragoman.{table} WHERE hour < %s".encode(), (hour,))
    day = scores.day_of(now - retention.usage)
    await connection.execute("DELETE FROM dragoman.scores WHERE day < %s", (day,))
    await connection.execute("DELETE FROM dragoman.sessions WHERE last < %s", (now - rule.seconds,))
    return Pruned(receipts, entries)


async def _to_drop(
    connection: Connection, days: list[Partition], rule: RetentionRule, surplus: int, now: float
) -> list[Partition]:
    """The days to drop: by age, by the number of rows that stay, and by size. The newest day stays."""
    first = day_of(now - rule.seconds)
    old = [partition for partition in days if partition.day < first]
    left = [partition for partition in days if partition.day >= first]
    surplus -= sum(partition.bytes for partition in old)
    rows = {p.name: await _count(connection, p) for p in left} if rule.rows < UNLIMITED else {}
    total = sum(rows.values())
    while len(left) > 1:
        oldest = left[0]
        enough = bool(rows) and total - rows[oldest.name] >= rule.rows
        if not enough and surplus <= 0:
            break
        old.append(left.pop(0))
        surplus -= oldest.bytes
        total -= rows.get(oldest.name, 0)
    return old


async def _count(connection: Connection, partition: Partition) -> int:
    return await _number(connection, f"SELECT count(*) FROM dragoman.{partition.name}")


async def _total(connection: Connection) -> int:
    return await _number(
        connection,
        """SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
           WHERE relnamespace = 'dragoman'::regnamespace AND relkind = 'r'""",
    )


async def _number(connection: Connection, sql: str) -> int:
    row = await (await connection.execute(sql.encode())).fetchone()
    return row[0] if row else 0


async def _namespaces(connection: Connection) -> list[str]:
    """All namespaces, one look into the index for each: `SELECT DISTINCT` would read the whole index."""
    cursor = await connection.execute(
        """WITH RECURSIVE found AS (
               (SELECT namespace FROM dragoman.entries ORDER BY namespace LIMIT 1)
               UNION ALL
               SELECT (SELECT namespace FROM dragoman.entries e WHERE e.namespace > found.namespace
                       ORDER BY namespace LIMIT 1) FROM found WHERE found.namespace IS NOT NULL)
           SELECT namespace FROM found WHERE namespace IS NOT NULL"""
    )
    return [name for (name,) in await cursor.fetchall()]


async def _prune_entries(connection: Connection, namespace: str, rule: RetentionRule, now: float) -> int:
    """Delete expired entries, and those beyond the number that is kept."""
    cursor = await connection.execute(
        """SELECT expires FROM dragoman.entries WHERE namespace = %s ORDER BY expires DESC
           OFFSET %s LIMIT 1""",
        (namespace, rule.rows),
    )
    surplus = await cursor.fetchone()
    until = max(now, surplus[0]) if surplus else now
    deleted = 0
    while True:
        cursor = await connection.execute(
            """DELETE FROM dragoman.entries WHERE ctid = ANY (ARRAY(
                   SELECT ctid FROM dragoman.entries WHERE namespace = %s AND expires <= %s
                   LIMIT %s FOR UPDATE SKIP LOCKED))""",
            (namespace, until, _BATCH),
        )
        deleted += cursor.rowcount
        if cursor.rowcount < _BATCH:
            return deleted


async def _oldest_entries(connection: Connection) -> int:
    cursor = await connection.execute(
        """DELETE FROM dragoman.entries WHERE ctid = ANY (ARRAY(
               SELECT ctid FROM dragoman.entries ORDER BY expires LIMIT %s FOR UPDATE SKIP LOCKED))""",
        (_BATCH,),
    )
    return cursor.rowcount
