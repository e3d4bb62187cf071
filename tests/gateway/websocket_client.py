"""OpenAI's SDK on a WebSocket of the gateway. Every received message is checked."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from gateway_harness import Gateway, before
from openai import AsyncOpenAI
from openai.types.responses import ResponsesServerEvent
from pydantic import TypeAdapter
from support.scripted_upstream import ScriptedUpstream
from support.wires import PROTOCOLS, RESPONSES

from dragoman.conform import laws

UPSTREAMS = pytest.mark.parametrize("upstream", PROTOCOLS)
QUESTION = "What is the weather in Rome, for 3 days?"
TOOL = {
    "type": "function",
    "name": "get_weather",
    "strict": False,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city", "days"],
    },
}
Event = dict[str, Any]
_events: TypeAdapter[Any] = TypeAdapter(ResponsesServerEvent)
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed", "error"})


class Socket:
    """An SDK's connection. Asserts that every received message fits the SDK's types."""

    def __init__(self, connection: Any) -> None:
        self.sdk = connection

    async def send(self, **body: Any) -> None:
        await self.sdk.send({"type": "response.create", **body})

    async def next(self) -> Event:
        async with asyncio.timeout(30):
            data = await self.sdk.recv_bytes()
        _events.validate_json(data)
        return json.loads(data)

    async def answer(self) -> list[Event]:
        """The events of one answer. Asserts that they are lawful."""
        events = [await self.next()]
        while events[-1]["type"] not in _LAST:
            events.append(await self.next())
        if events[-1]["type"] != "error":
            stream = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
            assert laws.check(RESPONSES, stream.encode(), stream=True) == []
        return events

    async def ask(self, input: Any, **body: Any) -> Event:
        """The last event of the answer."""
        await self.send(input=input, **body)
        return (await self.answer())[-1]

    async def response(self, input: Any, **body: Any) -> Any:
        last = await self.ask(input, **body)
        assert last["type"] == "response.completed", last
        return last["response"]

    async def works(self) -> None:
        """Assert that the connection still answers."""
        assert "Hello there" in text_of(await self.response("Hello there", model="c/demo"))


def text_of(response: Any) -> str:
    parts = [part for item in response["output"] if item["type"] == "message" for part in item["content"]]
    return "".join(part["text"] for part in parts)


def calls_of(response: Any) -> list[tuple[str, Any]]:
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    return [(item["name"], json.loads(item["arguments"])) for item in calls]


def results(response: Any, text: str) -> list[Event]:
    calls = [item for item in response["output"] if item["type"] == "function_call"]
    return [{"type": "function_call_output", "call_id": c["call_id"], "output": text} for c in calls]


@asynccontextmanager
async def connected(gateway: Gateway, key: str = "k", **options: Any) -> AsyncIterator[Socket]:
    async with (
        AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=key) as client,
        client.responses.connect(**options) as connection,
    ):
        yield Socket(connection)


Scene = Callable[[Gateway, ScriptedUpstream, Socket], Awaitable[None]]


def play(scene: Scene, *, pace: float = 0, **config: str) -> None:
    """Run a scene on one connection."""

    async def run() -> None:
        served = ScriptedUpstream(pace=pace)
        async with before(served, **config) as gateway, connected(gateway) as socket:
            await scene(gateway, served, socket)

    asyncio.run(run())


async def receipts(gateway: Gateway) -> list[Any]:
    """The newest first."""
    async with gateway.session.get(f"{gateway.url}/exchanges") as response:
        ids = [exchange["id"] for exchange in (await response.json())["exchanges"]]
    found: list[Any] = []
    for id in ids:
        async with gateway.session.get(f"{gateway.url}/exchanges/{id}") as response:
            found.append(await response.json())
    return found
