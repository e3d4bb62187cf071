"""`dragoman store`, over a file."""

import asyncio
import json
import os
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.cli import main
from dragoman.store import EntryKey, Receipt, StoredEntry, open_store
from dragoman.store.sqlite import schema


def dragoman(*words: str | Path) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "dragoman.toml"
    file.write_text('[server]\nstore = "store.db"\nretention = "10d"\n[upstreams.ollama]\n')
    return file


def filled(path: Path) -> None:
    now = time.time()

    async def fill() -> None:
        store = open_store(path, fallback=False)
        receipts = [
            Receipt(f"r{n}", now - n * 86_400, key="ada", model="m", micros=1500000 if n else None,
                    summary=b'{"n":%d}' % n, value=b'{"calls":[]}')
            for n in range(20)
        ]  # fmt: skip
        await asyncio.wrap_future(store.add_receipts(lambda: receipts))
        await store.put([StoredEntry(EntryKey("turns", "a"), b"v")])
        await store.close()

    asyncio.run(fill())


def test_a_store_that_is_not_there_is_not_made(config: Path) -> None:
    for command in ("status", "migrate", "export", "prune"):
        result = dragoman("store", command, "--config", config)
        assert result.exit_code == 1
        assert "there is no store at" in result.stderr
    assert not (config.parent / "store.db").exists()


def test_the_status(config: Path) -> None:
    filled(config.parent / "store.db")
    told = dragoman("store", "status", "--config", config).stdout
    assert "sqlite" in told
    assert "up to date" in told
    as_json = json.loads(dragoman("store", "status", "--json", "--config", config).stdout)
    assert (as_json["receipts"], as_json["entries"], as_json["pending"]) == (20, 1, 0)


def test_an_older_file_is_looked_at_and_then_migrated(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:2])
        schema.connect(config.parent / "store.db", 1).close()
    left = len(schema.MIGRATIONS) - 2
    for _ in range(2):
        told = dragoman("store", "status", "--config", config).stdout
        assert f"version 2, migrations to do: {left}" in told
    assert f"Migrations done: {left}" in dragoman("store", "migrate", "--config", config).stdout
    assert "up to date" in dragoman("store", "migrate", "--config", config).stdout


def test_an_export_is_json_lines_and_its_progress_is_apart(config: Path) -> None:
    filled(config.parent / "store.db")
    result = dragoman("store", "export", "--since", "3.5d", "--config", config)
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line["id"] for line in lines] == ["r3", "r2", "r1", "r0"]
    assert (lines[0]["cost"], lines[3]["cost"], lines[0]["key"]) == (1.5, None, "ada")
    assert (lines[0]["summary"], lines[0]["detail"]) == ({"n": 3}, {"calls": []})
    assert result.stderr == "Receipts exported: 4.\n"
    output = config.parent / "out.jsonl"
    result = dragoman("store", "export", "--output", output, "--before", "2999-01-01", "--config", config)
    assert (result.stdout, len(output.read_text().splitlines())) == ("", 20)
    assert output.stat().st_mode & 0o777 == 0o600


def test_a_time_that_is_none(config: Path) -> None:
    filled(config.parent / "store.db")
    result = dragoman("store", "export", "--since", "yesterday", "--config", config)
    assert result.exit_code == 2
    assert "Invalid value for '--since': 'yesterday' is no time" in result.stderr


def test_pruning_deletes_what_the_config_does_not_keep(config: Path) -> None:
    filled(config.parent / "store.db")
    folder = config.parent / "recordings"
    folder.mkdir()
    for n, age in enumerate((0, 5, 50)):
        file = folder / f"{n}.dragoman"
        file.write_bytes(bytes(1000))
        os.utime(file, (time.time() - age * 86_400,) * 2)
    (folder / "notes.txt").write_text("mine")
    text = config.read_text().replace("[server]", '[server]\nrecord = "recordings"\nrecord_retention = "9d"')
    config.write_text(text)
    result = dragoman("store", "prune", "--config", config)
    assert result.stdout == "Deleted: receipts 10, entries 0, recordings 1.\n"
    config.write_text(text.replace("record_retention = ", 'record_size = "1KB"\nrecord_retention = '))
    assert "recordings 1" in dragoman("store", "prune", "--config", config).stdout
    assert sorted(path.name for path in folder.iterdir()) == ["0.dragoman", "notes.txt"]


def test_a_broken_file_is_reported(config: Path) -> None:
    (config.parent / "store.db").write_bytes(b"this is no database at all" * 1000)
    result = dragoman("store", "status", "--config", config)
    assert result.exit_code == 1
    assert "it is not an SQLite file: move it away" in result.stderr
