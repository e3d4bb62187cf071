"""A request over HTTP, from a WebSocket message, or from a test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import parse_qsl, unquote


class ClientGone(ConnectionError):
    """The client left before it got its answer."""


class Sink(Protocol):
    """Where the answer to a request goes."""

    @property
    def slow(self) -> bool:
        """Does the client read more slowly than the gateway writes?"""
        ...

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of a streamed answer. Does not wait for the client to read."""
        ...

    async def write(self, data: bytes) -> None:
        """Send a piece of the body. Waits while the client reads slowly. Raises `ClientGone`."""
        ...

    async def end(self, last: bytes = b"") -> None:
        """Send `last` and complete the answer."""
        ...

    def abort(self) -> None:
        """Break the connection, so that the client does not take a partial answer for a complete one."""
        ...


class WebSocket(Protocol):
    """An upgraded connection."""

    @property
    def slow(self) -> bool:
        """Does the client read more slowly than the gateway writes?"""
        ...

    async def receive(self) -> str | bytes | None:
        """The next message. None: the client has closed, or has broken the WebSocket protocol."""
        ...

    async def send(self, text: str) -> None:
        """Send a text message. Raises `ClientGone`."""
        ...

    async def close(self, code: int = 1000, reason: str = "") -> None: ...


async def _no_body() -> bytes:
    return b""


async def _no_chunks(largest: int) -> AsyncIterator[bytes]:
    for nothing in ():
        yield nothing


class HttpRequest:
    """The head of a request, a function that reads the body, and a sink for the answer."""

    __slots__ = (
        "_query", "chunks", "client", "headers", "method", "parts", "path", "read", "sink", "target",
        "wants_websocket",
    )  # fmt: skip

    def __init__(
        self,
        method: str,
        target: str,
        headers: dict[str, str],
        read: Callable[[], Awaitable[bytes]] = _no_body,
        sink: Sink | None = None,
        *,
        chunks: Callable[[int], AsyncIterator[bytes]] = _no_chunks,
        client: str = "",
        wants_websocket: bool = False,
    ) -> None:
        self.method = method
        self.target = target
        """Path and query as the client sent them."""
        path = target.partition("?")[0]
        self.path = unquote(path) if "%" in path else path
        self.headers = headers
        """With names in lower case."""
        self.parts: dict[str, str] = {}
        """The parts of the path that matched `{name}` in the route."""
        self.read = read
        """Reads the complete body, decompressed. Call it once. Raises a `RefusedRequest`."""
        self.chunks = chunks
        """The body in pieces, up to this many bytes, as it is sent: it may be compressed. Call it once,
        and not `read`. Raises a `RefusedRequest`."""
        self.sink = sink
        self.client = client
        """The client's IP address, if it is known."""
        self.wants_websocket = wants_websocket
        self._query: dict[str, str] | None = None

    @property
    def has_body(self) -> bool:
        """Does the client announce a body?"""
        return "transfer-encoding" in self.headers or self.headers.get("content-length", "0") != "0"

    @property
    def query(self) -> dict[str, str]:
        """Query parameters. If a name is repeated, its first value."""
        if self._query is None:
            self._query = {}
            for name, value in parse_qsl(self.target.partition("?")[2], keep_blank_values=True):
                self._query.setdefault(name, value)
        return self._query
