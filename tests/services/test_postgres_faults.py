"""PostgreSQL fails under a running gateway: exchanges go on, and receipts wait or are counted as lost."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import services
from support import older_stores
from support.plain_gateway import asked, before, got, settled, soon
from support.scripted_upstream import ScriptedUpstream
from support.store_contract import NOON, Clock, added, entry, receipts

from dragoman.credentials.secret import Secret
from dragoman.store import (
    EntryKey,
    Receipt,
    ReceiptQuery,
    Retention,
    RetentionRule,
    Store,
    StoreError,
    UsageQuery,
    open_store,
    store_status,
)  # fmt: skip
from dragoman.store.postgres import schema
from dragoman.store.postgres import writer as store_writer
from dragoman.store.postgres.schema import MIGRATIONS


@pytest.fixture
def own() -> Iterator[services.Postgres]:
    """A PostgreSQL that the test may kill."""
    server = services.Postgres()
    try:
        server.start()
        yield server
    finally:
        server.close()


def config(url: str) -> str:
    return f'retries = 0\nstore = "{url}"'


def one(url: str, sql: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(sql.encode()).fetchone()
        return row[0] if row else None


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def agree(url: str, count: int) -> None:
    """As many receipts as exchanges, and the sums say the same."""
    assert one(url, "SELECT count(*) FROM dragoman.receipts") == count
    assert one(url, "SELECT sum(requests) FROM dragoman.usage") == count


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_under_load_loses_nothing(own: services.Postgres, end: str) -> None:
    async def scene() -> int:
        asks = 0
        async with before(ScriptedUpstream(), server=config(own.url())) as gateway:
            over = asyncio.Event()

            async def client() -> int:
                done = 0
                while not over.is_set():
                    await asked(gateway)
                    done += 1
                return done

            clients = [asyncio.ensure_future(client()) for _ in range(3)]
            assert await soon(lambda: len(gateway.state.observed.ledger.pending) > 0, 20)  # the load is there
            await asyncio.to_thread(getattr(own, end))
            await asked(gateway, 3)
            assert await soon(lambda: bool(gateway.state.store.problem), 10)
            assert (await got(gateway, "/healthz"))["store"] == "failing"
            await asyncio.to_thread(own.start)
            assert await soon(lambda: not gateway.state.store.problem, 30)
            over.set()
            asks = sum(await asyncio.gather(*clients)) + 3
            await settled(gateway)
            health = await got(gateway, "/healthz")
            assert (health["store"], health["receipts_lost"]) == ("ok", 0)
        return asks

    agree(own.url(), asyncio.run(scene()))


def test_a_gateway_starts_without_its_database_and_uses_it_later(
    own: services.Postgres, caplog: pytest.LogCaptureFixture
) -> None:
    own.stop()

    async def scene() -> None:
        async with before(ScriptedUpstream(), server=config(own.url())) as gateway:
            await asked(gateway, 5)
            listed = await got(gateway, "/exchanges", 503)
            assert "cannot be reached: check that it runs" in str(listed)
            await asyncio.to_thread(own.start)
            await settled(gateway)
            assert len((await got(gateway, "/exchanges"))["exchanges"]) == 5
            assert (await got(gateway, "/healthz"))["store"] == "ok"

    with caplog.at_level(logging.DEBUG):
        asyncio.run(scene())
    agree(own.url(), 5)
    assert "cannot be reached" in caplog.text
    assert own.password not in caplog.text


def test_what_waits_has_a_bound_and_what_is_lost_is_counted(
    own: services.Postgres, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(store_writer, "_MAX_WAITING_BYTES", 20_000)

    async def scene() -> int:
        async with before(ScriptedUpstream(), server=config(own.url())) as gateway:
            await asked(gateway, 2)
            await settled(gateway)
            await asyncio.to_thread(own.kill)
            ledger = gateway.state.observed.ledger
            count = 2
            while not ledger.lost:
                await asked(gateway, 10)
                count += 10
                assert count < 2000
                # The next ones are another batch: batches wait whole, or are lost whole.
                assert await soon(lambda: not ledger._gathered, 20)
            assert (await got(gateway, "/healthz"))["receipts_lost"] == ledger.lost
            await asyncio.to_thread(own.start)
            await settled(gateway)
            lost = (await got(gateway, "/healthz"))["receipts_lost"]
            assert f"dragoman_receipts_lost_total {float(lost)}" in await got(gateway, "/metrics")
            assert (await got(gateway, "/exchanges?limit=1"))["lost"] == lost
            assert 0 < lost < count - 2
            return count - lost

    with caplog.at_level(logging.WARNING):
        kept = asyncio.run(scene())
    agree(own.url(), kept)
    assert "receipts are lost: the store postgresql://dragoman@127.0.0.1" in caplog.text


def test_receipts_wait_for_a_read_only_database(own: services.Postgres) -> None:
    """As after a failover, when the old primary is still the one that answers."""

    async def scene() -> None:
        async with before(ScriptedUpstream(), server=config(own.url())) as gateway:
            await asked(gateway, 2)
            await settled(gateway)
            read_only = "ALTER SYSTEM SET default_transaction_read_only = "
            run(own.url(), read_only + "on", "SELECT pg_reload_conf()")
            shown = "SHOW default_transaction_read_only"
            assert await soon(lambda: one(own.url(), shown) == "on", 20)  # then all connections know it
            await asked(gateway, 3)
            assert await soon(lambda: "read-only replica" in gateway.state.store.problem, 20)
            run(
                own.url(),
                "SET default_transaction_read_only = off",
                read_only + "off",
                "SELECT pg_reload_conf()",
            )
            await settled(gateway)
            assert (await got(gateway, "/healthz"))["receipts_lost"] == 0

    asyncio.run(scene())
    agree(own.url(), 5)


def test_receipts_wait_for_a_right_that_the_user_lost(database: str, postgres: services.Postgres) -> None:
    guest = f"guest_{database.rpartition('/')[2]}"
    url = database.replace("//dragoman:", f"//{guest}:")
    password = postgres.password

    async def scene() -> None:
        owner = open_store(Secret(database), now=Clock(), fallback=False)
        await added(owner, Receipt("a", NOON))
        await owner.close()
        run(
            database,
            f"CREATE ROLE {guest} LOGIN PASSWORD '{password}'",
            f"GRANT USAGE ON SCHEMA dragoman TO {guest}",
            f"GRANT ALL ON ALL TABLES IN SCHEMA dragoman TO {guest}",
            f"REVOKE INSERT ON dragoman.receipts FROM {guest}",
        )
        store = open_store(Secret(url), now=Clock(), fallback=False)
        job = store.add_receipts(lambda: [Receipt("b", NOON)])
        assert await soon(lambda: "the user may not do this" in store.problem, 20)
        run(database, f"GRANT INSERT ON dragoman.receipts TO {guest}")
        await asyncio.wrap_future(job)
        await store.close()
        run(database, f"DROP OWNED BY {guest}", f"DROP ROLE {guest}")

    asyncio.run(scene())
    agree(database, 2)


def test_a_recreated_database_gets_its_tables_again(database: str) -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream(), server=config(database)) as gateway:
            await asked(gateway, 2)
            await settled(gateway)
            run(database, "DROP SCHEMA dragoman CASCADE")
            await asked(gateway, 3)
            await settled(gateway)
            assert len((await got(gateway, "/exchanges"))["exchanges"]) == 3

    asyncio.run(scene())
    agree(database, 3)


_WRITER = """
import asyncio, sys
from dragoman.credentials.secret import Secret
from dragoman.store import Receipt, open_store
async def main():
    store = open_store(Secret(sys.argv[1]), fallback=False, now=lambda: 1.7e9)
    for n in range(int(sys.argv[3])):
        made = [Receipt(f"{sys.argv[2]}-{n}-{m}", 1.7e9, session=f"s{m}") for m in range(20)]
        await asyncio.wrap_future(store.add_receipts(lambda: made))
        print(n, flush=True)
    await store.close()
