"""A secret in another program's SQLite file, such as the `state.vscdb` of VS Code and its descendants.

The file is opened for reading only and for the moment only, in a thread. Whether that is needed is seen from
the file and its `-wal` and `-shm`: a program in WAL mode writes there first.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from .base import Problem, Reading, Stamp
from .stamps import file_stamp
from .values import extract

BUSY = 0.3
"""Seconds to wait for a writer to be done."""
ATTEMPTS = 3
"""Other passing faults: a log that is being recovered, a file that is being replaced."""

_LOCKED = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED"})
KEY_COLUMNS = ("key", "name", "id")
VALUE_COLUMNS = ("value", "data", "val")


class SqliteReader:
    """Reads one row's value, or a member of its JSON."""

    renews = False
    pause = 0.25

    def __init__(self, path: str, key: str, field: str, clock: Callable[[], float]) -> None:
        self._shown = path
        self._path = os.path.expanduser(path)
        self._key = key
        self._field = field
        self._clock = clock

    def stamp(self) -> Stamp:
        return file_stamp(self._path, self._path + "-wal", self._path + "-shm", inode_changes=False)

    async def read(self, *, force: bool) -> Reading | Problem:
        value = await asyncio.to_thread(_value, self._path, self._key)
        if isinstance(value, Problem):
            return Problem(f"the SQLite file {self._shown} {value.why}")
        found = extract(value, self._field, now=self._clock())
        if isinstance(found, Problem):
            return Problem(f"the row `{self._key}` of {self._shown} {found.why}")
        return found


def _value(path: str, key: str) -> bytes | Problem:
    """The row's value. Tries again where that can help."""
    if not os.path.isfile(path):
        return Problem("does not exist; start the program that keeps it, or mend the path")
    problem = Problem("")
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(0.05)
        value = _look(path, key, _mode(path, attempt))
        if value is None:
            return Problem(f"has no row `{key}`; sign in to the program that keeps it")
        if isinstance(value, bytes):
            return value
        problem = Problem(f"cannot be read now ({value.sqlite_errorname})")
        if value.sqlite_errorname in _LOCKED:
            break  # it was waited for
    return problem


def _mode(path: str, attempt: int) -> str:
    """How to open it so that nothing is left behind.

    A file in WAL mode without a log beside it is at rest: nobody has it open. Opened as usual, it would get a
    log and an index, and in a folder that may not be written to it could not be opened at all.
    """
    at_rest = not attempt and _in_wal_mode(path) and not os.path.exists(path + "-wal")
    return "immutable=1" if at_rest else "mode=ro"


def _in_wal_mode(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(20)[18:20] == b"\x02\x02"
    except OSError:
        return False


def _look(path: str, key: str, mode: str) -> bytes | sqlite3.Error | None:
    uri = f"{Path(path).absolute().as_uri()}?{mode}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY, isolation_level=None)) as database:
            # Else a value that is no text would be quoted in an error.
            database.text_factory = bytes
            for query in _queries(database):
                row = database.execute(query, (key, key.encode())).fetchone()
                if row is not None:
                    return _as_bytes(row[0])
    except sqlite3.Error as error:
        return error
    return None


def _queries(database: sqlite3.Connection) -> Iterator[str]:
    """One for each table of keys and values; VS Code's first."""
    found = database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    tables = sorted((name.decode() for (name,) in found), key=lambda name: (name != "ItemTable", name))
    for table in tables:
        rows = database.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        columns = {name.decode().lower(): name.decode() for (name,) in rows}
        key = next((columns[name] for name in KEY_COLUMNS if name in columns), None)
        value = next((columns[name] for name in VALUE_COLUMNS if name in columns), None)
        if key and value:
            yield f"SELECT {_quoted(value)} FROM {_quoted(table)} WHERE {_quoted(key)} IN (?, ?) LIMIT 1"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _as_bytes(value: object) -> bytes:
    if isinstance(value, bytes):
        return value
    return b"" if value is None else str(value).encode()
