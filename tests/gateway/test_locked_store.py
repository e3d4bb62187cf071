"""Another program locks the store's file: answers do not wait, and nothing is lost after the lock."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from gateway_harness import Gateway, before, soon
from support.scripted_upstream import ScriptedUpstream

from dragoman.store import StoreError
from dragoman.store.sqlite import store as store_sqlite


async def respond(gateway: Gateway, **more: Any) -> tuple[int, dict[str, str], Any]:
    body = {"model": "c/demo", "input": "Hi", **more}
    async with gateway.session.post(gateway.url + "/v1/responses", json=body) as response:
        return response.status, dict(response.headers), await response.json()


async def exchanges(gateway: Gateway) -> tuple[int, Any]:
    async with gateway.session.get(gateway.url + "/exchanges") as response:
        return response.status, await response.json()


def test_answers_and_views_do_not_wait_for_a_locked_store_and_missed_writes_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"

    async def scene() -> None:
        async with before(ScriptedUpstream(), server=f'retries = 0\nstore = "{path}"') as gateway:
            store: Any = gateway.state.store
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN EXCLUSIVE")
            for _ in range(3):
                status, headers, answer = await respond(gateway)
                assert status == 200
                assert "response-not-stored" in headers["x-dragoman-warnings"]
                status, listed = await exchanges(gateway)
                assert (status, len(listed["exchanges"]) > 0) == (200, True)
                # Only the first write may wait for the lock. Any other wait would now outlast the test.
                assert await soon(lambda: store._worker.write_problem != "", within=30)
                monkeypatch.setattr(store_sqlite, "_MAX_WAIT", 3600)
            other.execute("ROLLBACK")
            other.close()
            async with asyncio.timeout(30):
                while (await respond(gateway, previous_response_id=answer["id"]))[0] != 200:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    asyncio.run(scene())
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM receipts").fetchone()[0] >= 4
    database.close()


def test_a_store_that_cannot_be_read_is_a_clear_503() -> None:
    async def scene() -> None:
        async with before(ScriptedUpstream()) as gateway:

            async def fails(asked: Any) -> Any:
                if asked == []:
                    return {}
                raise StoreError("the store x.db cannot be used: another program has locked it")

            gateway.state.store.get = gateway.state.store.receipts = fails  # type: ignore[method-assign]
            status, said = await exchanges(gateway)
            assert status == 503
            assert "another program has locked it" in json.dumps(said)
            status, _, said = await respond(gateway, previous_response_id="resp_1")
            assert status == 503
            assert "another program has locked it" in json.dumps(said)
            assert (await respond(gateway))[0] == 200

    asyncio.run(scene())