asyncio.run(main())
"""


def writer(url: str, name: str, count: int) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _WRITER, url, name, str(count)], stdout=subprocess.PIPE, text=True
    )


def test_gateways_that_start_at_the_same_time_make_the_tables_once(database: str) -> None:
    writers = [writer(database, str(n), 10) for n in range(4)]
    for process in writers:
        process.communicate(timeout=60)
    assert [process.returncode for process in writers] == [0] * 4
    assert one(database, "SELECT count(*) FROM dragoman.migrations") == len(MIGRATIONS)
    agree(database, 4 * 10 * 20)
    assert one(database, "SELECT sum(requests) FROM dragoman.usage_by_session") == 800


def test_a_gateway_killed_while_it_writes_leaves_receipts_and_sums_that_agree(database: str) -> None:
    process = writer(database, "k", 100_000)
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(20)]
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    told = 20 * len(said)
    count = one(database, "SELECT count(*) FROM dragoman.receipts")
    assert count >= told
    agree(database, count)


def test_receipts_of_any_day_are_kept_and_the_lists_are_in_order(database: str) -> None:
    """A clock that jumps makes receipts of days that have no partition yet."""

    async def scene() -> None:
        clock = Clock()
        store = open_store(Secret(database), now=clock, fallback=False)
        times = [0.0, NOON, 4e9, -5.0 * 86_400, 1e11, NOON - 1]
        await asyncio.gather(*(added(store, Receipt(f"r{at}", at)) for at in times))
        listed = await store.receipts(ReceiptQuery(since=-1e12))
        assert [receipt.at for receipt in listed] == sorted(times, reverse=True)
        assert (await store.receipt("r4000000000.0")) == Receipt("r4000000000.0", 4e9)
        await store.close()

    asyncio.run(scene())


def test_the_size_is_limited_and_whole_days_are_dropped(database: str) -> None:
    async def scene() -> None:
        retention = Retention(receipts=RetentionRule(seconds=1e9, rows=1 << 62), bytes=6 << 20)
        store = open_store(Secret(database), now=Clock(), retention=retention, fallback=False)
        for day in range(6):
            at = NOON - 86_400 * day
            await added(store, *(Receipt(f"{day}-{n}", at, value=os.urandom(20_000)) for n in range(100)))
        assert (await store.prune()).receipts > 0
        assert (await store.status()).bytes < 8 << 20
        left = await store.receipts(ReceiptQuery(limit=1000))
        assert len(left) % 100 == 0
        assert left[0].at == NOON
        (row,) = await store.usage(UsageQuery())
        assert row.requests == 600
        await store.close()

    asyncio.run(scene())


def test_unusable_addresses_are_reported_without_their_password(postgres: services.Postgres) -> None:
    good = postgres.url()
    wrong = good.replace(good.partition("@")[0], "postgresql://dragoman:geheim")
    cases = {
        wrong: "refuses the user or the password",
        postgres.url("nowhere"): "the database does not exist: create it",
        "postgresql://dragoman:geheim@127.0.0.1:1/x": "cannot be reached: check that it runs",
        "postgresql://dragoman:geheim@[::1/x": "is not an address of PostgreSQL",
    }
    for url, says in cases.items():
        for ask in (
            lambda url=url: open_store(Secret(url), fallback=False),
            lambda url=url: store_status(Secret(url)),
        ):
            with pytest.raises(StoreError, match=says) as raised:
                ask()
            assert "geheim" not in raised.value.message
            assert postgres.password not in raised.value.message


def test_a_newer_dragoman_may_share_the_database_only_if_it_says_so(database: str) -> None:
    async def close(store: Store) -> None:
        await store.close()

    asyncio.run(close(open_store(Secret(database), fallback=False)))
    newer = len(MIGRATIONS) + 1
    run(database, f"INSERT INTO dragoman.migrations (version, oldest) VALUES ({newer}, {newer - 1})")
    asyncio.run(close(open_store(Secret(database), fallback=False)))
    run(database, f"UPDATE dragoman.migrations SET oldest = {newer} WHERE version = {newer}")
    with pytest.raises(StoreError, match="was changed by a newer Dragoman"):
        open_store(Secret(database), fallback=False)


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_tables_of_any_older_version_keep_all_they_have(
    version: int, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened() -> Store:
        return open_store(Secret(database), now=lambda: older_stores.AT + 2, fallback=False)

    async def made() -> None:
        await opened().close()

    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", MIGRATIONS[:version])
        asyncio.run(made())
    with psycopg.connect(database, autocommit=True) as connection:

        def columns(table: str) -> list[str]:
            found = connection.execute(
                "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0",
                (f"dragoman.{table}",),
            )
            return [name for (name,) in found.fetchall()]

        def insert(table: str, row: dict[str, object]) -> None:
            marks = ", ".join(["%s"] * len(row))
            sql = f"INSERT INTO dragoman.{table} ({', '.join(row)}) VALUES ({marks})"
            connection.execute(sql.encode(), [*row.values()])

        day = int(older_stores.AT // 86_400)
        connection.execute(
            f"""CREATE TABLE IF NOT EXISTS dragoman.receipts_day_{day} PARTITION OF dragoman.receipts
                FOR VALUES FROM ({day * 86_400}) TO ({(day + 1) * 86_400})""".encode()
        )
        filled = older_stores.fill(columns, insert)

    async def scenario() -> None:
        for _ in range(2):  # the second time there is nothing to do
            store = opened()
            await older_stores.check(store, filled)
            await store.close()

    asyncio.run(scenario())


def test_a_search_reads_only_the_days_and_indexes_that_it_needs(database: str) -> None:
    async def scene() -> None:
        store = open_store(Secret(database), now=Clock(), fallback=False)
        await added(store, *receipts(500))
        await store.close()

    asyncio.run(scene())
    run(database, "ANALYZE")

    def plan(where: str) -> str:
        sql = f"EXPLAIN SELECT id FROM dragoman.receipts WHERE {where} ORDER BY at DESC, id DESC LIMIT 10"
        with psycopg.connect(database) as connection:
            connection.execute("SET enable_seqscan = off")
            return "\n".join(row[0] for row in connection.execute(sql.encode()).fetchall())

    day = int(NOON // 86_400)
    assert "Sort" not in plan("true")
    recent = plan(f"at >= {NOON - 3600}")
    assert f"receipts_day_{day}" in recent
    assert f"receipts_day_{day - 2}" not in recent
    assert "key_at_id" in plan("key = 'ada'")
    assert "session_at_id" in plan("session = 's1'")


def test_a_put_that_is_no_longer_waited_for_is_made(database: str) -> None:
    async def scene() -> None:
        store = open_store(Secret(database), fallback=False)
        task = asyncio.ensure_future(store.put([entry("a")]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with asyncio.timeout(5):
            while not await store.get([EntryKey("turns", "a")]):  # noqa: ASYNC110 - another machine may have put it
                await asyncio.sleep(0.02)
        await store.close()
        with pytest.raises(StoreError, match="is closed"):
            await store.put([entry("b")])
        await store.close()

    asyncio.run(scene())


def test_a_failing_job_does_not_fail_others(database: str) -> None:
    async def scene() -> None:
        store = open_store(Secret(database), fallback=False, now=Clock())
        wrong: Any = Receipt("wrong", NOON, status=10**30)

        def broken() -> list[Receipt]:
            raise ValueError("no receipt")

        makers: list[Callable[[], Any]] = [
            lambda: [Receipt("a", NOON)], lambda: [wrong], broken, lambda: [Receipt("b", NOON)]
        ]  # fmt: skip
        jobs = [asyncio.wrap_future(store.add_receipts(make)) for make in makers]
        results = await asyncio.gather(*jobs, return_exceptions=True)
        assert [type(result) for result in results] == [type(None), StoreError, ValueError, type(None)]
        assert {receipt.id for receipt in await store.receipts(ReceiptQuery())} == {"a", "b"}
        await store.close()

    asyncio.run(scene())
