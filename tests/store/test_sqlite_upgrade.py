"""A file of an older Dragoman is brought up to date, and its receipts count."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support import older_stores

from dragoman.store import ReceiptQuery, UsageQuery, open_store
from dragoman.store.sqlite import schema

AT = 1_700_000_000.0
SUMMARY = b"""{"id":"r1","at":1700000000,"target":"anthropic/claude","calls":2,"invalid":1,
    "usage":{"input":100,"output":20,"cached_input":30,"reasoning":5}}"""
OLD = """INSERT INTO receipts (id, at, client, profile, model, outcome, status, seconds, failed, mended,
    rules, words, summary, value) VALUES (?, ?, 'c', '', ?, 'ok', 200, 1, 0, 1, '', 'w', ?, x'00')"""


def test_a_file_of_the_second_version_keeps_its_receipts_and_gets_their_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:2])
        schema.connect(path, 1).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(OLD, ("r1", AT, "sonnet", SUMMARY))
        connection.execute(OLD, ("r2", AT + 1, "sonnet", b"not JSON"))

    async def scenario() -> None:
        store = open_store(path, now=lambda: AT + 2, fallback=False)
        newest, first = await store.receipts(ReceiptQuery())
        assert (newest.id, first.id, first.words) == ("r2", "r1", "w")
        assert (first.upstream, first.input, first.micros) == ("anthropic", 100, None)
        known, unknown = (await store.usage(UsageQuery(by="upstream")))[::-1]
        assert (known.group, known.requests, known.input, known.output) == ("anthropic", 1, 100, 20)
        assert (known.cached, known.reasoning, known.calls, known.invalid) == (30, 5, 2, 1)
        assert (known.mended, known.unpriced, unknown.group) == (1, 1, "")
        status = await store.status()
        assert (status.version, status.pending) == (len(schema.MIGRATIONS), 0)
        await store.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("version", range(1, len(schema.MIGRATIONS)))
def test_a_file_of_any_older_version_keeps_all_it_has(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:version])
        schema.connect(path, 1).close()
    with closing(sqlite3.connect(path)) as connection, connection:

        def columns(table: str) -> list[str]:
            return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]

        def insert(table: str, row: dict[str, object]) -> None:
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", [*row.values()])

        filled = older_stores.fill(columns, insert)
    # No release wrote receipts into the first table.
    filled -= {"receipts"} if version == 1 else set()

    async def scenario() -> None:
        for _ in range(2):  # the second time there is nothing to do
            store = open_store(path, now=lambda: AT + 2, fallback=False)
            await older_stores.check(store, filled)
            await store.close()

    asyncio.run(scenario())
