"""The load generator: a process that reads jobs from stdin as JSON lines, and writes one result per job.

It uses raw sockets, which stay open between jobs. Every answer is read completely and verified.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Iterator
from itertools import cycle
from typing import cast

import msgspec

from . import verify
from .answers import ANTHROPIC
from .marks import told
from .requests import Talk, conversation, question
from .shapes import Shape

PATHS = {
    "anthropic": "/v1/messages",
    "openai-chat": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
}
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_PATIENCE = 120.0


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Some requests of one kind to one port."""

    port: int
    protocol: str
    shape: Shape
    requests: int = 1
    at_once: int = 1
    streamed: bool = True
    talks: list[Talk] = []
    """Long conversations, one after another, instead of a short question again and again."""
    ramp: float = 0.0
    """Seconds over which the connections begin."""
    path: str = ""
    model: str = ""
    """What this gateway calls the model, `{}` standing for its plain name."""
    headers: dict[str, str] = {}


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a job."""

    requests: int
    wrong: list[str]
    seconds: float
    delays: list[float] = []
    """Of a paced job, per event, in ms: from the upstream's write to the read here, all streams open."""


class Client(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._done: asyncio.Future[bytes] | None = None
        self.closed = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    @property
    def silent(self) -> bool:
        """No byte of an answer arrived."""
        return not self._buffer

    async def ask(self, request: bytes, *, paced: bool = False) -> bytes:
        """Send a request. Returns the body. `begun` and `stamps` hold the arrival times."""
        self._buffer.clear()
        self._body = -1
        self._paced = paced
        self._seen = 0
        self.begun = 0
        self.stamps: list[tuple[int, int]] = []
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await asyncio.wait_for(self._done, _PATIENCE)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._paced:
            self._look_at_stamps()
        if self._body < 0:
            self._body = self._buffer.find(b"\r\n\r\n") + 4
            if self._body < 4:
                self._body = -1
                return
            head = bytes(self._buffer[: self._body])
            length = _LENGTH.search(head)
            self._length = int(length[1]) if length else -1
        self._look_for_end()

    def _look_for_end(self) -> None:
        if self._length >= 0:
            whole = len(self._buffer) >= self._body + self._length
        else:
            whole = self._buffer.endswith(b"0\r\n\r\n")
        if whole and self._done is not None and not self._done.done():
            self._done.set_result(self._answer())

    def _look_at_stamps(self) -> None:
        now = time.monotonic_ns()
        self.begun = self.begun or now
        for found in verify.STAMPS.finditer(self._buffer, self._seen):
            self._seen = found.end()
            self.stamps.append((int(found[2]), now))

    def _answer(self) -> bytes:
        status = bytes(self._buffer[9:12])
        body = bytes(self._buffer[self._body :])
        if status != b"200":
            return b"status " + status + b" " + body
        return body if self._length >= 0 else unchunked(body)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self._done is not None and not self._done.done():
            self._done.set_result(b"the connection broke: " + repr(exc).encode())


def unchunked(body: bytes) -> bytes:
    """The chunks of a body, joined."""
    out: list[bytes] = []
    at = 0
    while (line := body.find(b"\r\n", at)) >= 0:
        size = int(body[at:line].partition(b";")[0], 16)
        out.append(body[line + 2 : line + 2 + size])
        at = line + 4 + size
        if not size:
            break
    return b"".join(out)


class Generator:
    """Runs jobs, one after another."""

    def __init__(self) -> None:
        self._idle: dict[int, list[Client]] = {}

    async def run(self, job: Job) -> Outcome:
        requests = cycle([(rendered(job, body), told(body)) for body in bodies(job)])
        each, more = divmod(job.requests, job.at_once)
        started = time.monotonic()
        workers = [
            self._worker(job, requests, each + (number < more), number * job.ramp / job.at_once)
            for number in range(job.at_once)
        ]
        results = await asyncio.gather(*workers)
        wrong = [text for one in results for text in one[0]]
        delays = steady([one[1] for one in results]) if job.shape.every_ms else []
        return Outcome(requests=job.requests, wrong=wrong, seconds=time.monotonic() - started, delays=delays)

    async def _worker(
        self, job: Job, requests: Iterator[tuple[bytes, str]], count: int, wait: float
    ) -> tuple[list[str], list[tuple[int, int]]]:
        await asyncio.sleep(wait)
        said: list[str] = []
        stamps: list[tuple[int, int]] = []
        paced = bool(job.shape.every_ms)
        for _ in range(count):
            request, words = next(requests)
            try:
                client = await self._connection(job.port)
                body = await client.ask(request, paced=paced)
                if client.closed and client.silent:  # the server closed the idle connection during the write
                    client = await self._connection(job.port)
                    body = await client.ask(request, paced=paced)
            except (TimeoutError, OSError) as error:
                said.append(f"lost: {error!r}")
                continue
            mistake = verify.wrong(job.protocol, job.shape, body, streamed=job.streamed, told=words)
            if mistake:
                said.append(mistake)
            stamps += client.stamps
            self._release(job.port, client)
        return said, stamps

    async def _connection(self, port: int) -> Client:
        while self._idle.get(port):
            client = self._idle[port].pop()
            if not client.closed:
                return client
        _, client = await asyncio.get_running_loop().create_connection(Client, "127.0.0.1", port)
        return client

    def _release(self, port: int, client: Client) -> None:
        if not client.closed:
            self._idle.setdefault(port, []).append(client)


def steady(streams: list[list[tuple[int, int]]]) -> list[float]:
    """The delays while all streams were open."""
    full = [stamps for stamps in streams if stamps]
    if not full:
        return []
    begin = max(stamps[0][1] for stamps in full)
    end = min(stamps[-1][1] for stamps in full)
    return [(got - sent) / 1e6 for stamps in full for sent, got in stamps if sent >= begin and got <= end]


def bodies(job: Job) -> list[bytes]:
    """The request bodies of a job."""
    if job.talks:
        return [conversation(talk, job.shape) for talk in job.talks]
    return [question(job.protocol, job.shape, streamed=job.streamed)]


def rendered(job: Job, body: bytes) -> bytes:
    """The bytes of the HTTP request."""
    if job.model:
        name = job.shape.model
        body = body.replace(name.encode(), job.model.replace("{}", name).encode(), 1)
    key = {"x-api-key": "bench", "anthropic-version": "2023-06-01"}
    headers = {
        "host": f"127.0.0.1:{job.port}",
        "content-type": "application/json",
        "content-length": str(len(body)),
        **(key if job.protocol == ANTHROPIC else {"authorization": "Bearer bench"}),
        **job.headers,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {job.path or PATHS[job.protocol]} HTTP/1.1\r\n{lines}\r\n".encode() + body


async def main() -> None:
    generator = Generator()
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
        outcome = await generator.run(msgspec.json.decode(line, type=Job))
        sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    asyncio.run(main())
