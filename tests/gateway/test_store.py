"""The embedded store: entries, expiry, limits, concurrency, locks, damaged files, upgrades."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import loads
from dragoman.config.types import Config
from dragoman.gateway.state import State
from dragoman.store import (
    EntryKey,
    Receipt,
    ReceiptQuery,
    Retention,
    RetentionRule,
    Store,
    StoredEntry,
    StoreError,
    open_store,
)
from dragoman.store.sqlite import pruning as store_pruning
from dragoman.store.sqlite import reader as store_reader
from dragoman.store.sqlite import schema as store_schema
from dragoman.store.sqlite import store as store_sqlite


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the worker may need more than the usual limit. Tests of the limit set their own."""
    monkeypatch.setattr(store_sqlite, "_MAX_WAIT", 60)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def key(name: object, namespace: str = "turns") -> EntryKey:
    return EntryKey(namespace, str(name))


def entry(name: object, value: bytes = b"value", namespace: str = "turns") -> StoredEntry:
    return StoredEntry(key(name, namespace), value)


async def added(store: Store, *receipts: Receipt) -> None:
    await asyncio.wrap_future(store.add_receipts(lambda: receipts))


def rows(path: Path, table: str = "entries") -> int:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    finally:
        connection.close()


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "store.db" if request.param == "file" else None


