"""A token that is rotated without pause by another process, under load: no request fails."""

import asyncio
import random
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from aiohttp import web
from credential_places import state_file, store

from dragoman.credentials import (
    BoundCredential,
    CredentialSource,
    Refused,
    Token,
    open_credential,
    parse,
    with_fresh,
)

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
    """Takes the current token and the one before it, and no other."""

    def __init__(self) -> None:
        self.valid = ["", "token-0"]
        self.taken = Counter[str]()
        self.refused = 0
        self.progress = asyncio.Condition()

    async def issue(self, request: web.Request) -> web.Response:
        self.valid = [self.valid[1], await request.text()]
        return web.Response()

    async def used(self, request: web.Request) -> web.Response:
        """Answers when the rotator may go on."""
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
    """Callers that make requests and readers that only ask for the token, until `over` says so."""

    def __init__(self, source: CredentialSource, session: aiohttp.ClientSession, base_url: str) -> None:
        self.source = source
        self.session = session
        self.base_url = base_url
        self.failed: list[Refused] = []
        self.reads = 0

    async def request(self) -> None:
        # Some are so slow to leave that their token is not good any more; a second try is not.
        delays = iter([0.1 if random.random() < 0.05 else 0.0])

        async def call(token: Token) -> None:
            await asyncio.sleep(next(delays, 0.0))
            url = f"{self.base_url}/chat/completions"
            headers = BoundCredential(token, self.base_url, "openai-chat").headers(url)
            async with self.session.post(url, headers=headers) as answer:
                if answer.status == 401:
                    raise Refused("HTTP 401")
                assert await answer.text() == "fine"

        await with_fresh(self.source, call)

    async def caller(self, over: Callable[[], bool]) -> None:
        while not over():
            try:
                await self.request()
            except Refused as refused:
                self.failed.append(refused)

    async def reader(self, over: Callable[[], bool]) -> None:
        while not over():
            token = await self.source.token()
            assert token.secret is not None
            assert token.secret.reveal().startswith("token-")
            self.reads += 1
            await asyncio.sleep(random.random() / 2)


async def rotated_under_load(path: Path, source: CredentialSource) -> tuple[FakeUpstream, Load]:
    upstream = FakeUpstream()
    async with serving(upstream) as port, aiohttp.ClientSession() as session:
        load = Load(source, session, f"http://127.0.0.1:{port}/v1")
        rotator = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ROTATOR, str(path), str(port), str(ROTATIONS)
        )

        def over() -> bool:
            return rotator.returncode is not None

        crowd = [load.caller(over) for _ in range(CALLERS)] + [load.reader(over) for _ in range(READERS)]
        await asyncio.gather(rotator.wait(), *crowd)
        assert rotator.returncode == 0
        await load.request()
    return upstream, load


def test_hundreds_of_rotations_under_hundreds_of_readers_fail_no_request(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    database = state_file(path)
    store(database, "token-0")
    spec = parse({"sqlite": str(path), "key": "antigravityAuthStatus", "field": "apiKey"})
    upstream, load = asyncio.run(rotated_under_load(path, open_credential(spec, name="antigravity")))
    database.close()
    assert load.failed == []
    assert upstream.valid[1] == f"token-{ROTATIONS}"
    assert upstream.taken[f"token-{ROTATIONS}"]
    assert len(upstream.taken) > ROTATIONS / 2
    assert upstream.refused > 0, "none was late: the rule was not put to the test"
    assert load.reads > READERS
