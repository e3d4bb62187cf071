"""A secret in another program's SQLite file, such as `state.vscdb` of VS Code, Cursor and other forks.

A thread opens the file read-only for each read and closes it again. The change check looks at the file and
at its `-wal` and `-shm`: a program in WAL mode writes there first.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from .base import Reading, ReadProblem, Stamp
from .spec import CredentialSpec
from .stamps import file_stamp
from .values import extract, extract_protobuf

BUSY = 0.3
"""Seconds to wait for a writer."""
ATTEMPTS = 3
"""Tries for other temporary errors: a log that is being recovered, a file that is being replaced."""

_LOCKED = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED"})
KEY_COLUMNS = ("key", "name", "id")
VALUE_COLUMNS = ("value", "data", "val")


class SqliteReader:
    """Reads the value of one row, or a field of its JSON or protobuf. Several places are tried in order."""

    renews = False
    pause = 0.25

    def __init__(
        self, spec: CredentialSpec, *, environment: Mapping[str, str], clock: Callable[[], float]
    ) -> None:
        places = (spec, *spec.otherwise)
        self._places = [_Place(place, _expanded(place.path, environment)) for place in places]
        files = dict.fromkeys(place.path for place in self._places)
        self._files = [f"{file}{suffix}" for file in files for suffix in ("", "-wal", "-shm")]
        self._clock = clock

    def stamp(self) -> Stamp:
        return file_stamp(*self._files, inode_changes=False)

    async def read(self, *, force: bool) -> Reading | ReadProblem:
        """The first token that has not expired. Of expired ones, the one that was valid longest."""
        now = self._clock()
        expired: list[Reading] = []
        problems: list[str] = []
        for place in self._places:
            found = await place.read(now)
            if isinstance(found, ReadProblem):
                problems.append(found.why)
                if found.passing:
                    break  # the next place may hold the token of another account
            elif found.expires is None or found.expires > now:
                return found
            else:
                expired.append(found)
        if expired:
            return max(expired, key=lambda reading: reading.expires or 0.0)
        return ReadProblem("; ".join(dict.fromkeys(problems)))


class _Place(NamedTuple):
    """One row of one file."""

    spec: CredentialSpec
    path: str

    async def read(self, now: float) -> Reading | ReadProblem:
        spec = self.spec
        value = await asyncio.to_thread(_value, self.path, spec.key)
        if isinstance(value, ReadProblem):
            return ReadProblem(f"the SQLite file {spec.path} {value.why}", value.passing)
        if spec.protobuf:
            found = extract_protobuf(value, spec.protobuf, spec.expires)
        else:
            found = extract(value, spec.field, now=now)
        if isinstance(found, ReadProblem):
            return ReadProblem(f"the row `{spec.key}` of {spec.path} {found.why}")
        return found


def _expanded(path: str, environment: Mapping[str, str]) -> str:
    """`~` is the home folder, and `%NAME%` at the beginning an environment variable, as on Windows."""
    name, percent, rest = path[1:].partition("%") if path.startswith("%") else ("", "", "")
    return environment[name] + rest if percent and environment.get(name) else os.path.expanduser(path)


def _value(path: str, key: str) -> bytes | ReadProblem:
    """The value of the row. Retries after temporary errors."""
    if not os.path.isfile(path):
        return ReadProblem("does not exist; start the program that owns it, or correct the path")
    problem = ReadProblem("")
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(0.05)
        value = _query(path, key, _mode(path, attempt))
        if value is None:
            return ReadProblem(f"has no row `{key}`; sign in with the program that owns it")
        if isinstance(value, bytes):
            return value
        locked = value.sqlite_errorname in _LOCKED
        problem = ReadProblem(f"cannot be read now ({value.sqlite_errorname})", locked)
        if locked:
            break  # SQLite has already waited for the lock
    return problem


def _mode(path: str, attempt: int) -> str:
    """How to open the file without creating files next to it.

    A file in WAL mode without a `-wal` file is not open in any program. `mode=ro` would create `-wal` and
    `-shm`, and would fail in a folder that is not writable. `immutable=1` does neither.
    """
    closed = not attempt and _in_wal_mode(path) and not os.path.exists(path + "-wal")
    return "immutable=1" if closed else "mode=ro"


def _in_wal_mode(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(20)[18:20] == b"\x02\x02"
    except OSError:
        return False


def _query(path: str, key: str, mode: str) -> bytes | sqlite3.Error | None:
    uri = f"{Path(path).absolute().as_uri()}?{mode}"
    try:
        with closing(sqlite3.connect(uri, uri=True, timeout=BUSY, isolation_level=None)) as database:
            # With `str`, an error about a value that is not UTF-8 would quote the value.
            database.text_factory = bytes
            for query in _queries(database):
                row = database.execute(query, (key, key.encode())).fetchone()
                if row is not None:
                    return _as_bytes(row[0])
    except sqlite3.Error as error:
        return error
    return None


def _queries(database: sqlite3.Connection) -> Iterator[str]:
    """One query for each table with key and value columns. VS Code's `ItemTable` comes first."""
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