def emptied(path: Path) -> None:
    """Delete all entries, as if they had expired."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM entries")


def test_an_entry_can_be_read_back(place: Path | None) -> None:
    async def scenario() -> None:
        store = open_store(place, fallback=False)
        await store.put([entry("a", b"1"), entry("a", b"2", "aliases"), entry("b", b"\x00\xff")])
        wanted = [key("a"), key("a", "aliases"), key("b"), key("c")]
        assert await store.get(wanted) == {wanted[0]: b"1", wanted[1]: b"2", wanted[2]: b"\x00\xff"}
        await store.put([entry("a", b"3")])
        assert await store.get([key("a"), key("c")]) == {key("a"): b"3"}
        assert await store.get([]) == {}
        assert store.warning is None
        await store.close()

    run(scenario())


def test_thousands_of_keys_at_once(place: Path | None) -> None:
    async def scenario() -> None:
        store = open_store(place)
        await store.put([entry(n, str(n).encode()) for n in range(3000)])
        found = await store.get([key(n) for n in range(4000)])
        assert found == {key(n): str(n).encode() for n in range(3000)}
        await store.close()

    run(scenario())


def test_entries_expire_by_their_namespace(place: Path | None) -> None:
    async def scenario() -> None:
        clock = Clock()
        retention = Retention(
            entries=RetentionRule(seconds=100_000), namespaces={"aliases": RetentionRule(seconds=50)}
        )
        store = open_store(place, retention=retention, now=clock)
        await store.put([entry("a"), entry("a", namespace="aliases")])
        clock.now += 51
        assert list(await store.get([key("a"), key("a", "aliases")])) == [key("a")]
        clock.now += 60_000
        await store.put([entry("a")])  # a repeated put renews its life
        clock.now += 60_000
        assert list(await store.get([key("a")])) == [key("a")]
        clock.now += 60_000
        assert await store.get([key("a")]) == {}
        await store.close()

    run(scenario())


def test_expired_rows_leave_the_file(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        clock = Clock()
        store = open_store(path, retention=Retention(entries=RetentionRule(seconds=10)), now=clock)
        for start in range(0, 300, 100):
            await store.put([entry(n) for n in range(start, start + 100)])
        await store.close()
        clock.now += 3600
        store = open_store(path, retention=Retention(entries=RetentionRule(seconds=10)), now=clock)
        await store.put([entry("new")])  # the first write prunes
        await store.close()

    run(scenario())
    assert rows(path) == 1


def test_a_reload_changes_the_retention(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    def config(retention: str) -> Config:
        return loads(f"[server]\nstore = '{path}'\nretention = '{retention}'\n[upstreams.ollama]", env={})

    async def scenario() -> None:
        state = State(config("30d"), env={})
        state.replace(config("1d"))
        now = time.time()
        old, new = Receipt("old", now - 2 * 86_400, value=b"r"), Receipt("new", now, value=b"r")
        await added(state.store, old, new)
        await state.store.put([entry("a")])
        await state.close()

    run(scenario())
    assert rows(path, "receipts") == 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT expires FROM entries").fetchone()[0] < time.time() + 86_401


def test_the_number_of_rows_is_limited_and_the_oldest_go(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        clock = Clock()
        retention = Retention(entries=RetentionRule(rows=100), receipts=RetentionRule(rows=10))
        store = open_store(path, retention=retention, now=clock)
        for n in range(600):
            clock.now += 1
            await store.put([entry(n)])
            await added(store, Receipt(str(n), clock.now, value=b"r"))
        await store.close()
        store = open_store(path, retention=retention, now=clock)
        clock.now += 1
        await store.put([entry("last"), entry("elsewhere", namespace="aliases")])  # the first write prunes
        await store.close()
        again = open_store(path, retention=retention, now=clock)
        kept = await again.get([key(n) for n in range(600)] + [key("last")])
        assert list(kept) == [key(n) for n in range(501, 600)] + [key("last")]
        assert [receipt.id for receipt in await again.receipts(ReceiptQuery())] == [
            str(n) for n in range(599, 589, -1)
        ]
        await again.close()

    run(scenario())


def test_the_number_of_bytes_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_pruning, "_PRUNE_ROWS", 20)
    path = tmp_path / "store.db"

    async def scenario() -> None:
        clock = Clock()
        store = open_store(path, retention=Retention(bytes=1 << 20), now=clock)
        for n in range(400):
            clock.now += 61
            await store.put([entry(n, os.urandom(20_000))])
        assert key(399) in await store.get([key(n) for n in range(400)])
        await store.close()

    run(scenario())
    assert path.stat().st_size < 3 << 20


def test_receipts_come_newest_first_and_by_id(place: Path | None) -> None:
    async def scenario() -> None:
        store = open_store(place, now=lambda: 2000.0)
        await added(store, *(Receipt(f"x{n}", 1000.0 + n, value=b"%d" % n) for n in range(5)))
        await added(store, Receipt("x2", 1002.0, value=b"again"))
        assert [receipt.id for receipt in await store.receipts(ReceiptQuery(limit=3))] == ["x4", "x3", "x2"]
        middle = await store.receipts(ReceiptQuery(since=1001, before=1003))
        assert [receipt.id for receipt in middle] == ["x2", "x1"]
        behind = await store.receipts(ReceiptQuery(after=(1002.0, "x2")))
        assert [receipt.id for receipt in behind] == ["x1", "x0"]
        assert await store.receipt("x2") == Receipt("x2", 1002.0, value=b"2"), "written once"
        assert await store.receipt("none") is None
        await store.close()

    run(scenario())


def test_receipts_that_cannot_be_made_do_not_affect_others(place: Path | None) -> None:
    def broken() -> list[Receipt]:
        raise ValueError("no receipt")

    async def scenario() -> None:
        store = open_store(place)
        lost = store.add_receipts(broken)
        await store.put([entry("a")])
        assert await store.get([key("a")])
        with pytest.raises(ValueError, match="no receipt"):
            await asyncio.wrap_future(lost)
        await store.close()

    run(scenario())


def test_many_tasks_and_threads_at_once(place: Path | None) -> None:
    store = open_store(place)
    failures: list[BaseException] = []

    async def writer(name: int) -> None:
        async def one(n: int) -> None:
            await store.put([entry(f"{name}-{n}", b"%d" % n)])
            assert await store.get([key(f"{name}-{n}")]) == {key(f"{name}-{n}"): b"%d" % n}

        await asyncio.gather(*(one(n) for n in range(100)))

    def thread(name: int) -> None:
        try:
            run(writer(name))
        except BaseException as error:  # noqa: BLE001 - told to the main thread
            failures.append(error)

    threads = [threading.Thread(target=thread, args=(name,)) for name in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []

    async def count() -> int:
        found = await store.get([key(f"{name}-{n}") for name in range(6) for n in range(100)])
        await store.close()
        return len(found)

    assert run(count()) == 600


def test_one_process_reads_at_once_what_another_wrote(tmp_path: Path) -> None:
    async def scenario() -> None:
        one, other = open_store(tmp_path / "s.db"), open_store(tmp_path / "s.db")
        for n in range(50):
            writer, reader = (one, other) if n % 2 else (other, one)
            await writer.put([entry(n)])
            assert await reader.get([key(n)])
        await one.close()
        await other.close()

    run(scenario())


_WRITER = """
import asyncio, sys
from pathlib import Path
from dragoman.store import StoredEntry, EntryKey, open_store
async def main():
    store = open_store(Path(sys.argv[1]), fallback=False)
    for n in range(int(sys.argv[3])):
        await store.put([StoredEntry(EntryKey("turns", f"{sys.argv[2]}-{n}"), b"x" * 5000)])
        print(n, flush=True)
