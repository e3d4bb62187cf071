"""The embedded store's file: how it is opened, what its tables are, and how older files become new ones."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from .types import StoreError

# Each step is a list of statements that takes a file from one version to the next. Steps are only added.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE entries (
            namespace TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, expires REAL NOT NULL,
            UNIQUE (namespace, key))""",
        "CREATE INDEX entries_by_expiry ON entries (namespace, expires)",
        "CREATE TABLE receipts (id TEXT PRIMARY KEY, at REAL NOT NULL, value BLOB NOT NULL)",
        "CREATE INDEX receipts_by_time ON receipts (at)",
    ),
    (
        # Nothing had been written into the first table.
        "DROP TABLE receipts",
        """CREATE TABLE receipts (
            id TEXT PRIMARY KEY, at REAL NOT NULL, client TEXT NOT NULL, profile TEXT NOT NULL,
            model TEXT NOT NULL, outcome TEXT NOT NULL, status INTEGER NOT NULL, seconds REAL NOT NULL,
            failed INTEGER NOT NULL, mended INTEGER NOT NULL, rules TEXT NOT NULL, words TEXT NOT NULL,
            summary BLOB NOT NULL, value BLOB NOT NULL)""",
        # With everything one can ask for: only rows that are wanted are looked at themselves.
        """CREATE INDEX receipts_by_time ON receipts (
            at, id, client, profile, model, outcome, status, seconds, failed, mended, rules, words)""",
    ),
)

_APPLICATION = 0x44524147
"""Marks the file as ours: nobody's bookmarks are to be taken for a store."""
_ATTEMPTS = 50
_WAL_LIMIT = 64 << 20

# What SQLite says, and what to do about it.
_ADVICE = {
    "locked": "another program holds it: end that program, or name another file",
    "readonly": "it cannot be written: change its permissions, or name another file",
    "unable to open": "it cannot be opened: check that its folder exists and can be written",
    "not a database": "it is not an SQLite file: move it away, or name another file",
    "malformed": "it is damaged: move it away, and a new one is made",
    "full": "the disk is full: make room",
}


def problem(path: Path | None, error: Exception) -> StoreError:
    """`error` as one sentence: what, where, and what to do."""
    said = str(error)
    advice = next((advice for word, advice in _ADVICE.items() if word in said), "SQLite says")
    return StoreError(f"the store {path or 'in memory'} cannot be used: {advice} ({said})")


def connect(path: Path | None, wait: float) -> sqlite3.Connection:
    """An open, up-to-date store; `wait` is how many seconds others may hold it. Raises StoreError."""
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
    """Conversations are nobody else's business, so neither is the file (its `-wal` gets the same mode)."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def _prepare(connection: sqlite3.Connection, path: Path | None) -> None:
    _check(connection, path)
    # For a new file: receipts are written many at a time, and half as many pages cost half as many writes.
    connection.execute("PRAGMA page_size = 8192")
    _write_ahead(connection)
    # A commit needs no disk flush then: a crash of the machine may lose the last ones, never the file.
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
    """Switching to WAL does not wait for others who do it at the same moment, so we do."""
    for attempt in range(_ATTEMPTS):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or attempt == _ATTEMPTS - 1:
                raise
            time.sleep(0.02)


def _check(connection: sqlite3.Connection, path: Path | None) -> None:
    """Nothing is changed in a file that is not ours."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and _number(connection, "application_id") != _APPLICATION:
        raise StoreError(f"the store {path} is a file of another program: name another file")
    if _number(connection, "user_version") > len(MIGRATIONS):
        raise StoreError(f"the store {path} was made by a newer Dragoman: use that one, or name another file")


def _migrate(connection: sqlite3.Connection) -> None:
    for step in MIGRATIONS[_number(connection, "user_version") :]:
        for statement in step:
            connection.execute(statement)
    # Also where they were right already: it shows whether the file can be written.
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return connection.execute(f"PRAGMA {pragma}").fetchone()[0]
