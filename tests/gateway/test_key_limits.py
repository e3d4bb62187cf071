"""Limits of keys and teams: requests, tokens, running requests, budgets; over HTTP, in every protocol."""

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from google import genai
from support.gateways import Gateway, Loop, gateway
from support.plain_http import Got, call, post
from support.scripted_upstream import (
    FOREVER,
    Reply,
    ScriptedUpstream,
    Wait,
    body,
    in_background,
    status,
    stream,
)

from dragoman.config import loads
from dragoman.gateway.state import State

NOON = 1_800_014_400.0  # 2027-01-15T12:00:00Z
SECRET, OTHER, ADMIN = "research-secret-1234", "other-secret-1234", "admin-secret-1234"
CHAT = {"model": "demo", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 100}
ANSWER = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "demo",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 60, "completion_tokens": 40, "total_tokens": 100},
}


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def upstream() -> Iterator[ScriptedUpstream]:
    with in_background() as served:
        served.otherwise = body(json.dumps(ANSWER).encode())
        yield served


@pytest.fixture
def clock() -> Clock:
    return Clock()


class Served:
    """A gateway whose key `research` has limits."""

    def __init__(self, gateway: Gateway, clock: Clock, upstream: ScriptedUpstream) -> None:
        self.gateway, self.clock, self.upstream = gateway, clock, upstream
        self.url = gateway.url

    def ask(self, key: str = SECRET, **more: Any) -> Got:
        return post(f"{self.url}/v1/chat/completions", {**CHAT, **more}, x_api_key=key)

    def statuses(self, count: int, **more: Any) -> list[int]:
        return [self.ask(**more).status for _ in range(count)]


def text_of(upstream: ScriptedUpstream, limits: str, more: str = "", store: Path | None = None) -> str:
    return f"""
        [server]
        keys = ["{ADMIN}"]
        retries = 0
        {f'store = "{store}"' if store else ""}
        [upstreams.up]
        protocol = "openai-chat"
        base_url = "{upstream.url}"
        credential = "none"
        [keys.research]
        secret = "{SECRET}"
        team = "science"
        {limits}
        [keys.other]
        secret = "{OTHER}"
        team = "science"
        {more}
        [prices]
        demo = {{ input = 10_000, output = 10_000 }}  # a cent for each token
    """


@contextmanager
def limited(
    loop: Loop,
    upstream: ScriptedUpstream,
    clock: Clock,
    limits: str,
    more: str = "",
    store: Path | None = None,
) -> Iterator[Served]:
    async def made() -> State:
        config = loads(text_of(upstream, limits, more, store), env={})
        return State(config, env={}, clock=clock)

    with gateway(loop.run(made()), loop) as served:
        yield Served(served, clock, upstream)


def message(got: Got) -> str:
    return got.json["error"]["message"]


def test_requests_per_minute(loop: Loop, upstream: ScriptedUpstream, clock: Clock) -> None:
    with limited(loop, upstream, clock, 'rate = "2/min"') as served:
        clock.now += 18
        assert served.statuses(4) == [200, 200, 429, 429]
        refused = served.ask()
        assert refused.headers["retry-after"] == "42"
        assert message(refused) == (
            "key research: the limit of 2 requests/min is reached; "
            "it resets at 2027-01-15T12:01:00Z (in 42 s)"
        )
        assert served.ask(OTHER).status == 200
        assert served.ask(ADMIN).status == 200
        clock.now += 42
        assert served.statuses(3) == [200, 200, 429]
        assert len(upstream.seen) == 6


