"""`/v1/models` with the models that upstreams list: answered quickly, and never an error."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web
from gateway_harness import Gateway, running, soon
from support.scripted_upstream import refused_url

from dragoman.config import loads
from dragoman.gateway.upstreams.model_list import ModelList, parse_list

OPENAI = {"object": "list", "data": [{"id": "gpt-9"}, {"id": "vendor/model"}, {"id": ""}, "junk"]}
GEMINI = {
    "models": [
        {"name": "models/gemini-9", "supportedGenerationMethods": ["generateContent"]},
        {"name": "models/embed-9", "supportedGenerationMethods": ["embedContent"]},
    ]
}


class Lists:
    """An upstream that lists models after a delay."""

    def __init__(self, body: Any, status: int = 200, wait: float = 0.0) -> None:
        self.body, self.status, self.wait = body, status, wait
        self.asked: list[web.Request] = []

    async def __aenter__(self) -> "Lists":
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        await asyncio.sleep(self.wait)
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        return web.Response(status=self.status, body=body)


def upstream(name: str, url: str, protocol: str = "openai-chat", more: str = "") -> str:
    return f'[upstreams.{name}]\nprotocol = "{protocol}"\nbase_url = "{url}"\n{more}\n'


EVERYTHING = '[[routes]]\nmatch = "*"\nto = "{}/*"\n'


async def listed(here: Gateway, path: str = "/v1/models", **headers: str) -> list[str]:
    async with here.session.get(here.url + path, headers=headers) as response:
        assert response.status == 200
        value = await response.json()
        entries = value.get("data", value.get("models"))
        return [entry.get("id", entry.get("name", "")) for entry in entries]


def test_wildcard_routes_show_the_upstreams_models() -> None:
    async def scene() -> None:
        async with Lists(OPENAI) as first, Lists(GEMINI) as second:
            toml = EVERYTHING.format("one") + upstream("one", first.url, more='credential = "env:KEY"')
            toml += upstream("two", second.url, "gemini") + '[aliases]\nbest = "two/gemini-9"\n'
            async with running(toml, {"KEY": "k-one"}) as here:
                # Models that a route reaches have plain names, all others have the upstream's prefix.
                names = ["best", "two/gemini-9", "gpt-9", "vendor/model"]
                assert sorted(await listed(here)) == sorted(names)
                gemini = await listed(here, "/v1beta/models")
                assert sorted(gemini) == sorted(f"models/{name}" for name in names)
                assert len(first.asked) == len(second.asked) == 1, "it is kept for some time"
                assert first.asked[0].headers["authorization"] == "Bearer k-one"

    asyncio.run(scene())


def test_without_direct_names_only_routed_models_are_listed() -> None:
    async def scene() -> None:
        async with Lists(OPENAI) as first, Lists(GEMINI) as second:
            toml = "[server]\ndirect = false\n" + '[[routes]]\nmatch = "gpt-*"\nto = "one/*"\n'
            toml += upstream("one", first.url) + upstream("two", second.url, "gemini")
            async with running(toml) as here:
                assert await listed(here) == ["gpt-9"]
                assert second.asked == []

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"<html>", 200), (b"[" * 100_000, 200), (b"", 500), (b"{}", 404), ({"data": 7}, 200), (b"null", 200)],
)
def test_an_upstream_that_lists_nothing_is_left_out(body: Any, status: int) -> None:
    async def scene() -> None:
        async with Lists(body, status) as bad, Lists(OPENAI) as good:
            toml = upstream("bad", bad.url) + upstream("good", good.url) + upstream("gone", refused_url())
            async with running(toml) as here:
                assert await listed(here) == ["good/gpt-9", "good/vendor/model"]

    asyncio.run(scene())


def test_a_slow_upstream_is_listed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.upstreams.model_catalogue._PATIENCE", 0.05)

    async def scene() -> None:
        async with Lists(OPENAI, wait=0.3) as slow, Lists(GEMINI) as quick:
            toml = upstream("slow", slow.url) + upstream("quick", quick.url, "gemini")
            async with running(toml) as here:
                assert await listed(here) == ["quick/gemini-9"]
                known = here.state.upstreams.catalogue
                assert await soon(lambda: not known._asking, 5)  # pyright: ignore[reportPrivateUsage]
                assert len(await listed(here)) == 3
                assert len(slow.asked) == 1

    asyncio.run(scene())


def test_old_names_stay_during_a_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.gateway.upstreams.model_catalogue._FRESH", 0.0)
    monkeypatch.setattr("dragoman.gateway.upstreams.model_catalogue._FAILED", 0.0)

    async def scene() -> None:
        async with Lists(OPENAI) as one, running(EVERYTHING.format("one") + upstream("one", one.url)) as here:
            assert await listed(here) == ["gpt-9", "vendor/model"]
            one.status = 500
            known = here.state.upstreams.catalogue
            for times in range(2, 5):
                assert await listed(here) == ["gpt-9", "vendor/model"]
                assert await soon(lambda times=times: len(one.asked) == times, 5)
                assert await soon(lambda: not known._asking, 5)  # pyright: ignore[reportPrivateUsage]

    asyncio.run(scene())


def test_upstreams_that_are_not_asked() -> None:
    async def scene() -> None:
        async with Lists(OPENAI) as one:
            toml = upstream("listed", one.url, more='models = ["mine"]')
            toml += upstream("theirs", one.url, more='credential = "client"')
            async with running(toml) as here:
                assert await listed(here) == ["mine", "listed/mine"]
                assert one.asked == []

    asyncio.run(scene())


def test_the_list_is_limited() -> None:
    async def scene() -> None:
        many = {"data": [{"id": f"m-{number}"} for number in range(5000)]}
        async with Lists(many) as one, running(EVERYTHING.format("one") + upstream("one", one.url)) as here:
            assert len(await listed(here)) == 1000

    asyncio.run(scene())


def test_stopping_does_not_wait_for_a_list() -> None:
    async def scene() -> None:
        async with Lists(OPENAI, wait=30) as slow:
            async with running(upstream("slow", slow.url)) as here:
                asked = asyncio.ensure_future(listed(here))
                assert await soon(lambda: bool(slow.asked), 5)
                asked.cancel()
            assert here.state.upstreams.catalogue._asking == {}  # pyright: ignore[reportPrivateUsage]

    asyncio.run(scene())


def test_model_names_are_read_from_lists() -> None:
    assert parse_list(b'[{"id": "a"}, {"id": "a"}, {"name": "models/b"}]') == ModelList(("a", "b"))
    assert parse_list(b'{"data": [{"id": "a"}], "has_more": true}') == ModelList(("a",), whole=False)
    assert loads("[upstreams.ollama]", env={}).upstreams["ollama"].models == ()
