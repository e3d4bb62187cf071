"""Read the status of a database for `dragoman store status`."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg

from ...credentials.secret import Secret
from ..types import StoreStatus
from .address import PostgresAddress
from .schema import MIGRATIONS, Connection, version
from .thread import LoopThread

_TIMEOUT = 30.0
# Below this size, in bytes, rows are counted.
_SMALL = 256 << 20
_ENGINE = "postgresql"
_SIZES = b"""SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint,
        coalesce(sum(greatest(reltuples, 0)) FILTER (WHERE relname LIKE 'receipts\\_day\\_%%'), 0)::bigint,
        coalesce(sum(greatest(reltuples, 0)) FILTER (WHERE relname = 'entries'), 0)::bigint
    FROM pg_class c WHERE c.relnamespace = %s::regnamespace AND c.relkind = 'r'"""


async def status(connection: Connection, place: str) -> StoreStatus:
    found = await version(connection)
    if not found.version:
        return StoreStatus(
            engine=_ENGINE, place=place, version=0, pending=len(MIGRATIONS), bytes=0, receipts=0, entries=0
        )
    size, receipts, entries = await _one(connection, _SIZES, ("dragoman",))
    estimated = size > _SMALL
    if not estimated:
        (receipts,) = await _one(connection, b"SELECT count(*) FROM dragoman.receipts")
        (entries,) = await _one(connection, b"SELECT count(*) FROM dragoman.entries")
    (oldest,) = await _one(connection, b"SELECT min(at) FROM dragoman.receipts")
    return StoreStatus(
        engine=_ENGINE,
        place=place,
        version=found.version,
        pending=max(len(MIGRATIONS) - found.version, 0),
        bytes=size,
        receipts=receipts,
        entries=entries,
        estimated=estimated,
        oldest=oldest,
    )


async def _one(connection: Connection, sql: bytes, values: tuple[str, ...] = ()) -> tuple[Any, ...]:
    cursor = await connection.execute(sql, values or None)
    row = await cursor.fetchone()
    assert row is not None  # an aggregate has one row
    return row


def read_status(url: Secret) -> StoreStatus:
    """The status of a database, which stays as it is. Raises StoreError."""
    address = PostgresAddress(url)
    thread = LoopThread()
    try:
        return thread.submit(_read(address)).result()
    except (psycopg.Error, TimeoutError, OSError) as error:
        raise address.problem(error) from None
    finally:
        thread.close()


async def _read(address: PostgresAddress) -> StoreStatus:
    async with asyncio.timeout(_TIMEOUT):
        async with await psycopg.AsyncConnection.connect(address.text.reveal()) as connection:
            return await status(connection, address.shown)
