"""One streaming HTTP call to an upstream, over one pool. Transport errors are mapped here, nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import io
import ssl
import time
import urllib.request
from collections.abc import Iterator, Mapping
from types import TracebackType

import aiohttp
import msgspec
from aiohttp import ClientResponse, ClientSession, ClientTimeout, TCPConnector
from yarl import URL

from .events import Failed, FailureKind
from .protocols import failures
from .secret import Secret
from .waits import asked_wait

# An error body is a sentence or a page; nobody needs more of it, nor waits for it long.
MAX_ERROR_BODY = 64 * 1024
_ERROR_PATIENCE = 10.0
# After an answer's last word only the end of the transfer is missing. Waiting that long for it, behind the
# client's back, saves the next request a new connection.
_LINGER = 0.5
_LINGER_BYTES = 16 * 1024
# A body as large as that is sent in pieces, so that others get a turn.
_LARGE = 1024 * 1024
# Bytes a second. An upstream that takes the request slower than that does not take it.
_SLOWEST_UPLOAD = 64 * 1024
_NO_SECRETS = frozenset({"content-type", "accept", "accept-encoding", "anthropic-version", "anthropic-beta"})


class UpstreamFailed(Exception):
    """The call failed before its answer began, or while it was running."""

    def __init__(self, failure: Failed, *, again: bool = True) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.again = again
        """May the same be asked of the same target once more?"""


class Pool:
    """The connections to all upstreams. Made once; never for a request."""

    def __init__(self, *, connections: int = 0) -> None:
        connector = TCPConnector(limit=connections, ttl_dns_cache=60)
        self._session = ClientSession(
            connector=connector,
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            # Proxies are looked up below. What else this means is harm: logins from a netrc file, read for
            # every request, would get into the way of the upstream's own credential.
            trust_env=False,
        )
        self._proxies: dict[tuple[str, str], str | None] = {}
        self._lingering: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        for task in tuple(self._lingering):
            task.cancel()
        await asyncio.gather(*self._lingering, return_exceptions=True)
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
        return Call(self, name, url, body, headers, connect_timeout, idle_timeout)

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], limits: ClientTimeout
    ) -> ClientResponse:
        """The answer's head."""
        return await self._session.post(
            url,
            data=body if len(body) < _LARGE else io.BytesIO(body),
            headers=headers,
            timeout=limits,
            proxy=self._proxy(url),
            allow_redirects=False,  # a credential never leaves its origin
        )

    async def get(self, url: str, headers: Mapping[str, str], *, largest: int) -> tuple[int, bytes]:
        """Status and body of a small question, the body as far as `largest` bytes."""
        asked = self._session.get(url, headers=headers, proxy=self._proxy(url), allow_redirects=False)
        body = b""
        async with asked as response:
            while len(body) < largest and (chunk := await response.content.readany()):
                body += chunk
            return response.status, body[:largest]

    def linger(self, response: ClientResponse) -> None:
        """The answer is over but for the end of its transfer: wait a moment for it, keep the connection."""
        task = asyncio.get_running_loop().create_task(_until_its_end(response))
        self._lingering.add(task)
        task.add_done_callback(self._lingering.discard)

    def _proxy(self, url: str) -> str | None:
        """What the environment says, looked up once for each origin."""
        parsed = URL(url)
        origin = (parsed.scheme, parsed.authority)
        if origin not in self._proxies:
            self._proxies[origin] = proxy_for(parsed)
        return self._proxies[origin]


def proxy_for(url: URL) -> str | None:
    """The proxy for `url` by `https_proxy`, `no_proxy` and so on. None reaches our own loopback."""
    host = url.host or ""
    if host in ("localhost", "127.0.0.1", "::1") or urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(url.scheme)


async def _until_its_end(response: ClientResponse) -> None:
    left = _LINGER_BYTES
    try:
        with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(_LINGER):
                while left > 0 and (chunk := await response.content.readany()):
                    left -= len(chunk)
    finally:
        response.close()  # does nothing where the end was reached: then the pool has the connection


def _unsendable(name: str) -> Failed:
    """Nothing of the text that aiohttp complains about is told: it may be the key."""
    message = f"the key for {name}, or another header for it, has characters that no header can hold"
    return Failed(FailureKind.AUTHENTICATION, message, 401, "unsendable")


