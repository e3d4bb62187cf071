"""Another program holds the store's file: answers do not wait for it, and nothing is lost when it lets go."""

import asyncio
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

from support.scripted_upstream import ScriptedUpstream
from troubles import Gateway, before

from dragoman.store import StoreError


async def respond(gateway: Gateway, **more: Any) -> tuple[int, dict[str, str], Any]:
    body = {"model": "c/demo", "input": "Hi", **more}
    async with gateway.session.post(gateway.url + "/v1/responses", json=body) as response:
        return response.status, dict(response.headers), await response.json()


async def exchanges(gateway: Gateway) -> tuple[int, Any]:
    async with gateway.session.get(gateway.url + "/exchanges") as response:
        return response.status, await response.json()


def test_answers_and_views_do_not_wait_and_what_was_missed_is_written(tmp_path: Path) -> None:
    path = tmp_path / "store.db"

    async def scene() -> None:
        async with before(ScriptedUpstream(), server=f'retries = 0\nstore = "{path}"') as gateway:
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN EXCLUSIVE")
            for _ in range(3):
                began = time.monotonic()
                status, headers, answer = await respond(gateway)
                assert status == 200
                assert "response-not-stored" in headers["x-dragoman-warnings"]
                status, listed = await exchanges(gateway)
                assert (status, len(listed["exchanges"]) > 0) == (200, True)
                assert time.monotonic() - began < 1
            other.execute("ROLLBACK")
            other.close()
            async with asyncio.timeout(5):
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
