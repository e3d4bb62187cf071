"""Another process rotates a token without pause under load: no request fails."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web
from credential_places import state_file, store

from dragoman.config import loads
from dragoman.config.types import UpstreamConfig
from dragoman.gateway.upstreams.keyring import Keyring

ROTATIONS = 250
CALLERS = 8
READERS = 200
TAKEN = 10
"""A token is replaced as soon as each caller may have used it once: as fast as this machine goes, but not
faster than any request can travel."""

ROTATOR = """
import http.client, json, sqlite3, sys

path, port, rotations = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
database = sqlite3.connect(path, isolation_level=None, timeout=30)
issuer = http.client.HTTPConnection("127.0.0.1", port)
for number in range(1, rotations + 1):
    token = f"token-{number}"
    value = json.dumps({"name": "A", "apiKey": token})
    issuer.request("POST", "/issue", token)  # minted first, written down second, as every program does
    issuer.getresponse().read()
    database.execute("INSERT INTO ItemTable VALUES ('antigravityAuthStatus', ?)", (value,))
    issuer.request("POST", "/used")
    issuer.getresponse().read()
"""


class FakeUpstream:
    """Accepts only the current token and the one before it."""

    def __init__(self) -> None:
        self.valid = ["", "token-0"]
        self.taken = Counter[str]()
        self.refused = 0
        self.progress = asyncio.Condition()

    async def issue(self, request: web.Request) -> web.Response:
        self.valid = [self.valid[1], await request.text()]
        return web.Response()

    async def used(self, request: web.Request) -> web.Response:
        """Answers when the rotator may continue."""
        enough = self.taken.total() + TAKEN
        async with self.progress:
            await self.progress.wait_for(lambda: self.taken.total() >= enough)
        return web.Response()

    async def answer(self, request: web.Request) -> web.Response:
        token = request.headers["authorization"].removeprefix("Bearer ")
        if token not in self.valid:
            self.refused += 1
            return web.Response(status=401)
        self.taken[token] += 1
        async with self.progress:
            self.progress.notify_all()
        return web.Response(text="fine")


@asynccontextmanager
async def serving(upstream: FakeUpstream) -> AsyncGenerator[int]:
    app = web.Application()
    app.router.add_post("/issue", upstream.issue)
    app.router.add_post("/used", upstream.used)
    app.router.add_post("/v1/chat/completions", upstream.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


class Load:
    """Callers that send requests and readers that only build headers, until `over` is true."""

    def __init__(self, upstream: UpstreamConfig, session: aiohttp.ClientSession) -> None:
        self.keyring = Keyring({})
        self.upstream = upstream
        self.url = upstream.url("/v1/chat/completions")
        self.session = session
        self.reads = 0

    async def request(self) -> None:
        headers = await self.keyring.headers(self.upstream, self.url)
        # Some requests are sent so late that their token has expired. A retry is not.
        await asyncio.sleep(0.1 if random.random() < 0.05 else 0.0)
        if not await self._is_taken(headers):
            headers = await self.keyring.headers(self.upstream, self.url, refused=headers)
            assert await self._is_taken(headers), "the token of the second read was refused, too"

    async def _is_taken(self, headers: Mapping[str, str]) -> bool:
        async with self.session.post(self.url, headers=headers) as answer:
            return answer.status == 200 and await answer.text() == "fine"

    async def caller(self, over: Callable[[], bool]) -> None:
        while not over():
            await self.request()

    async def reader(self, over: Callable[[], bool]) -> None:
        while not over():
            headers = await self.keyring.headers(self.upstream, self.url)
            assert headers["authorization"].startswith("Bearer token-")
            self.reads += 1
            await asyncio.sleep(random.random() / 2)


CONFIG = """
[upstreams.antigravity]
protocol = "openai-chat"
base_url = "http://127.0.0.1:{port}/v1"
credential = {{ sqlite = '{path}', key = "antigravityAuthStatus", field = "apiKey" }}
"""


async def rotated_under_load(path: Path) -> tuple[FakeUpstream, Load]:
    upstream = FakeUpstream()
    async with serving(upstream) as port, aiohttp.ClientSession() as session:
        config = loads(CONFIG.format(port=port, path=path))
        load = Load(config.upstreams["antigravity"], session)
        rotator = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ROTATOR, str(path), str(port), str(ROTATIONS)
        )

        def over() -> bool:
            return rotator.returncode is not None

        crowd = [load.caller(over) for _ in range(CALLERS)] + [load.reader(over) for _ in range(READERS)]
        await asyncio.gather(rotator.wait(), *crowd)
        assert rotator.returncode == 0
        await load.request()
        await load.keyring.close()
    return upstream, load


def test_hundreds_of_rotations_under_hundreds_of_readers_fail_no_request(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    database = state_file(path)
    store(database, "token-0")
    upstream, load = asyncio.run(rotated_under_load(path))
    database.close()
    assert upstream.valid[1] == f"token-{ROTATIONS}"
    assert upstream.taken[f"token-{ROTATIONS}"]
    assert len(upstream.taken) > ROTATIONS / 2
    assert upstream.refused > 0, "no request was late, so the rule was not tested"
    assert load.reads > READERS
