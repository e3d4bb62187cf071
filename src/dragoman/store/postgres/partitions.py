"""The partitions of receipts: one table for each day (UTC).

A partition is attached, not created in place: `CREATE TABLE … PARTITION OF` locks out every reader and writer
of all receipts, `ATTACH PARTITION` does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import psycopg

from .schema import Connection, lock, table_exists

DAY = 86_400
_PREFIX = "receipts_day_"


class Partition(NamedTuple):
    """The table of one day."""

    name: str
    day: int
    """Days since the epoch."""
    bytes: int


def day_of(at: float) -> int:
    return int(at // DAY)


def _name(day: int) -> str:
    return f"{_PREFIX}{day}" if day >= 0 else f"{_PREFIX}before_{-day}"


async def create(connection: Connection, days: Iterable[int]) -> None:
    """Create the partitions of `days` that do not exist. Several replicas may do so at once."""
    async with connection.transaction():
        await lock(connection)
        for day in sorted(set(days)):
            name = _name(day)
            if not await table_exists(connection, name):
                table = f"dragoman.{name}"
                bounds = f"FROM ({day * DAY}) TO ({(day + 1) * DAY})"
                # Without the check, ATTACH would read the table, and an index could not be taken over.
                await connection.execute(
                    f"CREATE TABLE {table} (LIKE dragoman.receipts INCLUDING ALL)".encode()
                )
                await connection.execute(
                    f"ALTER TABLE dragoman.receipts ATTACH PARTITION {table} FOR VALUES {bounds}".encode()
                )


async def partitions(connection: Connection) -> list[Partition]:
    """All partitions, the oldest first."""
    cursor = await connection.execute(
        """SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_inherits i
           JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'dragoman.receipts'::regclass"""
    )
    found = [Partition(name, _day(name), size) for name, size in await cursor.fetchall()]
    return sorted(found, key=lambda partition: partition.day)


def _day(name: str) -> int:
    number = name.removeprefix(_PREFIX)
    return -int(number.removeprefix("before_")) if number.startswith("before_") else int(number)


async def drop(connection: Connection, partition: Partition) -> bool:
    """Drop a day. False if that would have to wait for a running query: it is tried again later."""
    try:
        async with connection.transaction():
            # All other sessions wait behind this lock, so it must not wait long itself.
            await connection.execute("SET LOCAL lock_timeout = '500ms'")
            await connection.execute(f"DROP TABLE IF EXISTS dragoman.{partition.name}".encode())
    except psycopg.errors.LockNotAvailable:
        return False
    return True
