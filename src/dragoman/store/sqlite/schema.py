"""Open the SQLite file: check, migrate and configure it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from ..types import StoreError, StoreStatus
from .backfill import fill_usage
from .pruning import used_bytes

Statement = str | Callable[[sqlite3.Connection], None]

_SUMS = """requests INTEGER NOT NULL, failed INTEGER NOT NULL, input INTEGER NOT NULL,
    output INTEGER NOT NULL, cached INTEGER NOT NULL, reasoning INTEGER NOT NULL, micros INTEGER NOT NULL,
    unpriced INTEGER NOT NULL, calls INTEGER NOT NULL, mended INTEGER NOT NULL, invalid INTEGER NOT NULL"""

# Each step upgrades a file by one version. Released steps never change; new ones are added at the end.
MIGRATIONS: tuple[tuple[Statement, ...], ...] = (
    (
        """CREATE TABLE entries (
            namespace TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, expires REAL NOT NULL,
            UNIQUE (namespace, key))""",
        "CREATE INDEX entries_by_expiry ON entries (namespace, expires)",
        "CREATE TABLE receipts (id TEXT PRIMARY KEY, at REAL NOT NULL, value BLOB NOT NULL)",
        "CREATE INDEX receipts_by_time ON receipts (at)",
    ),
    (
        # No release wrote receipts into the first table.
        "DROP TABLE receipts",
        """CREATE TABLE receipts (
            id TEXT PRIMARY KEY, at REAL NOT NULL, client TEXT NOT NULL, profile TEXT NOT NULL,
            model TEXT NOT NULL, outcome TEXT NOT NULL, status INTEGER NOT NULL, seconds REAL NOT NULL,
            failed INTEGER NOT NULL, mended INTEGER NOT NULL, rules TEXT NOT NULL, words TEXT NOT NULL,
            summary BLOB NOT NULL, value BLOB NOT NULL)""",
        # All searchable columns: a search reads only matching rows from the table.
        """CREATE INDEX receipts_by_time ON receipts (
            at, id, client, profile, model, outcome, status, seconds, failed, mended, rules, words)""",
    ),
    (
        *(f"ALTER TABLE receipts ADD COLUMN {name} TEXT NOT NULL DEFAULT ''"
          for name in ("key", "team", "upstream", "session")),
        *(f"ALTER TABLE receipts ADD COLUMN {name} INTEGER NOT NULL DEFAULT 0"
          for name in ("input", "output", "cached", "reasoning", "calls", "invalid")),
        "ALTER TABLE receipts ADD COLUMN micros INTEGER",
        "DROP INDEX receipts_by_time",
        """CREATE INDEX receipts_by_time ON receipts (
            at, id, client, profile, model, outcome, status, seconds, failed, mended, rules, words,
            key, team, upstream, session)""",
        "CREATE INDEX receipts_by_key ON receipts (key, at, id)",
        "CREATE INDEX receipts_by_session ON receipts (session, at, id)",
        f"""CREATE TABLE usage (
            hour INTEGER NOT NULL, key TEXT NOT NULL, team TEXT NOT NULL, model TEXT NOT NULL,
            upstream TEXT NOT NULL, {_SUMS},
            PRIMARY KEY (hour, key, team, model, upstream)) WITHOUT ROWID""",
        f"""CREATE TABLE usage_by_session (
            hour INTEGER NOT NULL, key TEXT NOT NULL, team TEXT NOT NULL, model TEXT NOT NULL,
            upstream TEXT NOT NULL, session TEXT NOT NULL, {_SUMS},
            PRIMARY KEY (hour, key, team, model, upstream, session)) WITHOUT ROWID""",
        "CREATE INDEX usage_of_session ON usage_by_session (session)",
        """CREATE TABLE access_keys (
            name TEXT PRIMARY KEY, hash BLOB NOT NULL, prefix TEXT NOT NULL, team TEXT NOT NULL,
            role TEXT NOT NULL, models TEXT NOT NULL, limits BLOB NOT NULL, created REAL NOT NULL,
            expires REAL, revoked REAL, last_used REAL)""",
        "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL, expires REAL NOT NULL)",
        "CREATE INDEX counters_by_expiry ON counters (expires)",
        fill_usage,
    ),
    (
        # Existing receipts are not counted: they lack some of the counted values.
        """CREATE TABLE scores (
            day INTEGER NOT NULL, upstream TEXT NOT NULL, model TEXT NOT NULL, kind TEXT NOT NULL,
            name TEXT NOT NULL, count INTEGER NOT NULL,
            PRIMARY KEY (day, upstream, model, kind, name)) WITHOUT ROWID""",
    ),
    (
        "ALTER TABLE receipts ADD COLUMN opening TEXT NOT NULL DEFAULT ''",
        """CREATE TABLE sessions (
            session TEXT PRIMARY KEY, key TEXT NOT NULL, team TEXT NOT NULL, profile TEXT NOT NULL,
            opening TEXT NOT NULL, first REAL NOT NULL, last REAL NOT NULL) WITHOUT ROWID""",
        "CREATE INDEX sessions_by_time ON sessions (last, session)",
        "CREATE INDEX sessions_by_key ON sessions (key, last, session)",
        """INSERT INTO sessions SELECT session, max(key), max(team), max(profile), '', min(at), max(at)
            FROM receipts WHERE session <> '' GROUP BY session""",
    ),
)  # fmt: skip

_APPLICATION = 0x44524147
"""Marks the file as a store of Dragoman, so that no other program's database is changed."""
# One second in all: another process that opens the same new file takes milliseconds.
_ATTEMPTS = 50
# Without a limit, SQLite keeps the `-wal` file as large as the largest burst of writes has made it.
_WAL_LIMIT = 64 << 20

