"""One request, whichever way it came: over HTTP, as a message of a WebSocket, or from a test."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol
from urllib.parse import parse_qsl, unquote


class ClientGone(ConnectionError):
    """The client has left before its answer was sent."""


class Sink(Protocol):
    """Where the answer to a request goes."""

    @property
    def slow(self) -> bool:
        """Does the client read slower than it is written to?"""
        ...

    async def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of a streamed answer. Does not wait for the client."""
        ...

    async def write(self, data: bytes) -> None:
        """Send a piece of the body; wait while the client is slow. Raises `ClientGone`."""
        ...

    async def end(self, last: bytes = b"") -> None:
        """Send `last`; the answer is complete."""
        ...

    def abort(self) -> None:
        """Break the connection off, so that nobody takes what was sent for a whole answer."""
        ...


class WebSocket(Protocol):
    """An upgraded connection."""

    @property
    def slow(self) -> bool:
        """Does the client read slower than it is written to?"""
        ...

    async def receive(self) -> str | bytes | None:
        """The next message. None: the client has closed, or what it sent is too large or no WebSocket's."""
        ...

    async def send(self, text: str) -> None:
        """Send a text message. Raises `ClientGone`."""
        ...

    async def close(self, code: int = 1000, reason: str = "") -> None: ...


async def _no_body() -> bytes:
    return b""


class HttpRequest:
    """The head of a request, and the ways to read its body and to answer it."""

    __slots__ = (
        "_query", "client", "headers", "method", "parts", "path", "read", "sink", "target",
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
        client: str = "",
        wants_websocket: bool = False,
    ) -> None:
        self.method = method
        self.target = target
        """The path and the query as they were sent."""
        path = target.partition("?")[0]
        self.path = unquote(path) if "%" in path else path
        self.headers = headers
        """Names in lower case."""
        self.parts: dict[str, str] = {}
        """What the route's pattern took from the path."""
        self.read = read
        """The whole body, unpacked. To be called once. Raises a `Refusal`."""
        self.sink = sink
        self.client = client
        """The client's address, as far as it is known."""
        self.wants_websocket = wants_websocket
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """The first value of each name."""
        if self._query is None:
            self._query = {}
            for name, value in parse_qsl(self.target.partition("?")[2], keep_blank_values=True):
                self._query.setdefault(name, value)
        return self._query
