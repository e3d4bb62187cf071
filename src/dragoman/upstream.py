"""One streaming HTTP call to an upstream, over one pool. Transport errors are mapped here, nowhere else."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from types import TracebackType

import aiohttp
from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector

from .events import Failed, FailureKind
from .protocols import failures

# An error body is a sentence or a page; nobody needs more of it.
MAX_ERROR_BODY = 64 * 1024


class UpstreamFailed(Exception):
    """The call failed before its answer began, or while it was running."""

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Pool:
    """The connections to all upstreams. Made once; never for a request."""

    def __init__(self, *, connections: int = 0) -> None:
        connector = TCPConnector(limit=connections, ttl_dns_cache=60)
        self._session = ClientSession(
            connector=connector,
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=True,
        )

    async def close(self) -> None:
        await self._session.close()

    def call(
        self,
        name: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        connect_timeout: float,
        idle_timeout: float,
    ) -> Call:
        """A POST to the upstream called `name`, not yet sent."""
        timeout = ClientTimeout(total=None, sock_connect=connect_timeout, sock_read=idle_timeout)
        return Call(self._session, name, url, body, headers, timeout)


class Call:
    """One call: `async with` sends it and waits for the answer's head; leaving cancels what is left."""

    def __init__(
        self,
        session: ClientSession,
        name: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        timeout: ClientTimeout,
    ) -> None:
        self._session = session
        self._name = name
        self._url = url
        self._body = body
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            **headers,
        }
        self._timeout = timeout
        self._response: ClientResponse | None = None

    async def __aenter__(self) -> Call:
        try:
            self._response = await self._session.post(
                self._url,
                data=self._body,
                headers=self._headers,
                timeout=self._timeout,
                allow_redirects=False,  # a credential never leaves its origin
            )
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UpstreamFailed(self._mapped(error)) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is not None:
            # Not released to the pool: whatever the upstream still sends must stop at once.
            self._response.close()

    @property
    def status(self) -> int:
        assert self._response is not None
        return self._response.status

    async def refusal(self) -> Failed:
        """The upstream's HTTP error, read as far as it matters."""
        assert self._response is not None
        try:
            body = await self._response.content.read(MAX_ERROR_BODY)
        except (TimeoutError, aiohttp.ClientError, OSError):
            body = b""
        failure = failures.from_body(self.status, body)
        return failures.with_retry_after(failure, self._response.headers.get("retry-after"))

    async def chunks(self) -> AsyncIterator[bytes]:
        """The answer's bytes, as much at a time as has arrived."""
        assert self._response is not None
        content = self._response.content
        try:
            while chunk := await content.readany():
                yield chunk
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise UpstreamFailed(self._mapped(error)) from None

    def _mapped(self, error: Exception) -> Failed:
        name = self._name
        match error:
            case asyncio.TimeoutError():
                return Failed(FailureKind.TIMEOUT, f"{name} did not answer in time", 504, "timeout")
            case aiohttp.ClientConnectorDNSError():
                message = f"{name}'s host {error.host!r} cannot be found; check its base_url"
                return Failed(FailureKind.UPSTREAM, message, 502, "dns")
            case ssl.SSLError() | aiohttp.ClientSSLError():
                message = f"{name} has no valid TLS certificate, or speaks no TLS"
                return Failed(FailureKind.UPSTREAM, message, 502, "tls")
            case aiohttp.ClientConnectorError():
                message = f"{name} refuses connections at {error.host}:{error.port}; is it running?"
                return Failed(FailureKind.UPSTREAM, message, 502, "connect")
            case _:
                message = f"the connection to {name} broke: {type(error).__name__}"
                return Failed(FailureKind.UPSTREAM, message, 502, "connection")
