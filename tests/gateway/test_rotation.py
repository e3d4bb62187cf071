"""Another process rotates a credential while requests run through the gateway: none of them fails."""

import asyncio
import sys
from collections import Counter
from pathlib import Path

from aiohttp import web
from credential_places import state_file, store
from gateway_harness import Got, ask, asking, post, running
from support.wires import PROTOCOLS
from test_credentials_rotation import ROTATOR

ROTATIONS = 60
CALLERS = 6
TAKEN = 8
ANSWER = {
    "id": "x",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "fine"}, "finish_reason": "stop"}],
}


class Issuer:
    """An upstream that accepts the current token and the one before it, and answers with a short delay."""

    def __init__(self) -> None:
        self.valid = ["", "token-0"]
        self.taken = Counter[str]()
        self.refused = 0
        self.delayed: set[str] = set()
        self._progress = asyncio.Condition()

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/issue", self.issue)
        app.router.add_post("/used", self.used)
        app.router.add_post("/v1/chat/completions", self.answer)
        return app

    async def issue(self, request: web.Request) -> web.Response:
        self.valid = [self.valid[1], await request.text()]
        return web.Response()

    async def used(self, request: web.Request) -> web.Response:
        """Answers when the rotator may continue."""
        enough = self.taken.total() + TAKEN
        async with self._progress:
            await self._progress.wait_for(lambda: self.taken.total() >= enough)
        return web.Response()

    async def answer(self, request: web.Request) -> web.Response:
        token = request.headers["authorization"].removeprefix("Bearer ")
        body = await request.json()
        asked = str(body["messages"][-1]["content"])
        if "slow" in asked and asked not in self.delayed:
            # The request arrives so late that its token has expired. Its retry does not.
            self.delayed.add(asked)
            await asyncio.sleep(0.1)
        if token not in self.valid:
            self.refused += 1
            return web.json_response({"error": {"message": f"{token} is not valid"}}, status=401)
        self.taken[token] += 1
        async with self._progress:
            self._progress.notify_all()
        return web.json_response(ANSWER)


def test_a_rotating_token_fails_no_request(tmp_path: Path) -> None:
    path = tmp_path / "state.vscdb"
    database = state_file(path)
    store(database, "token-0")
    credential = f'{{ sqlite = "{path}", key = "antigravityAuthStatus", field = "apiKey" }}'
    issuer, answers = asyncio.run(_rotated(path, credential))
    database.close()
    assert [got.body for got in answers if got.status != 200] == []
    assert {got.said["text"] for got in answers} == {"fine"}
    assert len(answers) > ROTATIONS
    assert issuer.valid[1] == f"token-{ROTATIONS}"
    assert len(issuer.taken) > ROTATIONS / 2
    assert issuer.refused > 0, "no request was late, so the rule was not tested"


async def _rotated(path: Path, credential: str) -> tuple[Issuer, list[Got]]:
    issuer = Issuer()
    runner = web.AppRunner(issuer.app(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    toml = (
        "[server]\nretries = 0\n[upstreams.up]\nprotocol = 'openai-chat'\n"
        f"base_url = 'http://127.0.0.1:{port}/v1'\ncredential = {credential}\n"
    )
    answers: list[Got] = []
    async with running(toml) as gateway:
        rotator = await asyncio.create_subprocess_exec(
            sys.executable, "-c", ROTATOR, str(path), str(port), str(ROTATIONS)
        )

        async def caller(number: int) -> None:
            client = PROTOCOLS[number % 4]
            while rotator.returncode is None:
                # One of them is always late.
                text = f"{'slow' if number == 1 else 'quick'} {len(answers)}"
                asked, body = asking(client, "up/m", stream=False, text=text)
                answers.append(await post(gateway, client, asked, body, stream=False))

        async with asyncio.timeout(30):
            await asyncio.gather(rotator.wait(), *(caller(number) for number in range(CALLERS)))
        assert rotator.returncode == 0
        answers.append(await ask(gateway, "anthropic", "up/m", stream=False))
    await runner.cleanup()
    return issuer, answers