def test_each_sdk_sees_its_own_error(loop: Loop, upstream: ScriptedUpstream, clock: Clock) -> None:
    with limited(loop, upstream, clock, 'budget = "100 tokens/day"') as served:
        assert served.ask().status == 200
        said = [{"role": "user", "content": "Hello"}]
        with openai.OpenAI(base_url=f"{served.url}/v1", api_key=SECRET) as chat:
            with pytest.raises(openai.RateLimitError) as told:
                chat.chat.completions.create(model="demo", messages=said)  # type: ignore[arg-type]
            assert told.value.code == "insufficient_quota"
            with pytest.raises(openai.RateLimitError, match="resets at 2027-01-16T00:00:00Z"):
                chat.responses.create(model="demo", input="Hello")
        with (
            anthropic.Anthropic(base_url=served.url, api_key=SECRET) as messages,
            pytest.raises(anthropic.RateLimitError, match="100 tokens/day") as refused,
        ):
            messages.messages.create(model="demo", max_tokens=10, messages=said)  # type: ignore[arg-type]
        assert refused.value.response.headers["retry-after"] == "43200"
        options = genai.types.HttpOptions(base_url=served.url)
        with (
            genai.Client(api_key=SECRET, http_options=options) as gemini,
            pytest.raises(genai.errors.ClientError, match="RESOURCE_EXHAUSTED"),
        ):
            gemini.models.generate_content(model="demo", contents="Hello")
        # No SDK has tried again: a wait until tomorrow is not for a program.
        refusals = [e for e in exchanges(served) if e["status"] == 429]
        assert len(refusals) == 4


def exchanges(served: Served) -> list[dict[str, Any]]:
    return call(f"{served.url}/exchanges", x_api_key=ADMIN).json["exchanges"]


def test_tokens_per_minute_count_what_was_used(loop: Loop, upstream: ScriptedUpstream, clock: Clock) -> None:
    with limited(loop, upstream, clock, 'tokens = "250/min"') as served:
        # Each may use more than 32,000 tokens, and uses 100.
        assert served.statuses(4, max_tokens=32_000) == [200, 200, 200, 429]
        clock.now += 60
        assert served.ask().status == 200


def test_a_budget_in_money(loop: Loop, upstream: ScriptedUpstream, clock: Clock) -> None:
    with limited(loop, upstream, clock, 'budget = "2.50/month"') as served:
        assert served.statuses(4) == [200, 200, 200, 429]
        assert message(served.ask()) == (
            "key research: the limit of $2.5/month is reached ($3.0000 used); "
            "it resets at 2027-02-01T00:00:00Z (in 1425600 s)"
        )
        clock.now += 1_425_600
        assert served.ask().status == 200


def test_a_warning_from_80_percent_on(loop: Loop, upstream: ScriptedUpstream, clock: Clock) -> None:
    with limited(loop, upstream, clock, 'budget = ["5/month", "10k tokens/day"]\nrate = "100/min"') as served:
        answers = [served.ask() for _ in range(5)]
        warnings = [got.headers.get("x-dragoman-limit-warning") for got in answers]
        near = "key research: 80% of $5/month used, resets 2027-02-01T00:00:00Z"
        assert warnings == [None, None, None, None, near]
        streamed = served.ask(OTHER, stream=True)
        assert "x-dragoman-limit-warning" not in streamed.headers
        id = answers[-1].headers["x-dragoman-exchange"]
        receipt = call(f"{served.url}/exchanges/{id}", x_api_key=SECRET).json
        assert receipt["limits"] == [near]


def test_requests_at_the_same_time(loop: Loop, upstream: ScriptedUpstream, clock: Clock) -> None:
    with limited(loop, upstream, clock, "streams = 1") as served:
        upstream.script(stream(Wait(FOREVER)))
        waiting = loop.begin(
            served.gateway.ask("/v1/chat/completions", {**CHAT, "stream": True}, **{"x-api-key": SECRET})
        )
        loop.run(upstream.wait_seen())
        refused = served.ask()
        assert (refused.status, refused.headers["retry-after"]) == (429, "1")
        assert "1 requests at once is taken by requests under way" in message(refused)
        assert served.ask(OTHER).status == 200
        waiting.cancel()
        assert upstream.seen[0].closed.wait(2)
        assert served.ask().status == 200


def test_a_team_shares_its_limits(loop: Loop, upstream: ScriptedUpstream, clock: Clock) -> None:
    team = '[teams.science]\nbudget = "250 tokens/day"'
    with limited(loop, upstream, clock, "", team) as served:
        assert [served.ask(key).status for key in (SECRET, OTHER, SECRET)] == [200, 200, 200]
        assert [served.ask(key).status for key in (SECRET, OTHER, ADMIN)] == [429, 429, 200]
        assert "team science: the limit of 250 tokens/day" in message(served.ask())


