"""The tables in PostgreSQL, and how older ones are brought up to date.

All of them are in a schema of their own, so that the database may hold other things too. A migration is one
transaction. An advisory lock makes replicas that start at the same time wait for each other.

During a rolling update, replicas of the old version go on with the new tables. So each migration says which
version of the code is the oldest that can still use the tables after it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import psycopg

from ..types import StoreError

SCHEMA = "dragoman"
_LOCK = 0x44524147
"""The advisory lock of migrations and of partitions."""
_SUMS = """requests bigint NOT NULL, failed bigint NOT NULL, input bigint NOT NULL, output bigint NOT NULL,
    cached bigint NOT NULL, reasoning bigint NOT NULL, micros bigint NOT NULL, unpriced bigint NOT NULL,
    calls bigint NOT NULL, mended bigint NOT NULL, invalid bigint NOT NULL"""
# Text is ordered by its bytes, as in SQLite and in Python. The database's own collation may differ.
_TEXT = 'text COLLATE "C" NOT NULL'

Connection = psycopg.AsyncConnection[tuple[Any, ...]]


class Migration(NamedTuple):
    """One step. Released steps never change; new ones are added at the end."""

    statements: tuple[str, ...]
    oldest: int
    """The oldest version whose code can use the tables after this step."""


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        (
            f"""CREATE TABLE dragoman.entries (
                namespace {_TEXT}, key {_TEXT}, value bytea NOT NULL, expires double precision NOT NULL,
                PRIMARY KEY (namespace, key))""",
            "CREATE INDEX entries_by_expiry ON dragoman.entries (namespace, expires)",
            # One partition for each day (`partitions.py`): what is too old is dropped with its table.
            # Deleting millions of rows costs as much as writing them, and leaves their space to VACUUM.
            f"""CREATE TABLE dragoman.receipts (
                id {_TEXT}, at double precision NOT NULL, client {_TEXT}, profile {_TEXT}, model {_TEXT},
                outcome {_TEXT}, status integer NOT NULL, seconds double precision NOT NULL,
                failed integer NOT NULL, mended integer NOT NULL, rules {_TEXT}, words {_TEXT}, key {_TEXT},
                team {_TEXT}, upstream {_TEXT}, session {_TEXT}, input bigint NOT NULL,
                output bigint NOT NULL, cached bigint NOT NULL, reasoning bigint NOT NULL,
                calls integer NOT NULL, invalid integer NOT NULL, micros bigint, summary bytea NOT NULL,
                value bytea NOT NULL, PRIMARY KEY (id, at)) PARTITION BY RANGE (at)""",
            "CREATE INDEX receipts_by_time ON dragoman.receipts (at, id)",
            "CREATE INDEX receipts_by_key ON dragoman.receipts (key, at, id) WHERE key <> ''",
            "CREATE INDEX receipts_by_session ON dragoman.receipts (session, at, id) WHERE session <> ''",
            "CREATE INDEX receipts_failed ON dragoman.receipts (at, id) WHERE failed > 0",
            "CREATE INDEX receipts_mended ON dragoman.receipts (at, id) WHERE mended > 0",
            f"""CREATE TABLE dragoman.usage (
                hour bigint NOT NULL, key {_TEXT}, team {_TEXT}, model {_TEXT}, upstream {_TEXT}, {_SUMS},
                PRIMARY KEY (hour, key, team, model, upstream)) WITH (fillfactor = 70)""",
            f"""CREATE TABLE dragoman.usage_by_session (
                hour bigint NOT NULL, key {_TEXT}, team {_TEXT}, model {_TEXT}, upstream {_TEXT},
                session {_TEXT}, {_SUMS},
                PRIMARY KEY (hour, key, team, model, upstream, session)) WITH (fillfactor = 70)""",
            "CREATE INDEX usage_of_session ON dragoman.usage_by_session (session)",
            f"""CREATE TABLE dragoman.access_keys (
                name {_TEXT} PRIMARY KEY, hash bytea NOT NULL, prefix {_TEXT}, team {_TEXT}, role {_TEXT},
                models {_TEXT}, limits bytea NOT NULL, created double precision NOT NULL,
                expires double precision, revoked double precision, last_used double precision)""",
            # Rows change often: room in their page makes an update cheap (no index is touched).
            f"""CREATE TABLE dragoman.counters (
                name {_TEXT} PRIMARY KEY, value bigint NOT NULL, expires double precision NOT NULL
                ) WITH (fillfactor = 50)""",
        ),
        oldest=1,
    ),
    Migration(
        (
            # An older replica writes receipts and no scores: the counts miss its exchanges, and stay true.
            f"""CREATE TABLE dragoman.scores (
                day bigint NOT NULL, upstream {_TEXT}, model {_TEXT}, kind {_TEXT}, name {_TEXT},
                count bigint NOT NULL, PRIMARY KEY (day, upstream, model, kind, name)
                ) WITH (fillfactor = 70)""",
        ),
        oldest=1,
    ),
    # A replica of an older version writes no sessions. Its conversations are missing until it is updated.
    Migration(
        (
            "ALTER TABLE dragoman.receipts ADD COLUMN opening text COLLATE \"C\" NOT NULL DEFAULT ''",
            f"""CREATE TABLE dragoman.sessions (
                session {_TEXT} PRIMARY KEY, key {_TEXT}, team {_TEXT}, profile {_TEXT}, opening {_TEXT},
                first double precision NOT NULL, last double precision NOT NULL) WITH (fillfactor = 70)""",
            "CREATE INDEX sessions_by_time ON dragoman.sessions (last, session)",
            "CREATE INDEX sessions_by_key ON dragoman.sessions (key, last, session)",
            """INSERT INTO dragoman.sessions SELECT session, max(key), max(team), max(profile), '', min(at),
                max(at) FROM dragoman.receipts WHERE session <> '' GROUP BY session""",
        ),
        oldest=1,
    ),
)


class Version(NamedTuple):
    """What a database says about its tables. 0: there are none."""

    version: int
    oldest: int


async def version(connection: Connection) -> Version:
    if not await table_exists(connection, "migrations"):
        return Version(0, 0)
    cursor = await connection.execute(
        "SELECT coalesce(max(version), 0), coalesce(max(oldest), 0) FROM dragoman.migrations"
    )
    return Version(*await _row(cursor))


async def table_exists(connection: Connection, name: str) -> bool:
    """Does the schema have this table? `to_regclass` may use a cache that misses a new commit."""
    cursor = await connection.execute(
        """SELECT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE n.nspname = 'dragoman' AND c.relname = %s)""",
        (name,),
    )
    return (await _row(cursor))[0]


async def _row(cursor: psycopg.AsyncCursor[tuple[Any, ...]]) -> tuple[Any, ...]:
    row = await cursor.fetchone()
    assert row is not None  # a SELECT without FROM, or of an aggregate
    return row


async def migrate(connection: Connection, place: str) -> int:
    """Bring the tables up to date. Returns the number of steps. Raises StoreError."""
    found = await version(connection)
    if found.oldest > len(MIGRATIONS):
        raise StoreError(
            f"the store {place} was changed by a newer Dragoman (version {found.version} of its tables); "
            f"this one knows up to {len(MIGRATIONS)}: update Dragoman"
        )
    if found.version >= len(MIGRATIONS):
        return 0
    async with connection.transaction():
        await lock(connection)
        found = await version(connection)  # another replica may have done it meanwhile
        if found.version == 0:
            await _create(connection)
        for number, step in enumerate(MIGRATIONS[found.version :], found.version + 1):
            for statement in step.statements:
                await connection.execute(statement.encode())
            await connection.execute(
                "INSERT INTO dragoman.migrations (version, oldest) VALUES (%s, %s)", (number, step.oldest)
            )
        return max(len(MIGRATIONS) - found.version, 0)


async def lock(connection: Connection) -> None:
    """Wait until no other replica changes tables. Lasts until the transaction ends, also behind pgbouncer."""
    await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))


async def _create(connection: Connection) -> None:
    # `IF NOT EXISTS` needs the right to create schemas even if the schema exists.
    cursor = await connection.execute("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'dragoman')")
    if not (await _row(cursor))[0]:
        await connection.execute("CREATE SCHEMA dragoman")
    await connection.execute(
        """CREATE TABLE dragoman.migrations (
            version integer PRIMARY KEY, oldest integer NOT NULL, done timestamptz NOT NULL DEFAULT now())"""
    )
