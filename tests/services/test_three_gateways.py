"""Three gateways behind nginx, on one PostgreSQL and one Redis. Under load, one is killed, one restarted."""

import asyncio
import itertools
import json
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import anthropic
import msgspec
import openai
import pytest
import services
from support.plain_gateway import soon
from support.plain_http import call, post
from support.processes import Process
from support.sample_streams import SAMPLES, TOOLS
from support.scenarios import SCENARIOS
from support.scripted_upstream import Reply, ScriptedUpstream, Seen, Wait, in_background

ALICE, CAROL, ADMIN = "alice-secret-12345", "carol-secret-12345", "admin-secret-12345"
BUDGET = 1500
"""Tokens. An answer of the scripted model takes 47."""
ONE = 80
"""At most what one request may take: its prompt and its max_tokens."""
CLIENTS = 10
LOST = CLIENTS // 2 + 1
"""More requests of Alice than a gateway can have under way when it is killed."""
SIGNATURE = SCENARIOS["thinking_tool"].opaque()[0]


class SlowUpstream(ScriptedUpstream):
    """The scripted model, which takes half a second for an answer."""

    def _reply(self, request: Any, seen: Seen) -> Reply:
        reply = super()._reply(request, seen)
        steps = [step for each in reply.steps for step in (Wait(0.04), each)]
        return msgspec.structs.replace(reply, steps=tuple(steps))


class Cluster:
    """The gateways and what is around them."""

    def __init__(self, folder: Path, upstream: ScriptedUpstream, database: str, redis: str) -> None:
        self.folder = folder
        self.upstream = upstream
        self.ports = [services.free_port() for _ in range(3)]
        self.urls = [f"http://127.0.0.1:{port}" for port in self.ports]
        self.processes: list[Process | None] = [None] * 3
        self.started: list[Process] = []
        kinds = {"a": "anthropic", "c": "openai-chat", "r": "openai-responses"}
        upstreams = "".join(
            f'[upstreams.{name}]\nprotocol = "{kind}"\nbase_url = "{upstream.url}"\ncredential = "none"\n'
            for name, kind in kinds.items()
        )
        for secret, content in (("store", database), ("redis", redis)):
            (folder / secret).write_text(content)
        for port in self.ports:
            (folder / f"{port}.toml").write_text(
                f"""
                [server]
                port = {port}
                keys = ["{ADMIN}"]
                store = "file:{folder}/store"
                redis = "file:{folder}/redis"
                retries = 0
                shutdown_delay = "500ms"
                {upstreams}
                [keys.alice]
                secret = "{ALICE}"
                budget = "{BUDGET} tokens/month"
                [keys.carol]
                secret = "{CAROL}"
                """
            )

    def start(self, at: int) -> None:
        config = self.folder / f"{self.ports[at]}.toml"
        self.processes[at] = process = Process(self.folder, "serve", "--config", str(config))
        self.started.append(process)

    def ready(self, at: int) -> None:
        process = self.processes[at]
        assert process is not None
        process.ready()
        until = time.monotonic() + 20
        while (got := call(self.urls[at] + "/readyz")).status != 200 or got.json["redis"] != "ok":
            assert time.monotonic() < until, got
            time.sleep(0.05)

    def process(self, at: int) -> Process:
        found = self.processes[at]
        assert found is not None
        return found

    def close(self) -> None:
        for process in self.processes:
            if process is not None:
                process.kill()


