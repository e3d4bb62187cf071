"""The store fails under a running gateway: exchanges go on, and every lost receipt is counted and told."""

import asyncio
import logging
import os
import shutil
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from support.plain_gateway import Gateway, asked, before, got, settled, soon
from support.scripted_upstream import ScriptedUpstream

from dragoman.store import Receipt, ReceiptQuery, Retention, RetentionRule, StoredKey, open_store
from dragoman.store.clock_jumps import ClockJumps
from dragoman.store.sqlite import file_identity
from dragoman.store.sqlite import worker as store_worker


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_identity, "_INTERVAL", 0.0)
    for code in store_worker._RETRIES:
        monkeypatch.setitem(store_worker._RETRIES, code, 0.05)


def damage(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))


def move_away(path: Path) -> None:
    for ending in ("", "-wal", "-shm"):
        if Path(f"{path}{ending}").exists():
            os.rename(f"{path}{ending}", f"{path}-damaged{ending}")


async def limit_pages(gateway: Gateway, more: int | None) -> None:
    """Let the file grow by `more` pages, as on a disk that is nearly full; None: as much as it likes."""
    store: Any = gateway.state.store

    def set_limit(connection: sqlite3.Connection) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + more if more is not None else 1 << 30}")

    await asyncio.wrap_future(store._worker.submit(set_limit, writes=False))


def test_a_full_disk_loses_nothing_if_space_is_freed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_worker, "_REPORT_AFTER", 0.1)

    async def scene() -> None:
        server = f'retries = 0\nstore = "{tmp_path / "store.db"}"'
        async with before(ScriptedUpstream(), server=server) as gateway:
            await limit_pages(gateway, 0)
            await asked(gateway, 30)
            assert await soon(lambda: bool(gateway.state.store.problem), 5)
            assert "the disk is full: free some space" in gateway.state.store.problem
            assert await soon(lambda: "what is to be written waits" in caplog.text)
            assert (await got(gateway, "/readyz"))["store"] == "failing"
            assert (await got(gateway, "/healthz"))["store"] == "failing"
            assert len((await got(gateway, "/exchanges"))["exchanges"]) == 30
            await limit_pages(gateway, None)
            await settled(gateway)
            health = await got(gateway, "/healthz")
            assert (health["store"], health["receipts_lost"]) == ("ok", 0)
            assert len(await gateway.state.store.receipts(ReceiptQuery())) == 30

    with caplog.at_level(logging.INFO):
        asyncio.run(scene())
    assert caplog.text.count("the disk is full") == 1
    assert "the store can be written again" in caplog.text


def test_receipts_wait_while_the_file_cannot_be_written(tmp_path: Path) -> None:
    async def scene() -> None:
        server = f'retries = 0\nstore = "{tmp_path / "store.db"}"'
        async with before(ScriptedUpstream(), server=server) as gateway:
            store: Any = gateway.state.store

            async def read_only(on: int) -> None:
                job = store._worker.submit(lambda one: one.execute(f"PRAGMA query_only = {on}"), writes=False)
                await asyncio.wrap_future(job)

            await read_only(1)
            await asked(gateway, 3)
            assert await soon(lambda: "it is not writable: change its permissions" in store.problem)
            await read_only(0)
            await settled(gateway)
            assert (await got(gateway, "/healthz"))["receipts_lost"] == 0
            assert len(await store.receipts(ReceiptQuery())) == 3

    asyncio.run(scene())


@pytest.mark.parametrize("bound", ["_MAX_DEFERRED", "_MAX_DEFERRED_BYTES"])
def test_a_disk_that_stays_full_loses_the_oldest_receipts_and_says_how_many(
    bound: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_worker, bound, 0)

    async def scene() -> None:
        server = f'retries = 0\nstore = "{tmp_path / "store.db"}"'
        async with before(ScriptedUpstream(), server=server) as gateway:
            await limit_pages(gateway, 0)
            await asked(gateway, 30)
            await settled(gateway)
            lost = (await got(gateway, "/healthz"))["receipts_lost"]
            kept = len(await gateway.state.store.receipts(ReceiptQuery()))
            assert lost > 0
            assert lost + kept == 30
            assert f"dragoman_receipts_lost_total {float(lost)}" in await got(gateway, "/metrics")
            assert (await got(gateway, "/exchanges"))["lost"] == lost

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())
    said = [record.message for record in caplog.records if "receipts are lost" in record.message]
    assert len(said) == 1
    assert "the disk is full: free some space" in said[0]


