"""The scripted model as an upstream for tests. It records requests and follows a script.

    async with ScriptedUpstream() as upstream:              # in the test's own event loop
    with in_background(ScriptedUpstream()) as upstream:     # in a thread, for clients that block

`upstream.script(...)` sets the replies of the next requests: steps (bytes, `Wait`, `Cut`), a whole `Reply`,
or the faults below. Without a script the models of `dragoman.scripted.BEHAVIOURS` answer.
"""

import asyncio
import atexit
import itertools
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self

import msgspec

from dragoman.conform.scripted import Cut, Reply, ScriptedModel, Wait
from dragoman.conform.scripted.replies import FOREVER, JSON, STREAM, Step, body
from dragoman.conform.scripted.server import Stop, play, reply_to, start
from dragoman.transport.server import HttpRequest, Stream
from dragoman.transport.server.incoming import HttpSink

__all__ = [
    "FOREVER",
    "JSON",
    "STREAM",
    "Cut",
    "Reply",
    "ScriptedUpstream",
    "Seen",
    "Step",
    "Wait",
    "body",
    "in_background",
]

UNAUTHORIZED = {
    "error": {"message": "The key is not valid.", "type": "authentication_error", "code": "invalid_api_key"}
}


@dataclass(slots=True)
class Seen:
    """One request as it arrived, and its outcome."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    at: float
    """`time.monotonic()` when it was there; so are the other times."""
    finished: threading.Event = field(default_factory=threading.Event)
    """The answer was sent to its end."""
    closed: threading.Event = field(default_factory=threading.Event)
    """The client closed the connection before that."""
    closed_at: float | None = None

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def key(self) -> str | None:
        """The client's credential, from any of the usual headers."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        named = (self.headers.get(name) for name in ("x-api-key", "x-goog-api-key", "api-key"))
        return bearer or next(filter(None, named), None) or self.query.get("key")

    async def wait_closed(self, within: float = 20.0) -> bool:
        """Did the client close the connection within this many seconds?"""
        return await asyncio.to_thread(self.closed.wait, within)

    async def wait_finished(self, within: float = 20.0) -> bool:
        return await asyncio.to_thread(self.finished.wait, within)


class ScriptedUpstream:
    """One server. `keys` are the accepted credentials; any other gets a 401. None accepts all."""

    def __init__(self, *, model: ScriptedModel | None = None, pace: float = 0.0) -> None:
        self.url = ""
        self.seen: list[Seen] = []
        self.keys: set[str] | None = None
        self.pace = pace
        self.answering = asyncio.Event()
        """Requests wait for their answer while this is cleared."""
        self.answering.set()
        self.otherwise: Reply | None = None
        """The reply to requests that are not scripted. If None, the models answer."""
        self._scripts: deque[Reply] = deque()
        self._model = model or ScriptedModel(clock=lambda: 1_800_000_000)
        self._stop: Stop | None = None

    def script(self, *answers: Reply | bytes | Iterable[Step]) -> Self:
        """Set the replies of the next requests. Bytes and steps alone are the body of a 200 stream."""
        self._scripts.extend(map(_as_reply, answers))
        return self

    @property
    def last(self) -> Seen:
        return self.seen[-1]

    async def wait_seen(self, count: int = 1, within: float = 20.0) -> Seen:
        """Wait for the `count`th request."""
        async with asyncio.timeout(within):
            while len(self.seen) < count:  # noqa: ASYNC110 - the server may run in another loop
                await asyncio.sleep(0.002)
        return self.seen[count - 1]

    async def start(self) -> None:
        self.url, self._stop = await start(self._handle)

    async def stop(self) -> None:
        if self._stop is not None:
            await self._stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _handle(self, request: HttpRequest) -> Stream:
        seen = Seen(
            method=request.method,
            path=request.path,
            query=dict(request.query),
            headers=request.headers,
            body=bytes(await request.read()),
            at=time.monotonic(),
        )
        self.seen.append(seen)
        try:
            await self.answering.wait()
            response = await play(request, self._reply(request, seen), self.pace)
            if response.started and not _is_closing(request):
                await response.end()
        except (asyncio.CancelledError, ConnectionError):
            seen.closed_at = time.monotonic()
            seen.closed.set()
            raise
        seen.finished.set()
        return response

    def _reply(self, request: HttpRequest, seen: Seen) -> Reply:
        if self.keys is not None and seen.key not in self.keys:
            return body(json.dumps(UNAUTHORIZED).encode(), status=401)
        if self._scripts:
            return self._scripts.popleft()
        return self.otherwise or reply_to(self._model, request, seen.body)


@contextmanager
def in_background(upstream: ScriptedUpstream | None = None) -> Generator[ScriptedUpstream]:
    """Run the upstream in a background thread."""
    served = upstream or ScriptedUpstream()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(served.start(), loop).result(5)
        yield served
    finally:
        asyncio.run_coroutine_threadsafe(served.stop(), loop).result(5)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(5)
        loop.close()


# Faults, for `script` and `otherwise`.


def stream(*steps: Step, **more: Any) -> Reply:
    return Reply(steps=steps, content_type=STREAM, **more)


def status(code: int, data: bytes = b"", content_type: str = JSON, **headers: str) -> Reply:
    """An answer with any status and any body. Header names are written with underscores."""
    return body(data, status=code, content_type=content_type, **headers)


def slow_headers(seconds: float, then: Reply | None = None) -> Reply:
    return msgspec.structs.replace(then or stream(), delay=seconds)


def no_answer(*, reset: bool = False) -> Reply:
    """The connection closes without a byte."""
    return Reply(steps=(Cut(reset=reset),), bare=True)


def not_http(data: bytes = b"\x15\x03\x01\x00\x02\x02\x50") -> Reply:
    """Bytes that are not HTTP: by default the TLS alert for a plain HTTP request."""
    return Reply(steps=(data,), bare=True)


def garbage(size: int = 4096) -> Reply:
    return stream(bytes(itertools.islice(itertools.cycle(range(255, -1, -1)), size)))


def torn_character(before: bytes = b"") -> Reply:
    """Reset in the middle of a character, after `before`."""
    return stream(before + 'data: {"text":"5 €'.encode()[:-1], Wait(0.05), Cut(reset=True))


def huge_frame(size: int) -> Reply:
    """One frame of `size` bytes that never ends, in pieces of 64 KiB."""
    piece = b"x" * 65_536
    return Reply(
        steps=itertools.chain((b"data: ",), itertools.repeat(piece, size // len(piece) + 1)),
        content_type=STREAM,
    )


def never_ending(frame: bytes = b": still here\n\n", every: float = 0.0) -> Reply:
    return Reply(steps=itertools.cycle((frame, Wait(every))), content_type=STREAM)


def redirect(location: str, code: int = 307) -> Reply:
    return status(code, location=location)


@cache
def refused_url() -> str:
    """An address that refuses connections. The port stays bound, so that no other server can get it."""
    held = socket.socket()
    held.bind(("127.0.0.1", 0))
    atexit.register(held.close)
    return f"http://127.0.0.1:{held.getsockname()[1]}"


def _as_reply(answer: Reply | bytes | Iterable[Step]) -> Reply:
    if isinstance(answer, Reply):
        return answer
    return Reply(steps=(answer,) if isinstance(answer, bytes) else answer, content_type=STREAM)


def _is_closing(request: HttpRequest) -> bool:
    assert isinstance(request.sink, HttpSink)
    return request.sink.transport is None or request.sink.transport.is_closing()