@pytest.fixture(scope="module")
def cluster(
    postgres: services.Postgres, redis: services.Redis, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    upstream = SlowUpstream(pace=1.0)
    with ExitStack() as stack:
        stack.enter_context(in_background(upstream))
        database = services.new_database(postgres)
        made = Cluster(tmp_path_factory.mktemp("cluster"), upstream, database, redis.url(7))
        stack.callback(made.close)
        for at in range(3):
            made.start(at)
        for at in range(3):
            made.ready(at)
        yield made


@dataclass
class Talk:
    """What the clients got."""

    url: str
    over: asyncio.Event = field(default_factory=asyncio.Event)
    outcomes: Counter[str] = field(default_factory=Counter)
    under_way: set[int] = field(default_factory=set)
    """The requests that run, by their number."""
    broken: list[tuple[int, str, str]] = field(default_factory=list)
    """The number of the request, the exchange if it had begun, and the error."""
    complete: set[str] = field(default_factory=set)
    numbers: Iterator[int] = field(default_factory=itertools.count)

    async def client(self, number: int) -> None:
        key = ALICE if number % 2 else CAROL
        async with (
            anthropic.AsyncAnthropic(base_url=self.url, api_key=key, max_retries=0) as claude,
            openai.AsyncOpenAI(base_url=self.url + "/v1", api_key=key, max_retries=0) as gpt,
        ):
            for turn in itertools.count():
                if self.over.is_set():
                    return
                said = f"Client {number} says {turn}"
                seen: list[str] = []
                work = _anthropic(claude, said, seen) if number % 4 < 2 else _openai(gpt, said, seen)
                await self._count(work, said, seen)

    async def _count(self, work: Awaitable[str], said: str, seen: list[str]) -> None:
        number = next(self.numbers)
        self.under_way.add(number)
        try:
            text = await work
        except (anthropic.RateLimitError, openai.RateLimitError) as refused:
            self.outcomes["refused" if "retry-after" in refused.response.headers else "unexplained"] += 1
            await asyncio.sleep(0.2)
        except (anthropic.APIError, openai.APIError, OSError) as error:
            from_whom = getattr(getattr(error, "response", None), "headers", "")
            self.broken.append((number, "".join(seen), f"{error!r} {from_whom}"))
        except Exception as error:  # the HTTP library's own errors differ between the SDKs
            if "httpx" not in type(error).__module__ and "httpcore" not in type(error).__module__:
                raise
            self.broken.append((number, "".join(seen), repr(error)))
        else:
            assert said in text
            self.complete.update(seen)
            self.outcomes["complete"] += 1
        finally:
            self.under_way.discard(number)


async def _anthropic(client: anthropic.AsyncAnthropic, text: str, seen: list[str]) -> str:
    asked: Any = {"model": "a/demo", "max_tokens": 60, "messages": [{"role": "user", "content": text}]}
    async with client.messages.stream(**asked) as answer:
        seen.append(answer.response.headers["x-dragoman-exchange"])
        return await answer.get_final_text()


async def _openai(client: openai.AsyncOpenAI, text: str, seen: list[str]) -> str:
    answer = await client.chat.completions.with_raw_response.create(
        model="c/demo", max_completion_tokens=60, messages=[{"role": "user", "content": text}], stream=True
    )
    seen.append(answer.headers["x-dragoman-exchange"])
    said, ended = "", False
    async for chunk in answer.parse():
        said += "".join(choice.delta.content or "" for choice in chunk.choices)
        ended = ended or any(choice.finish_reason for choice in chunk.choices)
    if not ended:
        raise OSError("the stream broke off")
    return said


def listed(url: str) -> dict[str, dict[str, Any]]:
    """All exchanges that this replica lists, by id."""
    found: dict[str, dict[str, Any]] = {}
    cursor = ""
    while True:
        page = call(f"{url}/exchanges?limit=500&cursor={cursor}", authorization=f"Bearer {ADMIN}").json
        found |= {entry["id"]: entry for entry in page["exchanges"]}
        cursor = page["next"]
        if not cursor:
            return found


@pytest.mark.timeout(400)
def test_one_gateway_is_killed_and_one_restarted_under_load(cluster: Cluster) -> None:
    balancer = services.Nginx(cluster.ports)
    balancer.start()
    try:
        before = len(cluster.upstream.seen)
        talk, under_way = asyncio.run(_load(cluster, balancer.url()))
    finally:
        balancer.close()
    asked = len(cluster.upstream.seen) - before
    assert talk.outcomes["complete"] > 50
    assert talk.outcomes["refused"] > 0
    assert talk.outcomes["unexplained"] == 0
    # Only the kill breaks answers: each client has at most one under way. The restart breaks none.
    assert {number for number, _, _ in talk.broken} <= under_way, talk.broken

    begun = {id for _, id, _ in talk.broken if id}
    until = time.monotonic() + 120
    while True:  # another replica accounts for the exchanges of the dead one when it is surely dead
        lists = [listed(url) for url in cluster.urls]
        missing = [(talk.complete | begun) - found.keys() for found in lists]
        ran = [[each for each in found.values() if each["target"]] for found in lists]
        if not any(missing) and all(len(each) == asked for each in ran):
            break
        assert time.monotonic() < until, (missing, [len(each) for each in ran], asked)
        time.sleep(0.5)
    assert lists[0].keys() == lists[1].keys() == lists[2].keys()
    assert {lists[0][id]["outcome"] for id in talk.complete} == {"ok"}
    assert {lists[0][id]["outcome"] for id in begun} <= {"lost", "ok"}  # ok: the kill came after its end

    _spend_the_rest(cluster)
    until = time.monotonic() + 60
    while True:  # the last receipts are on their way
        mine = [each for each in listed(cluster.urls[2]).values() if each["key"] == "alice"]
        used = sum(each["usage"]["input"] + each["usage"]["output"] for each in mine if each["usage"])
        if used >= BUDGET - LOST * ONE or time.monotonic() > until:
            break
        time.sleep(0.2)
    # What the killed gateway held for requests under way stays reserved for a minute. A gateway that Redis
    # has not answered in time, which a busy machine may do, says so, and counts alone for a while.
    alone = sum("limits are not shared" in process.said for process in cluster.started)
    assert BUDGET - LOST * ONE <= used <= (1 + alone) * BUDGET + 3 * ONE


def _spend_the_rest(cluster: Cluster) -> None:
    """Ask until every replica refuses. What the killed gateway held is free again after a minute."""
    body = {"model": "c/demo", "max_tokens": 60, "messages": [{"role": "user", "content": "Hi"}]}
    for _ in range(30):
        answers = [
            post(f"{url}/v1/chat/completions", body, authorization=f"Bearer {ALICE}") for url in cluster.urls
        ]
        if {got.status for got in answers} == {429}:
            return
    raise AssertionError("the budget has no end")


async def _load(cluster: Cluster, url: str) -> tuple[Talk, set[int]]:
    """Also returns the requests that were under way when a gateway was killed."""
    talk = Talk(url)
    clients = asyncio.gather(*[talk.client(number) for number in range(CLIENTS)])

    async def until(true: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not true() and not clients.done():  # noqa: ASYNC110 - the clients make it true
                await asyncio.sleep(0.01)

    await until(lambda: talk.outcomes["complete"] >= CLIENTS)
    await asyncio.to_thread(cluster.process(0).kill)
    under_way = talk.under_way | {number for number, _, _ in talk.broken}
    await until(lambda: not talk.under_way & under_way)
    cluster.start(0)
    await asyncio.to_thread(cluster.ready, 0)
    cluster.process(1).signal(signal.SIGTERM)
    assert await asyncio.to_thread(cluster.process(1).wait) == 0
    cluster.start(1)
    await asyncio.to_thread(cluster.ready, 1)
    complete = talk.outcomes["complete"]
    await until(
        lambda: talk.outcomes["complete"] > max(50, complete + CLIENTS) and talk.outcomes["refused"] > 0
    )
    talk.over.set()
    await clients
    return talk, under_way


def test_a_stopping_gateway_says_so_and_finishes_its_answers(cluster: Cluster) -> None:
    config = (cluster.folder / f"{cluster.ports[2]}.toml").read_text()
    port = services.free_port()
    file = cluster.folder / "fourth.toml"
    file.write_text(config.replace(f"port = {cluster.ports[2]}", f"port = {port}").replace("500ms", "8s"))
    process = Process(cluster.folder, "serve", "--config", str(file))
    try:
        url = process.ready()
        with openai.OpenAI(base_url=url + "/v1", api_key=CAROL, max_retries=0) as client:
            asked: Any = {"model": "c/demo", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
            answer = iter(client.chat.completions.create(**asked))
            next(answer)
            process.signal(signal.SIGTERM)
            while (got := call(url + "/readyz")).status != 503:  # or it stops, and takes no connection
                time.sleep(0.02)
            assert got.json["reasons"] == ["the gateway stops"]
            assert call(url + "/livez").status == 200
            assert list(answer)[-1].choices[0].finish_reason == "stop"
            # Until load balancers know it, requests still come, and are answered.
            assert list(client.chat.completions.create(**asked))
        assert process.wait() == 0
    finally:
        process.kill()


def test_another_replica_continues_a_response(cluster: Cluster) -> None:
    id = None
    for turn, url in enumerate([*cluster.urls, cluster.urls[0]]):
        with openai.OpenAI(base_url=url + "/v1", api_key=CAROL, max_retries=0) as client:
            given: Any = {"previous_response_id": id} if id else {}
            id = client.responses.create(model="a/demo", input=f"Turn {turn}", **given).id
    history = json.dumps(cluster.upstream.last.json["messages"])
    assert all(f"Turn {turn}" in history for turn in range(4))


def test_another_replica_restores_reasoning(cluster: Cluster) -> None:
    """A Chat client cannot carry the signature that Anthropic wants back with a tool result."""
    cluster.upstream.script(SAMPLES["anthropic"]["thinking_tool"].stream)
    tools: Any = [{"type": "function", "function": tool} for tool in TOOLS]
    messages: Any = [{"role": "user", "content": "How is the weather in Paris?"}]
    for url in cluster.urls[:2]:
        with openai.OpenAI(base_url=url + "/v1", api_key=CAROL, max_retries=0) as client:
            said = client.chat.completions.create(model="a/demo", messages=messages, tools=tools)
        message = said.choices[0].message
        messages += [{"role": "assistant", "content": message.content}]
        if message.tool_calls:
            messages[-1]["tool_calls"] = [each.model_dump() for each in message.tool_calls]
            messages += [
                {"role": "tool", "tool_call_id": each.id, "content": "rain"} for each in message.tool_calls
            ]
    assert SIGNATURE in json.dumps(cluster.upstream.last.json)


def test_a_websocket_passes_the_load_balancer(cluster: Cluster) -> None:
    balancer = services.Nginx(cluster.ports)
    balancer.start()

    async def talk() -> list[str]:
        texts: list[str] = []
        async with (
            openai.AsyncOpenAI(base_url=balancer.url() + "/v1", api_key=CAROL) as client,
            client.responses.connect() as socket,
        ):
            for turn in ("one", "two"):
                await socket.response.create(model="c/demo", input=f"Turn {turn}")
                async for event in socket:
                    if event.type == "response.completed":
                        texts.append(event.response.output_text)
                        break
        return texts

    try:
        texts = asyncio.run(talk())
    finally:
        balancer.close()
    assert ["Turn one" in texts[0], "Turn two" in texts[1]] == [True, True]


def _complete(entries: list[dict[str, Any]]) -> set[str]:
    return {one["id"] for one in entries if one["outcome"] == "ok"}


def test_the_live_feed_of_any_replica_shows_the_others(cluster: Cluster) -> None:
    async def play() -> None:
        seen: list[list[dict[str, Any]]] = [[], [], []]

        async def feed(at: int) -> None:
            headers = {"authorization": f"Bearer {ADMIN}"}
            async with (
                aiohttp.ClientSession(headers=headers) as session,
                session.get(cluster.urls[at] + "/exchanges/live") as answer,
            ):
                async for line in answer.content:
                    seen[at] += [json.loads(line[6:])] if line.startswith(b"data: ") else []

        async def shown() -> bool:
            """Does every feed show one more exchange of each replica?"""
            ids: set[str] = set()
            for url in cluster.urls:
                async with openai.AsyncOpenAI(base_url=url + "/v1", api_key=CAROL, max_retries=0) as client:
                    answer = await client.chat.completions.with_raw_response.create(
                        model="c/demo", messages=[{"role": "user", "content": "Hi"}]
                    )
                    ids.add(answer.headers["x-dragoman-exchange"])
            return await soon(lambda: all(ids <= _complete(each) for each in seen), 3)

        tasks = [asyncio.create_task(feed(at)) for at in range(3)]
        # The other replicas publish nothing before they have heard that somebody watches.
        async with asyncio.timeout(60):
            while not await shown():
                pass
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(play())