@pytest.mark.parametrize("streamed", [False, True])
def test_concurrent_requests_exceed_a_budget_by_at_most_one(
    streamed: bool, loop: Loop, upstream: ScriptedUpstream, clock: Clock
) -> None:
    """Each may use 60 (the prompt's estimate is lower) and 100 tokens, and uses 100."""
    with limited(loop, upstream, clock, 'budget = "1000 tokens/day"') as served:

        async def ask() -> int:
            asked = {**CHAT, "stream": streamed}
            return (await served.gateway.ask("/v1/chat/completions", asked, **{"x-api-key": SECRET}))[0]

        async def all_at_once() -> list[int]:
            return list(await asyncio.gather(*[ask() for _ in range(50)]))

        statuses = loop.run(all_at_once())
        assert set(statuses) == {200, 429}
        assert 9 <= statuses.count(200) <= 11
        assert len(upstream.seen) == statuses.count(200)


def test_two_gateways_on_one_store_share_the_budget(
    loop: Loop, upstream: ScriptedUpstream, clock: Clock, tmp_path: Path
) -> None:
    shared = tmp_path / "store.db"
    budget = 'budget = "1000 tokens/day"'
    with (
        limited(loop, upstream, clock, budget, store=shared) as one,
        limited(loop, upstream, clock, budget, store=shared) as two,
    ):

        async def ask(served: Served) -> int:
            return (await served.gateway.ask("/v1/chat/completions", CHAT, **{"x-api-key": SECRET}))[0]

        async def all_at_once() -> list[int]:
            return list(await asyncio.gather(*[ask(served) for served in (one, two) for _ in range(25)]))

        statuses = loop.run(all_at_once())
        assert 9 <= statuses.count(200) <= 12
    with limited(loop, upstream, clock, budget, store=shared) as restarted:
        assert restarted.ask().status == 429


def test_a_budget_set_later_counts_what_was_spent_before(
    loop: Loop, upstream: ScriptedUpstream, clock: Clock, tmp_path: Path
) -> None:
    shared = tmp_path / "store.db"
    with limited(loop, upstream, clock, "", store=shared) as served:
        assert served.statuses(3) == [200] * 3
    with limited(loop, upstream, clock, 'budget = "350 tokens/day"', store=shared) as served:
        assert served.statuses(2) == [200, 429]


def test_a_client_that_leaves_pays_for_what_it_got(
    loop: Loop, upstream: ScriptedUpstream, clock: Clock
) -> None:
    chunk = b'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"%s"}}]}\n\n'
    upstream.script(stream(chunk % (b"many words " * 200), Wait(FOREVER)))
    with limited(loop, upstream, clock, 'budget = "300 tokens/day"') as served:
        leaving = loop.begin(
            served.gateway.ask("/v1/chat/completions", {**CHAT, "stream": True}, **{"x-api-key": SECRET})
        )
        loop.run(upstream.wait_seen())
        loop.run(asyncio.sleep(0.2))
        leaving.cancel()
        assert upstream.seen[0].closed.wait(2)
        refused = served.ask()
        assert refused.status == 429
        assert "(in 43200 s)" in message(refused)


@pytest.mark.parametrize("failing", [(status(500),), (status(429),), (status(401), status(401))])
def test_an_upstream_that_fails_costs_nothing(
    failing: tuple[Reply, ...], loop: Loop, upstream: ScriptedUpstream, clock: Clock
) -> None:
    with limited(loop, upstream, clock, 'budget = "1 tokens/day"') as served:
        upstream.script(*failing)
        assert served.ask().status >= 400
        assert served.statuses(2) == [200, 429]


