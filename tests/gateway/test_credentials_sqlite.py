"""Tokens in SQLite files of other programs: their tables, locks and errors."""

import asyncio
import sqlite3
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from credential_places import age, opened, problem, read, state_file, store

from dragoman.credentials import sqlite as credentials_sqlite

SQLITE = {"key": "antigravityAuthStatus", "field": "apiKey"}


def test_a_token_of_antigravity_is_read(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    database = state_file(path)
    store(database, "ya29.one")
    source = opened({"sqlite": str(path), **SQLITE})
    assert read(source) == ("ya29.one", None)
    store(database, "ya29.two")
    assert read(source) == ("ya29.two", None)
    database.close()


@pytest.mark.parametrize(
    ("schema", "value", "field"),
    [
        ("CREATE TABLE ItemTable (key TEXT, value BLOB)", b'{"apiKey": "k"}', "apiKey"),
        ("CREATE TABLE ItemTable (key TEXT, value BLOB)", '{"apiKey": "k"}', "apiKey"),
        ("CREATE TABLE ItemTable (key TEXT, value BLOB)", '"{\\"apiKey\\": \\"k\\"}"', "apiKey"),
        ("CREATE TABLE ItemTable (key TEXT, value TEXT)", '"k"', ""),
        ('CREATE TABLE "odd "" name" (Name TEXT, Data TEXT)', "k", ""),
        ("CREATE TABLE kv (id BLOB PRIMARY KEY, val) WITHOUT ROWID", "k", ""),
    ],
)
def test_tables_are_found_by_their_columns(
    tmp_path: Path, schema: str, value: str | bytes, field: str
) -> None:
    path = tmp_path / "data base?#.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE another (key TEXT, value TEXT)")
        database.execute("CREATE TABLE unrelated (a, b)")
        database.execute(schema)
        table = schema.split("TABLE ")[1].split(" (")[0]
        database.execute(f"INSERT INTO {table} VALUES ('the.key', ?)", (value,))
    database.close()
    source = opened({"sqlite": str(path), "key": "the.key"} | ({"field": field} if field else {}))
    assert read(source) == ("k", None)


def test_an_unchanged_file_is_not_read_again_and_gets_no_side_files(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    database = state_file(path)
    store(database, "k")
    database.close()
    age(path)
    content = path.read_bytes()

    async def scenario() -> None:
        source: Any = opened({"sqlite": str(path), **SQLITE})
        for _ in range(5):
            await source.token()
        flights = source._read_count
        assert flights <= 2
        for _ in range(5):
            await source.token()
        assert source._read_count == flights

    asyncio.run(scenario())
    assert path.read_bytes() == content
    assert {entry.name for entry in tmp_path.iterdir()} <= {path.name, f"{path.name}-wal", f"{path.name}-shm"}


def test_a_read_waits_for_a_short_lock(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    database.execute("CREATE TABLE ItemTable (key TEXT, value BLOB)")
    database.execute("INSERT INTO ItemTable VALUES ('k', 'v')")
    database.execute("BEGIN EXCLUSIVE")
    letting_go = threading.Timer(0.1, database.execute, ("COMMIT",))
    letting_go.start()
    assert read(opened({"sqlite": str(path), "key": "k"})) == ("v", None)
    letting_go.join()
    database.close()


def test_a_lasting_lock_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.credentials.sqlite.BUSY", 0.05)
    path = tmp_path / "old.db"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("CREATE TABLE ItemTable (key TEXT, value BLOB)")
    database.execute("BEGIN EXCLUSIVE")
    assert problem(opened({"sqlite": str(path), "key": "k"})).endswith("cannot be read now (SQLITE_BUSY)")
    database.close()


def test_a_locked_file_is_read_once_while_a_key_is_cached(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("CREATE TABLE ItemTable (key TEXT, value BLOB)")
    database.execute("INSERT INTO ItemTable VALUES ('k', 'one')")
    source = opened({"sqlite": str(path), "key": "k"})
    reads: list[str] = []

    def counted(path: str, key: str) -> Any:
        reads.append(path)
        return value(path, key)

    value: Any = credentials_sqlite._value
    monkeypatch.setattr(credentials_sqlite, "_value", counted)

    async def scenario() -> None:
        await source.token()
        reads.clear()
        database.execute("BEGIN EXCLUSIVE")
        database.execute("UPDATE ItemTable SET value = 'two'")
        for _ in range(5):
            token = await source.token()
            assert token.secret is not None
            assert token.secret.reveal() == "one"
        assert len(reads) == 1, "a read that waits for the lock is not repeated for each request"
        assert "still using #" in caplog.text
        database.execute("COMMIT")
        async with asyncio.timeout(30):
            while (await source.token()).secret == token.secret:  # noqa: ASYNC110 - it is a file
                await asyncio.sleep(0.01)

    asyncio.run(scenario())
    database.close()


def test_each_problem_of_a_state_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    written = {"sqlite": str(path), **SQLITE}
    assert "does not exist; start the program that owns it" in problem(opened(written))
    path.write_bytes(b"no database, but a hidden text" * 100)
    assert problem(opened(written)).endswith("cannot be read now (SQLITE_NOTADB)")
    path.unlink()
    database = state_file(path)
    assert "has no row `antigravityAuthStatus`; sign in" in problem(opened(written))
    database.execute("INSERT INTO ItemTable VALUES ('antigravityAuthStatus', '{}')")
    assert "has no text at `apiKey`" in problem(opened(written))
    database.execute("INSERT INTO ItemTable VALUES ('antigravityAuthStatus', NULL)")
    assert "does not contain a JSON object" in problem(opened(written))
    database.execute("INSERT INTO ItemTable VALUES ('antigravityAuthStatus', ?)", (b"\xffhidden",))
    assert "does not contain text" in problem(opened(written))
    database.close()


def test_a_file_in_a_read_only_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    path = folder / "state.vscdb"
    database = state_file(path)
    store(database, "k")
    database.close()
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert read(opened({"sqlite": str(path), **SQLITE})) == ("k", None)
    finally:
        folder.chmod(stat.S_IRWXU)