# Words in SQLite's messages, and what to do.
_ADVICE = {
    "locked": "another program has locked it: stop that program, or use another file",
    "readonly": "it is not writable: change its permissions, or use another file",
    "unable to open": "it cannot be opened: check that its folder exists and is writable",
    "not a database": "it is not an SQLite file: move it away, or use another file",
    "malformed": "it is damaged: move it away, and Dragoman creates a new one",
    "full": "the disk is full: free some space",
    "I/O": "its disk fails, or a quota is reached: check the disk",
}


def problem(path: Path | None, error: Exception) -> StoreError:
    """Turn `error` into one sentence: what, where, and what to do."""
    message = str(error)
    words = "unable to open" if isinstance(error, OSError) else message
    advice = next((advice for word, advice in _ADVICE.items() if word in words), "SQLite reports")
    return StoreError(f"the store {path or 'in memory'} cannot be used: {advice} ({message})")


def connect(path: Path | None, wait: float) -> sqlite3.Connection:
    """Open the store and migrate it. `wait`: seconds to wait for a lock. Raises StoreError."""
    try:
        if path is not None:
            _create(path)
        connection = sqlite3.connect(
            path or ":memory:", timeout=wait, isolation_level=None, check_same_thread=False
        )
    except (sqlite3.Error, OSError) as error:
        raise problem(path, error) from None
    try:
        _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise problem(path, error) from None
    except StoreError:
        connection.close()
        raise
    return connection


def _create(path: Path) -> None:
    """Create the file for this user only: it holds conversations. SQLite gives `-wal` the same mode."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def _prepare(connection: sqlite3.Connection, path: Path | None) -> None:
    _check(connection, path)
    # Only affects a new file. Receipts are written in batches: larger pages mean fewer page writes.
    connection.execute("PRAGMA page_size = 8192")
    _write_ahead(connection)
    # A commit then needs no disk flush. A crash of the machine may lose the last commits, never the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_LIMIT}")
    connection.execute("BEGIN IMMEDIATE")
    try:
        _migrate(connection)
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Switch to WAL. SQLite ignores the busy timeout here, so retry if another process switches too."""
    for attempt in range(_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.02)


def _check(connection: sqlite3.Connection, path: Path | None) -> None:
    """Refuse a file of another program or of a newer version, before anything is changed."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and _number(connection, "application_id") != _APPLICATION:
        raise StoreError(f"the store {path} belongs to another program: use another file")
    if _number(connection, "user_version") > len(MIGRATIONS):
        raise StoreError(
            f"the store {path} was written by a newer Dragoman: use that version, or another file"
        )


def _migrate(connection: sqlite3.Connection) -> None:
    for step in MIGRATIONS[_number(connection, "user_version") :]:
        for statement in step:
            if callable(statement):
                statement(connection)
            else:
                connection.execute(statement)
    # Write these even if they are correct already: that shows whether the file is writable.
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]


def status(connection: sqlite3.Connection, path: Path | None) -> StoreStatus:
    """What there is to tell about an open store."""
    version = _number(connection, "user_version")

    def one(sql: str) -> Any:
        return connection.execute(sql).fetchone()[0]

    return StoreStatus(
        engine="sqlite",
        place=str(path or "memory"),
        version=version,
        pending=len(MIGRATIONS) - version,
        bytes=used_bytes(connection),
        receipts=one("SELECT count(*) FROM receipts"),
        entries=one("SELECT count(*) FROM entries"),
        oldest=one("SELECT min(at) FROM receipts"),
    )


def read_status(path: Path) -> StoreStatus:
    """The status of a file, which stays as it is. Raises StoreError."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            _check(connection, path)
            return status(connection, path)
    except sqlite3.Error as error:
        raise problem(path, error) from None
