"""The interface of the HTTP client. The rest of Dragoman knows only this, not the library behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Protocol, Self

import msgspec

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
CONNECT_TIMEOUT = 30.0
IDLE_TIMEOUT = 300.0
NO_PROXY = "none"


class Network(msgspec.Struct, frozen=True):
    """How to reach a server. Requests with equal values share connections."""

    proxy: str | None = None
    """The URL of a proxy; `none`: no proxy; None: as the environment says (`HTTPS_PROXY`, …)."""
    ca: bytes = b""
    """PEM certificates to trust in addition to those of the system."""
    client_cert: bytes = b""
    """PEM certificate and private key for client authentication (mutual TLS)."""

    def __repr__(self) -> str:
        """A proxy's URL may hold a password, and `client_cert` holds a key: neither is shown."""
        return "Network(…)"


DEFAULT_NETWORK = Network()
"""The proxy of the environment, and the certificates of the system."""


class Upload(msgspec.Struct, frozen=True):
    """A request body that is sent while it arrives. It cannot be sent twice."""

    chunks: AsyncIterator[bytes]
    """The pieces of the body. An exception that it raises stops the request, and `request` raises it."""
    length: int | None = None
    """The size in bytes; None: unknown."""


class Response(Protocol):
    """An answer whose head has arrived. Read it to its end, or call `close` or `release`."""

    status: int

    @property
    def headers(self) -> Mapping[str, str]:
        """Names are in lower case."""
        ...

    async def chunk(self) -> bytes:
        """The next piece of the body as soon as it arrives, decompressed; empty at the end."""
        ...

    async def read(self, largest: int) -> bytes:
        """The body, or its first `largest` bytes."""
        ...

    async def close(self) -> None:
        """Stop the answer at once: closes the connection (HTTP/1.1) or resets the stream (HTTP/2)."""
        ...

    def release(self) -> None:
        """Read no more. The connection is kept if the rest of the body is short and arrives soon."""
        ...


class Client(Protocol):
    """One client for all origins. It pools connections, never follows redirects, and stores no cookies.

    A redirect could lead a request with its credential to another host.
    """

    async def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes | Upload = b"",
        connect_timeout: float = CONNECT_TIMEOUT,
        idle_timeout: float = IDLE_TIMEOUT,
        network: Network = DEFAULT_NETWORK,
    ) -> Response:
        """Send a request. Returns as soon as the head of the answer is there, or raises `HttpError`.

        The client sends the request once more if a kept connection turns out to be closed, unless its body
        is an `Upload`. Cancelling the call stops the request.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


OpenClient = Callable[[Mapping[str, str]], Client]
"""Makes a client with default headers. A request may replace each of them."""