asyncio.run(main())
"""


def writer(path: Path, name: str, count: int) -> "subprocess.Popen[str]":
    arguments = [sys.executable, "-c", _WRITER, str(path), name, str(count)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def test_processes_that_start_and_write_at_the_same_time(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    writers = [writer(path, str(name), 20) for name in range(3)]
    for process in writers:
        process.communicate(timeout=60)
    assert [process.returncode for process in writers] == [0] * 3
    assert rows(path) == 60


def test_a_killed_writer_loses_no_confirmed_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    process = writer(path, "w", 100_000)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(40)]
    process.send_signal(signal.SIGKILL)
    said += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    told = max(int(line) for line in said if line.endswith("\n"))

    async def scenario() -> None:
        store = open_store(path, fallback=False)
        wanted = [key(f"w-{n}") for n in range(told + 1)]
        assert len(await store.get(wanted)) == len(wanted)
        await store.put([entry("after")])
        await store.close()

    run(scenario())
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_the_event_loop_and_reads_continue_while_the_file_is_locked(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        store = open_store(path)
        await store.put([entry("before")])
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.ensure_future(store.put([entry("held")]))
        for _ in range(20):
            await asyncio.sleep(0.005)
        assert await store.get([key("before")])
        assert store.may_hold("turns")
        assert not waiting.done(), "reads do not wait for writes"
        other.execute("ROLLBACK")
        other.close()
        await waiting
        assert await store.get([key("held")])
        await store.close()

    run(scenario())


def test_a_busy_inline_read_falls_back_to_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_busy(connection: sqlite3.Connection, *asked: object) -> Any:
        if threading.current_thread() is threading.main_thread():
            raise sqlite3.OperationalError("database is locked")
        return get(connection, *asked)

    get: Any = store_sqlite._get
    monkeypatch.setattr(store_sqlite, "_get", is_busy)

    async def scenario() -> None:
        store = open_store(tmp_path / "store.db")
        await store.put([entry("a")])
        assert await store.get([key("a")]) == {key("a"): b"value"}
        await store.close()

    run(scenario())


def test_inline_reads_pause_after_a_slow_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = Clock()
    monkeypatch.setattr(store_reader, "monotonic", now)
    reader = store_reader.InlineReader(tmp_path / "store.db")

    def ask(seconds: float) -> str | None:
        def question(connection: sqlite3.Connection) -> str:
            now.now += seconds
            return connection.execute("SELECT 'read'").fetchone()[0]

        return reader.run(question)

    assert ask(0.001) == "read"
    assert ask(2.0) == "read", "a slow read still returns its result"
    assert ask(0.001) is None
    now.now += 3600
    assert ask(0.001) == "read"
    reader.close()
    assert ask(0.001) is None, "after an error the worker thread reports it"


async def written(path: Path, table: str, count: int) -> None:
    async with asyncio.timeout(30):
        while rows(path, table) < count:  # noqa: ASYNC110 - it is a file
            await asyncio.sleep(0.01)


def test_writes_that_a_lock_prevents_are_made_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        store = open_store(path)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        monkeypatch.setattr(store_sqlite, "_MAX_WAIT", 2)
        for n in range(5):
            with pytest.raises(
                StoreError, match=r"store\.db cannot be used: another program has locked it"
            ) as raised:
                await store.put([entry(n)])
            assert raised.value.status == 503
            # Only the first write waits. Any other wait would now outlast the test.
            monkeypatch.setattr(store_sqlite, "_MAX_WAIT", 3600)
        receipt = store.add_receipts(lambda: [Receipt("r", time.time())])
        assert await store.get([key(n) for n in range(50)]) == {}, "reads still work"
        assert await store.receipts(ReceiptQuery()) == []
        assert await store.receipt("r") is None
        other.execute("ROLLBACK")
        other.close()
        await written(path, "entries", 5)
        await asyncio.wrap_future(receipt)
        await store.put([entry("after")])
        await store.close()

    run(scenario())
    assert (rows(path), rows(path, "receipts")) == (6, 1)


def test_reads_fail_at_once_after_one_that_timed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    run(open_store(path).close())

    async def scenario() -> None:
        store = open_store(path)
        await store.put([entry("a")])
        held = threading.Event()

        def is_held(connection: sqlite3.Connection) -> None:
            held.wait()

        store._worker.submit(is_held, writes=False)  # type: ignore[attr-defined]
        now = Clock()
        monkeypatch.setattr(store_sqlite, "monotonic", now)
        monkeypatch.setattr(store_sqlite, "_MAX_WAIT", 0.4)
        for _ in range(5):
            with pytest.raises(StoreError, match="did not answer"):
                await store.receipt("r")
            # Only the first read waits. Any other wait would now outlast the test.
            monkeypatch.setattr(store_sqlite, "_MAX_WAIT", 3600)
        held.set()
        now.now += 1.1
        assert await store.receipt("r") is None
        await store.close()

    run(scenario())


def test_closing_while_the_file_is_locked_ends_and_fails_the_waiting_writes(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        store = open_store(path)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        receipt = store.add_receipts(lambda: [Receipt("r", time.time())])
        async with asyncio.timeout(30):
            await store.close()
        with pytest.raises(StoreError, match="another program has locked it"):
            receipt.result()
        other.close()

    run(scenario())


def test_a_failing_job_does_not_affect_others(place: Path | None) -> None:
    def bad() -> list[Receipt]:
        raise ValueError("bad")

    async def scenario() -> None:
        store = open_store(place)
        wrong: Any = {"not": "bytes"}
        jobs = [store.put([entry("a")]), store.put([entry("b", wrong)]), store.put([entry("c")])]
        failed = store.add_receipts(bad)
        results = await asyncio.gather(*jobs, return_exceptions=True)
        assert [isinstance(result, StoreError) for result in results] == [False, True, False]
        assert set(await store.get([key("a"), key("b"), key("c")])) == {key("a"), key("c")}
        with pytest.raises(ValueError, match="bad"):
            await asyncio.wrap_future(failed)
        await added(store, Receipt("r", time.time()))
        assert await store.receipt("r")
        await store.close()

    run(scenario())


def test_a_cancelled_write_is_still_done(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        store = open_store(path)
        task = asyncio.ensure_future(store.put([entry("a")]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.close()

    run(scenario())
    assert rows(path) == 1


def test_a_batch_that_fails_leaves_nothing_half_done(place: Path | None) -> None:
    async def scenario() -> None:
        store = open_store(place)
        wrong: Any = {"not": "bytes"}
        with pytest.raises(StoreError, match="cannot be used"):
            await store.put([entry("first"), entry("second", wrong)])
        assert await store.get([key("first")]) == {}
        await store.put([entry("first")])
        assert await store.get([key("first")])
        await store.close()

    run(scenario())


def test_closing_finishes_waiting_writes_and_refuses_new_ones(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        store = open_store(path)
        puts = [asyncio.ensure_future(store.put([entry(n)])) for n in range(50)]
        await asyncio.sleep(0)
        await store.close()
        await asyncio.gather(*puts)
        with pytest.raises(StoreError, match="is closed"):
            await store.put([entry("late")])
        await store.close()

    run(scenario())
    assert rows(path) == 50


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database, but it is long enough to be taken for one" * 100)


def _bookmarks(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.commit()
    connection.close()


def _from_the_future(path: Path) -> None:
    run(open_store(path).close())
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (_garbage, "it is not an SQLite file: move it away"),
        (_bookmarks, "belongs to another program"),
        (_from_the_future, "was written by a newer Dragoman"),
        (_folder, "cannot be opened"),
    ],
)
def test_an_unusable_file_is_an_error(tmp_path: Path, make: Any, says: str) -> None:
    path = tmp_path / "store.db"
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError, match=says):
        open_store(path, fallback=False)

    async def scenario() -> None:
        store = open_store(path)
        assert store.warning is not None
        assert says in store.warning
        assert "store.db" in store.warning
        await store.put([entry("a")])
        assert await store.get([key("a")])
        await store.close()

    run(scenario())
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_read_only_file_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    run(open_store(path).close())
    connect = sqlite3.connect

    def readonly(place: Any, **options: Any) -> sqlite3.Connection:
        if place == ":memory:":
            return connect(place, **options)
        return connect(f"file:{place}?mode=ro", uri=True, **options)

    monkeypatch.setattr(store_schema.sqlite3, "connect", readonly)
    with pytest.raises(StoreError, match="it is not writable: change its permissions"):
        open_store(path, fallback=False)
    store = open_store(path)
    assert store.warning is not None
    run(store.close())


def test_damage_found_later_is_an_error_and_not_a_hang(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def fill() -> None:
        store = open_store(path)
        await store.put([entry(n, os.urandom(3000)) for n in range(200)])
        await store.close()

    run(fill())
    data = bytearray(path.read_bytes())
    data[8192:] = os.urandom(len(data) - 8192)
    path.write_bytes(data)

    async def scenario() -> None:
        store = open_store(path, fallback=False)
        with pytest.raises(StoreError, match="cannot be used"):
            await store.get([key(n) for n in range(200)])
        await store.close()

    run(scenario())


def test_an_older_file_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"

    async def write() -> None:
        store = open_store(path)
        await store.put([entry("old")])
        await store.close()

    run(write())
    step = ("ALTER TABLE receipts ADD COLUMN note TEXT",)
    monkeypatch.setattr(store_schema, "MIGRATIONS", (*store_schema.MIGRATIONS, step))

    async def read() -> None:
        for _ in range(2):
            store = open_store(path, fallback=False)
            assert await store.get([key("old")])
            await store.close()

    run(read())
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(store_schema.MIGRATIONS),)
    connection.execute("SELECT note FROM receipts")
    connection.close()


def test_a_failed_migration_leaves_the_file_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    run(open_store(path).close())
    step = ("CREATE TABLE half (a)", "THIS IS NOT SQL")
    monkeypatch.setattr(store_schema, "MIGRATIONS", (*store_schema.MIGRATIONS, step))
    with pytest.raises(StoreError, match="cannot be used"):
        open_store(path, fallback=False)
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    connection.close()


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "kept" / "store.db"

    async def scenario() -> None:
        store = open_store(path, fallback=False)
        await store.put([entry("a")])
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
        await store.close()
        assert set(modes.values()) == {0o600}
        assert "store.db-wal" in modes

    run(scenario())
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_an_empty_store_notices_an_entry_of_another_process_at_once(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        store = open_store(path, fallback=False)
        await store.put([entry("a", namespace="aliases")])
        await added(store, Receipt(id="r", at=1.0))
        assert not store.may_hold("turns")
        assert store.may_hold("aliases")
        assert writer(path, "w", 1).communicate(timeout=60)[0] == "0\n"
        assert store.may_hold("turns")
        assert await store.get([key("w-0")])
        await store.close()

    run(scenario())


def test_after_a_put_may_hold_is_true_for_every_process(place: Path | None) -> None:
    """Also if the file is opened by another name."""

    async def scenario() -> None:
        writing = open_store(place, fallback=False)
        reading = [writing]
        if place is not None:
            link = place.parent / "link.db"
            link.symlink_to(place)
            reading += [open_store(place, fallback=False), open_store(link, fallback=False)]
        assert not any(store.may_hold("turns") for store in reading)
        await writing.put([entry("a")])
        assert all(store.may_hold("turns") for store in reading)
        if place is not None:
            emptied(place)
        assert all(store.may_hold("turns") for store in reading), (
            "a namespace that had an entry may have one again"
        )
        for store in reading:
            await store.close()

    run(scenario())


def test_turns_are_found_in_a_file_without_its_marker(tmp_path: Path) -> None:
    """A file of an older Dragoman, or a copied one."""
    path = tmp_path / "store.db"

    async def put() -> None:
        store = open_store(path, fallback=False)
        await store.put([entry("a")])
        await store.close()

    async def scenario() -> None:
        one, other = open_store(path, fallback=False), open_store(path, fallback=False)
        assert one.may_hold("turns")
        emptied(path)
        third = open_store(path, fallback=False)
        assert not third.may_hold("turns")
        await other.put([entry("b")])
        assert third.may_hold("turns")
        for store in (one, other, third):
            await store.close()

    run(put())
    sign = tmp_path / "store.db-turns"
    sign.unlink()
    run(scenario())
    assert sign.exists()


def test_a_replaced_file_is_checked_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scenario() -> None:
        old = open_store(path, fallback=False)
        assert not old.may_hold("turns")
        for file in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
            file.unlink()
        new = open_store(path, fallback=False)
        assert not new.may_hold("turns")
        await new.put([entry("a")])
        assert old.may_hold("turns")
        later = open_store(path, fallback=False)
        assert later.may_hold("turns")
        assert await later.get([key("a")])
        for store in (old, new, later):
            await store.close()

    run(scenario())


def test_a_put_fails_if_its_marker_cannot_be_written(tmp_path: Path) -> None:
    """Other processes would not look for such a turn, so the writer gets an error."""
    path = tmp_path / "store.db"

    async def scenario() -> None:
        store = open_store(path, fallback=False)
        (tmp_path / "store.db-turns").mkdir()
        with pytest.raises(StoreError, match=r"store\.db cannot be used"):
            await store.put([entry("a")])
        assert not await store.get([key("a")])
        await store.close()

    run(scenario())