def test_a_deleted_file_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "store.db"

    async def scene() -> None:
        async with before(ScriptedUpstream(), server=f'retries = 0\nstore = "{path}"') as gateway:
            await asked(gateway, 3)
            await settled(gateway)
            shutil.rmtree(path.parent)
            await asked(gateway, 4)
            await settled(gateway)
            assert len((await got(gateway, "/exchanges"))["exchanges"]) == 4
            assert (await got(gateway, "/healthz"))["receipts_lost"] == 0
        store = open_store(path, fallback=False)
        assert len(await store.receipts(ReceiptQuery())) == 4
        await store.close()

    asyncio.run(scene())


def test_a_replaced_file_is_read_without_a_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scene() -> None:
        store = open_store(path, fallback=False)
        await asyncio.wrap_future(store.add_receipts(lambda: [Receipt("old", 1.0)]))
        move_away(path)
        other = open_store(path, fallback=False)
        await other.put_key(StoredKey(name="ann", hash=b"#"))
        assert [key.name for key in await store.keys()] == ["ann"]
        assert await store.receipts(ReceiptQuery()) == []
        await store.close()
        await other.close()

    asyncio.run(scene())


def test_a_file_that_the_last_batch_opens_again_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scene() -> None:
        store: Any = open_store(path, fallback=False)
        reached, closing = threading.Event(), threading.Event()

        def make() -> list[Receipt]:
            reached.set()
            assert closing.wait(30)
            move_away(path)
            return [Receipt("r", 1.0)]

        added = store.add_receipts(make)
        assert await asyncio.to_thread(reached.wait, 30)
        end = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        closing.set()
        await end
        await asyncio.wrap_future(added)
        assert store._inline is None

    asyncio.run(scene())


def test_a_damaged_file_loses_receipts_until_it_is_moved_away(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scene() -> None:
        async with before(ScriptedUpstream(), server=f'retries = 0\nstore = "{path}"') as gateway:
            await asked(gateway, 3)
            await settled(gateway)
            with sqlite3.connect(path) as other:
                other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            other.close()
            damage(path)
            await asked(gateway, 5)
            await settled(gateway)
            health = await got(gateway, "/healthz")
            lost = health["receipts_lost"]
            assert lost > 0
            assert health["store"] == "failing"
            assert "it is damaged: move it away" in gateway.state.store.problem
            move_away(path)
            await asked(gateway, 2)
            await settled(gateway)
            health = await got(gateway, "/healthz")
            assert (health["store"], health["receipts_lost"]) == ("ok", lost)
            assert len(await gateway.state.store.receipts(ReceiptQuery())) == 2

    asyncio.run(scene())


def test_a_clock_that_jumps_ahead_deletes_nothing(tmp_path: Path) -> None:
    """Until it has run on for a while: a machine that woke up is right, one that lost its time is not."""
    clock = [1_000_000.0]

    async def scene() -> None:
        retention = Retention(receipts=RetentionRule(seconds=100))
        store = open_store(tmp_path / "s.db", now=lambda: clock[0], retention=retention, fallback=False)
        for jump in (0.0, 1e9, -1e9):
            clock[0] += jump
            made = [Receipt(f"{jump}", clock[0])]
            await asyncio.wrap_future(store.add_receipts(lambda made=made: made))
            await store.receipt(f"{jump}")  # the worker prunes after a write, before it reads
        found = [receipt.id for receipt in await store.receipts(ReceiptQuery())]
        assert found == ["1000000000.0", "0.0", "-1000000000.0"]
        await store.close()

    asyncio.run(scene())


def test_a_clock_that_runs_on_is_believed_again() -> None:
    jumps = ClockJumps()
    assert jumps.steady(0, 0)
    assert jumps.steady(60, 61), "no clock is exact"
    assert not jumps.steady(1e6, 62)
    assert not jumps.steady(1e6 + 100, 162)
    assert jumps.steady(1e6 + 700, 762)
    assert not jumps.steady(0, 763), "nor is one that jumps back"
