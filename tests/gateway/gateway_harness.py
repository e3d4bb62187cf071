"""A gateway with scripted upstreams in the test's event loop, and plain clients that keep every byte."""

import asyncio
import io
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from support.scripted_talk import question, written
from support.scripted_upstream import ScriptedUpstream
from support.wires import ANTHROPIC, CHAT, GEMINI, RESPONSES

from dragoman.config import loads
from dragoman.conform import laws, neutral
from dragoman.conform.shape import Neutral
from dragoman.gateway.process.listener import GatewayServer
from dragoman.gateway.state import State
from dragoman.model.messages import Request

SHORT = {ANTHROPIC: "a", CHAT: "c", RESPONSES: "r", GEMINI: "g"}
"""What the upstream of each protocol is called."""


def config(
    url: str, *, server: str = "retries = 0", each: str = "", only: str = "acrg", more: str = ""
) -> str:
    """One upstream of each protocol at `url`; those in `only` have the keys of `each`."""
    lines = [f"[server]\n{server}"]
    for protocol, name in SHORT.items():
        lines += [f'[upstreams.{name}]\nprotocol = "{protocol}"\nbase_url = "{url}"\ncredential = "none"']
        lines += [each] if name in only else []
    return "\n".join([*lines, more.replace("{url}", url)])


@dataclass
class Gateway:
    url: str
    state: State
    session: aiohttp.ClientSession

    def total(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        found = getattr(self.state.observed.metrics, name).collect()
        samples = (sample for metric in found for sample in metric.samples)
        return sum(
            sample.value
            for sample in samples
            if not sample.name.endswith("_created")
            and all(sample.labels.get(key) == value for key, value in labels.items())
        )

    async def idle(self, within: float = 20.0) -> bool:
        """Is no exchange running after at most `within` seconds?"""
        return await soon(lambda: self.state.lifecycle.running == 0, within)


@asynccontextmanager
async def running(toml: str, env: dict[str, str] | None = None) -> AsyncGenerator[Gateway]:
    """The gateway in the test's own event loop, and a client session for it."""
    state = State(loads(toml, env=env or {}), env=env or {}, random_value=lambda: 0.0)
    listening = GatewayServer(state)
    await listening.listen("127.0.0.1", 0)
    url = listening.address
    connector = aiohttp.TCPConnector(limit=0)
    try:
        async with aiohttp.ClientSession(connector=connector, read_bufsize=2**20) as session:
            yield Gateway(url, state, session)
    finally:
        await listening.stop(1)


@asynccontextmanager
async def before(
    upstream: ScriptedUpstream, env: dict[str, str] | None = None, **more: str
) -> AsyncGenerator[Gateway]:
    """The gateway with one scripted upstream that speaks all four protocols."""
    async with upstream, running(config(upstream.url, **more), env) as gateway:
        yield gateway


async def soon(true: Callable[[], bool], within: float = 20.0) -> bool:
    over = asyncio.get_running_loop().time() + within
    while not true():
        if asyncio.get_running_loop().time() > over:
            return False
        await asyncio.sleep(0.005)
    return True


@dataclass
class Got:
    """An answer as a client of `protocol` got it, to the end of the transfer."""

    protocol: str
    stream: bool
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> Neutral:
        """The neutral form of the answer. Asserts that its bytes are lawful."""
        stream = self.stream and self.status == 200
        assert laws.check(self.protocol, self.body, stream=stream) == [], self.body[-2000:]
        return neutral.reduce(self.protocol, self.body, stream=stream)

    def is_refusal(self, status: int | None = None) -> str:
        """Assert an HTTP status and the protocol's error body. Returns its message."""
        assert self.status >= 400, self.body[:300]
        assert status is None or self.status == status, (self.status, self.body)
        assert self.headers["content-type"].startswith("application/json")
        assert self.headers["x-dragoman-exchange"]
        said = self.said
        assert said["stop"] == "error"
        return said["error"]["message"]

    def is_broken_off(self) -> str:
        """Assert a stream that began well and ended in the protocol's error. Returns its message."""
        assert self.stream
        assert self.status == 200, self.body
        assert self.headers["content-type"].startswith("text/event-stream")
        said = self.said
        assert said["stop"] == "error", self.body[-500:]
        return said["error"]["message"]


def asking(protocol: str, model: str, *, stream: bool = True, **more: Any) -> tuple[str, bytes]:
    """Path and body of a request for the weather in Rome."""
    return written(protocol, question(model, stream=stream, **more))


async def post(
    gateway: Gateway, protocol: str, path: str, body: bytes, *, stream: bool, **headers: str
) -> Got:
    named = {"content-type": "application/json", **{k.replace("_", "-"): v for k, v in headers.items()}}
    async with gateway.session.post(gateway.url + path, data=io.BytesIO(body), headers=named) as response:
        # Raises if the transfer does not end properly.
        data = await response.read()
        lower = {name.lower(): value for name, value in response.headers.items()}
        return Got(protocol, stream, response.status, lower, data)


async def ask(gateway: Gateway, protocol: str, model: str, *, stream: bool = True, **more: Any) -> Got:
    path, body = asking(protocol, model, stream=stream, **more)
    return await post(gateway, protocol, path, body, stream=stream)


async def send(gateway: Gateway, protocol: str, request: Request, **headers: str) -> Got:
    path, body = written(protocol, request)
    return await post(gateway, protocol, path, body, stream=request.stream, **headers)


async def ask_all(
    gateway: Gateway,
    protocol: str,
    model: str,
    streams: Iterable[bool] = (True, False),
    upstreams: Iterable[str] = tuple(SHORT.values()),
) -> list[Got]:
    """One client, all upstreams, streamed and whole, all at the same time."""
    asked: list[Awaitable[Got]] = [
        ask(gateway, protocol, f"{name}/{model}", stream=stream) for name in upstreams for stream in streams
    ]
    return await asyncio.gather(*asked)


class RawClient:
    """A client on a raw socket that reads part of an answer and then leaves."""

    def __init__(self, gateway: Gateway) -> None:
        self._port = int(gateway.url.rpartition(":")[2])
        self.got = b""

    async def __aenter__(self) -> "RawClient":
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=2**12)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.leave()

    def leave(self) -> None:
        self._writer.transport.abort()

    async def post(self, path: str, body: bytes, *, claimed: int | None = None) -> None:
        head = (
            f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\ncontent-type: application/json\r\n"
            f"content-length: {claimed or len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        await self._writer.drain()

    async def until(self, text: bytes, within: float = 20.0) -> None:
        """Read on until `text` has come."""
        async with asyncio.timeout(within):
            while text not in self.got:
                data = await self._reader.read(4096)
                assert data, self.got
                self.got += data

    async def listen(self, seconds: float, words: bytes = b"", times: int = 0) -> bytes:
        """The bytes of the next `seconds`, or until `words` arrived `times` times."""
        try:
            async with asyncio.timeout(seconds):
                while data := await self._reader.read(2**16):
                    self.got += data
                    if words and self.got.count(words) >= times:
                        break
        except TimeoutError:
            pass
        return self.got