class Call:
    """One call: `async with` sends it and waits for the answer's head; leaving cancels what is left."""

    def __init__(
        self,
        pool: Pool,
        name: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        connect_timeout: float,
        idle_timeout: float,
    ) -> None:
        self._pool = pool
        self._name = name
        self._url = url
        self._body = body
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream, application/json",
            "accept-encoding": "identity",
            **headers,
        }
        self._timeout = ClientTimeout(
            total=None, connect=connect_timeout, sock_connect=connect_timeout, sock_read=idle_timeout
        )
        # `sock_read` begins when the request is sent; an upstream that never takes all of it must end too.
        self._head_timeout = connect_timeout + idle_timeout + len(body) / _SLOWEST_UPLOAD
        self._response: ClientResponse | None = None
        self.refused_with = b""
        """The body of an HTTP error, as far as it was read."""

    async def __aenter__(self) -> Call:
        try:
            async with asyncio.timeout(self._head_timeout):
                self._response = await self._pool.post(self._url, self._body, self._headers, self._timeout)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._mapped(error) from None
        except ValueError:
            raise UpstreamFailed(_unsendable(self._name), again=False) from None
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is None:
            return
        if kind is None and not self._response.content.at_eof():
            self._pool.linger(self._response)
        else:
            # Not released to the pool: whatever the upstream still sends must stop at once.
            self._response.close()

    @property
    def status(self) -> int:
        assert self._response is not None
        return self._response.status

    async def refusal(self) -> Failed:
        """The upstream's HTTP error, read as far as it matters."""
        assert self._response is not None
        if 300 <= self.status < 400:
            return self._redirected(self._response.headers.get("location", ""))
        self.refused_with = await self._error_body()
        failure = failures.from_body(self.status, self.refused_with)
        wait = asked_wait(self._response.headers, time.time())
        if wait is not None:
            failure = msgspec.structs.replace(failure, retry_after=wait)
        return self.redacted(failure)

    async def chunk(self) -> bytes:
        """More of the answer, as much as has arrived; nothing when it is over.

        Not an iterator: one that is left before its end costs a task to finish it.
        """
        assert self._response is not None
        try:
            return await self._response.content.readany()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._mapped(error) from None

    async def body(self) -> bytes:
        """All of the answer."""
        chunks: list[bytes] = []
        while chunk := await self.chunk():
            chunks.append(chunk)
        return b"".join(chunks)

    def redacted(self, failure: Failed) -> Failed:
        """Some upstreams repeat the key they refuse; it is theirs and ours, not the client's."""
        message = failure.message
        for secret in self._secrets():
            message = message.replace(secret, str(Secret(secret)))
        return msgspec.structs.replace(failure, message=message)

    def without_secrets(self, data: bytes) -> bytes:
        """The same for what is written already."""
        for secret in self._secrets():
            data = data.replace(msgspec.json.encode(secret)[1:-1], str(Secret(secret)).encode())
        return data

    def _secrets(self) -> Iterator[str]:
        for header, value in self._headers.items():
            secret = value.removeprefix("Bearer ")
            if header.lower() not in _NO_SECRETS and len(secret) >= 8:
                yield secret

    async def _error_body(self) -> bytes:
        assert self._response is not None
        body = b""
        with contextlib.suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(_ERROR_PATIENCE):
                while len(body) < MAX_ERROR_BODY and (chunk := await self._response.content.readany()):
                    body += chunk
        return body[:MAX_ERROR_BODY]

    def _redirected(self, location: str) -> Failed:
        try:
            where = URL(self._url).join(URL(location)).origin()
        except ValueError:
            where = "nowhere"
        message = (
            f"{self._name} redirects to {where} (HTTP {self.status}), and a credential does not follow; "
            "set its base_url to where it lives now"
        )
        return Failed(FailureKind.UPSTREAM, message, 502, "redirect")

    def _mapped(self, error: Exception) -> UpstreamFailed:
        name, timeout = self._name, self._timeout
        again = True
        match error:
            case aiohttp.ConnectionTimeoutError():
                message = (
                    f"{name} cannot be reached within {timeout.sock_connect:g} seconds (connect_timeout)"
                )
                kind, code = FailureKind.TIMEOUT, "timeout"
            case TimeoutError():
                message = f"{name} said nothing for {timeout.sock_read:g} seconds (idle_timeout)"
                kind, code = FailureKind.TIMEOUT, "timeout"
                again = False  # waited long enough: another one is the better hope
            case aiohttp.ClientConnectorDNSError():
                message = f"{name}'s host {error.host!r} cannot be found; check its base_url"
                kind, code = FailureKind.UPSTREAM, "dns"
            case ssl.SSLError() | aiohttp.ClientSSLError():
                message = f"{name} has no valid TLS certificate, or speaks no TLS"
                kind, code = FailureKind.UPSTREAM, "tls"
                again = False
            case aiohttp.ClientConnectorError():
                message = f"{name} refuses connections at {error.host}:{error.port}; is it running?"
                kind, code = FailureKind.UPSTREAM, "connect"
            case _:
                message = f"the connection to {name} broke: {type(error).__name__}"
                kind, code = FailureKind.UPSTREAM, "connection"
        return UpstreamFailed(Failed(kind, message, failures.STATUS[kind], code), again=again)