def test_a_budget_in_money_without_a_price(
    loop: Loop, upstream: ScriptedUpstream, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    route = '[[routes]]\nmatch = "gratis"\nto = "up/free-for-all"'
    with limited(loop, upstream, clock, 'budget = "1/month"', route) as served:
        assert "the price of up/free-for-all is unknown" in caplog.text
        assert "keys.research" in caplog.text
        got = served.ask(model="up/free-for-all")
        assert served.statuses(3, model="up/free-for-all") == [200, 200, 200]
        receipt = call(f"{served.url}/exchanges/{got.headers['x-dragoman-exchange']}", x_api_key=SECRET).json
        assert receipt["limits"] == [
            "key research: $1/month does not count it, the price of up/free-for-all is unknown"
        ]


def test_counting_tokens_has_a_window_of_its_own(
    loop: Loop, upstream: ScriptedUpstream, clock: Clock
) -> None:
    with limited(loop, upstream, clock, 'rate = "2/min"') as served:

        def count() -> Got:
            return post(f"{served.url}/v1/messages/count_tokens", CHAT, x_api_key=SECRET)

        assert [count().status for _ in range(3)] == [200, 200, 429]
        assert "the limit of 2 token counts/min is reached" in count().json["error"]["message"]
        assert served.statuses(3) == [200, 200, 429]


def test_each_request_of_a_websocket_counts(loop: Loop, upstream: ScriptedUpstream, clock: Clock) -> None:
    with limited(loop, upstream, clock, 'budget = "150 tokens/day"') as served:

        async def talk() -> list[dict[str, Any]]:
            last: list[dict[str, Any]] = []
            async with (
                aiohttp.ClientSession(headers={"x-api-key": SECRET}) as session,
                session.ws_connect(f"{served.url}/v1/responses") as socket,
            ):
                for _ in range(3):
                    await socket.send_json({"type": "response.create", "model": "demo", "input": "Hello"})
                    event = await socket.receive_json(timeout=5)
                    while event["type"] not in ("response.completed", "error"):
                        event = await socket.receive_json(timeout=5)
                    last.append(event)
            return last

        one, two, three = loop.run(talk())
        assert (one["type"], two["type"], three["type"]) == ("response.completed",) * 2 + ("error",)
        assert (three["status"], three["error"]["code"]) == (429, "insufficient_quota")
        assert three["headers"]["retry-after"] == "43200"


def test_a_log_line_names_the_key(
    loop: Loop, upstream: ScriptedUpstream, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with limited(loop, upstream, clock, "") as served:
        served.ask()
        served.ask(ADMIN)
    named = [getattr(record, "key", None) for record in caplog.records if hasattr(record, "outcome")]
    assert named == ["research", None]


def test_without_shared_counters_each_process_counts_or_refuses(
    loop: Loop, upstream: ScriptedUpstream, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def broken(*args: Any) -> list[int]:
        from dragoman.store import StoreError

        raise StoreError("the store is gone")

    store = tmp_path / "store.db"
    with limited(loop, upstream, clock, 'rate = "2/min"', store=store) as served:
        monkeypatch.setattr(served.gateway.state.store, "add", broken)
        assert served.statuses(3) == [200, 200, 429]
    refusing = '[limits]\nwhen_unshared = "refuse"'
    with limited(loop, upstream, clock, 'rate = "2/min"', refusing, store) as served:
        monkeypatch.setattr(served.gateway.state.store, "add", broken)
        refused = served.ask()
        assert refused.status == 503
        assert "limits cannot be checked at the moment" in message(refused)
        assert "the store is gone" not in message(refused)  # the log says why
        assert served.ask(OTHER).status == 200


def test_the_first_request_without_shared_counters_knows_what_was_spent(
    loop: Loop, upstream: ScriptedUpstream, clock: Clock, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It finds out that they are gone, and must not begin at nothing for that."""

    async def broken(*args: Any) -> list[int]:
        from dragoman.store import StoreError

        raise StoreError("the store is gone")

    with limited(loop, upstream, clock, 'budget = "250 tokens/day"', store=tmp_path / "s.db") as served:
        assert served.statuses(4) == [200, 200, 200, 429]
        state = served.gateway.state

        async def written() -> None:
            await state.observed.ledger.close()

        loop.run(written())
        monkeypatch.setattr(state.store, "add", broken)

        async def all_at_once() -> list[int]:
            asks = [
                served.gateway.ask("/v1/chat/completions", CHAT, **{"x-api-key": SECRET}) for _ in range(10)
            ]
            return [status for status, _ in await asyncio.gather(*asks)]

        assert loop.run(all_at_once()) == [429] * 10
        assert "300 tokens used" in message(served.ask())
