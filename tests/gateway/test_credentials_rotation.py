"""A token that is rotated without pause by another process, under load: no request fails."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web
from credential_places import state_file, store

from dragoman.credentials import BoundCredential, Refused, Token, open_credential, parse, with_fresh

ROTATIONS = 300
CALLERS = 200

ROTATOR = """
import http.client, json, sqlite3, sys, time

path, port, rotations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
database = sqlite3.connect(path, isolation_level=None, timeout=30)
issuer = http.client.HTTPConnection("127.0.0.1", port)
for number in range(1, rotations + 1):
    token = f"token-{number}"
    issuer.request("POST", "/issue", token)  # minted first, written down second, as every program does
    issuer.getresponse().read()
    value = json.dumps({"name": "A", "apiKey": token})
    database.execute("INSERT INTO ItemTable VALUES ('antigravityAuthStatus', ?)", (value,))
    time.sleep(0.005)
"""


class FakeUpstream:
    """Takes the current token and the one before it, and no other."""

    def __init__(self) -> None:
        self.valid = ["", "token-0"]
        self.taken = Counter[str]()
        self.refused = 0

    async def issue(self, request: web.Request) -> web.Response:
        self.valid = [self.valid[1], await request.text()]
        return web.Response()

    async def answer(self, request: web.Request) -> web.Response:
        token = request.headers["authorization"].removeprefix("Bearer ")
        if token not in self.valid:
            self.refused += 1
            return web.Response(status=401)
        self.taken[token] += 1
        return web.Response(text="fine")


@asynccontextmanager
async def serving(upstream: FakeUpstream) -> AsyncGenerator[int]:
    app = web.Application()
    app.router.add_post("/issue", upstream.issue)
    app.router.add_post("/v1/chat/completions", upstream.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def test_hundreds_of_rotations_under_hundreds_of_callers_fail_no_request(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    database = state_file(path)
    store(database, "token-0")
    upstream = FakeUpstream()
    failed: list[Refused] = []

    async def scenario() -> None:
        spec = parse({"sqlite": str(path), "key": "antigravityAuthStatus", "field": "apiKey"})
        source = open_credential(spec, name="antigravity")
        async with (
            serving(upstream) as port,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        ):
            base_url = f"http://127.0.0.1:{port}/v1"
            url = f"{base_url}/chat/completions"

            async def call(token: Token) -> None:
                headers = BoundCredential(token, base_url, "openai-chat").headers(url)
                async with session.post(url, headers=headers) as answer:
                    if answer.status == 401:
                        raise Refused("HTTP 401")
                    assert await answer.text() == "fine"

            async def caller() -> None:
                while rotator.returncode is None:
                    await asyncio.sleep(random.random())
                    try:
                        await with_fresh(source, call)
                    except Refused as refused:
                        failed.append(refused)

            rotator = await asyncio.create_subprocess_exec(
                sys.executable, "-c", ROTATOR, str(path), str(port), str(ROTATIONS)
            )
            await asyncio.gather(rotator.wait(), *(caller() for _ in range(CALLERS)))
            assert rotator.returncode == 0
            await with_fresh(source, call)

    asyncio.run(scenario())
    database.close()
    assert failed == []
    assert upstream.valid[1] == f"token-{ROTATIONS}"
    assert upstream.taken[f"token-{ROTATIONS}"]
    assert len(upstream.taken) > ROTATIONS / 4
    assert upstream.taken.total() > CALLERS
