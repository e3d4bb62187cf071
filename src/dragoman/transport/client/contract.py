"""What the rest of Dragoman may expect of an HTTP client, whichever library it is made with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Protocol, Self

import msgspec

NO_HEADERS: Mapping[str, str] = MappingProxyType({})
CONNECT_TIMEOUT = 30.0
IDLE_TIMEOUT = 300.0
NO_PROXY = "none"


class Network(msgspec.Struct, frozen=True):
    """How a place is reached. Requests with equal values share connections."""

    proxy: str | None = None
    """A proxy's URL; `none` for no proxy; None for what the environment says."""
    ca: bytes = b""
    """PEM certificates to trust besides those of the system."""
    client_cert: bytes = b""
    """PEM certificate and private key to show to the server."""

    def __repr__(self) -> str:
        """A proxy's URL may hold a password, and `client_cert` holds a key: neither is shown."""
        return "Network(…)"


DEFAULT_NETWORK = Network()
"""What the environment and the system say."""


class Response(Protocol):
    """An answer whose head is there. Read it to its end, or call `close` or `leave`."""

    status: int

    @property
    def headers(self) -> Mapping[str, str]:
        """Names are in lower case."""
        ...

    async def chunk(self) -> bytes:
        """The next piece of the body as soon as it comes, decompressed; empty at the end."""
        ...

    async def read(self, largest: int) -> bytes:
        """The body, or its first `largest` bytes."""
        ...

    async def close(self) -> None:
        """Stop the answer at once: closes the connection (HTTP/1.1) or resets the stream (HTTP/2)."""
        ...

    def leave(self) -> None:
        """Enough was read: if the rest is short and comes soon, the connection is kept."""
        ...


class Client(Protocol):
    """One for all origins. It pools connections, never follows redirects, and stores no cookies."""

    async def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] = NO_HEADERS,
        body: bytes = b"",
        connect_timeout: float = CONNECT_TIMEOUT,
        idle_timeout: float = IDLE_TIMEOUT,
        network: Network = DEFAULT_NETWORK,
    ) -> Response:
        """The answer, once its head is there; an `HttpError` where there is none.

        A request is repeated once if a kept connection turns out to be closed. Cancelling stops the request.
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
"""Makes a client whose requests have these headers unless they say otherwise."""
