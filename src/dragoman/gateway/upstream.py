"""One streaming HTTP call to an upstream, over one pool. Transport errors are mapped here, nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Mapping
from types import TracebackType
from urllib.parse import urljoin

import msgspec

from ..config.types import UpstreamConfig
from ..credentials.secret import Secret
from ..model.events import Failed, FailureKind
from ..observe.tap import Redactor, sent_secrets
from ..protocols.common import failures
from ..protocols.common.failures import UpstreamFailed
from ..routing.retry_after import retry_delay
from ..transport.client import (
    BadTls,
    CannotConnect,
    ConnectTimeout,
    HttpError,
    Network,
    NoDescriptor,
    OpenClient,
    ProxyRefused,
    Response,
    UnknownCoding,
    UnknownHost,
    Unsendable,
    open_client,
)
from ..transport.urls import parse

# An error body is a sentence or a page; nobody needs more of it, nor waits for it long.
MAX_ERROR_BODY = 64 * 1024
_ERROR_PATIENCE = 10.0
_ALWAYS = {
    "accept": "text/event-stream, application/json",
    "accept-encoding": "identity",
    "content-type": "application/json",
}
_CODES: dict[type, str] = {BadTls: "tls", ProxyRefused: "proxy", UnknownCoding: "coding"}
_LISTING = {"accept": "application/json", "accept-encoding": "gzip, deflate, br, zstd"}


class Pool:
    """The connections to all upstreams, by which each `Call` is made. Made once; never for a request."""

    def __init__(self, client: OpenClient = open_client) -> None:
        self.client = client(_ALWAYS)

    async def close(self) -> None:
        await self.client.close()

    async def get(
        self, url: str, headers: Mapping[str, str], upstream: UpstreamConfig, *, largest: int
    ) -> tuple[int, bytes]:
        """Status and body of a small question, the body as far as `largest` bytes."""
        response = await self.client.ask(
            "GET",
            url,
            {**_LISTING, **headers},
            connect_timeout=upstream.connect_timeout,
            network=upstream.network,
        )
        try:
            return response.status, await response.read(largest)
        finally:
            await response.close()


class Call:
    """A POST to the upstream called `name`.

    Use it with `async with`: leaving cancels what is left of it, and says how it failed.
    """

    __slots__ = (
        "_body",
        "_client",
        "_connect_timeout",
        "_idle_timeout",
        "_name",
        "_network",
        "_url",
        "headers",
        "refused_with",
        "response",
    )

    def __init__(
        self,
        pool: Pool,
        name: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        connect_timeout: float,
        idle_timeout: float,
        network: Network,
    ) -> None:
        self._client = pool.client
        self._name = name
        self._url = url
        self._body = body
        self.headers = headers
        """What it is sent with."""
        self._connect_timeout = connect_timeout
        self._idle_timeout = idle_timeout
        self._network = network
        self.response: Response | None = None
        """Where who asked puts it, from its head on."""
        self.refused_with = b""
        """The body of an HTTP error, as far as it was read."""

    async def __aenter__(self) -> Call:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        response = self.response
        if kind is None:
            if response is not None:
                response.leave()
            return
        if response is not None:
            # Not kept open: whatever the upstream still sends must stop at once.
            await response.close()
        if isinstance(error, HttpError):
            raise self.mapped(error.with_traceback(None)) from None

    def ask(self) -> Awaitable[Response]:
        """Once. Its answer, so far that its head is there."""
        body, self._body = self._body, b""  # nobody else needs it
        return self._client.ask(
            "POST",
            self._url,
            self.headers,
            body,
            self._connect_timeout,
            self._idle_timeout,
            self._network,
        )

    async def refusal(self) -> Failed:
        """The upstream's HTTP error, read as far as it matters."""
        response = self.response
        assert response is not None
        if 300 <= response.status < 400:
            return self._redirected(response.status, response.headers.get("location", ""))
        self.refused_with = await _error_body(response)
        failure = failures.from_body(response.status, self.refused_with)
        wait = retry_delay(response.headers, time.time())
        if wait is not None:
            failure = msgspec.structs.replace(failure, retry_after=wait)
        return self.redacted(failure)

    def redacted(self, failure: Failed) -> Failed:
        """Some upstreams repeat the key they refuse; it is theirs and ours, not the client's."""
        message = Redactor().scrub_text(failure.message, self._secrets())
        return msgspec.structs.replace(failure, message=message)

    def without_secrets(self, data: bytes) -> bytes:
        """The same for what is written already."""
        return Redactor().scrub(data, self._secrets())

    def _secrets(self) -> tuple[Secret, ...]:
        return sent_secrets(self.headers, self._url)

    def _redirected(self, status: int, location: str) -> Failed:
        try:
            where = parse(urljoin(self._url, location)).origin
        except ValueError:
            where = "nowhere"
        message = (
            f"{self._name} redirects to {where} (HTTP {status}), and a credential does not follow; "
            "set its base_url to where it lives now"
        )
        return Failed(FailureKind.UPSTREAM, message, 502, "redirect")

    def mapped(self, error: Exception) -> UpstreamFailed:
        """What a failure of the connection is to whoever asked."""
        name = self._name
        again = True
        match error:
            case ConnectTimeout():
                message = (
                    f"{name} cannot be reached within {self._connect_timeout:g} seconds (connect_timeout)"
                )
                kind, code = FailureKind.TIMEOUT, "timeout"
            case TimeoutError():
                message = f"{name} said nothing for {self._idle_timeout:g} seconds (idle_timeout)"
                kind, code = FailureKind.TIMEOUT, "timeout"
                again = False  # waited long enough: another one is the better hope
            case NoDescriptor():  # nobody's fault but this machine's, and asking again needs one too
                message = f"{name} {error}"
                kind, code = FailureKind.OVERLOADED, "descriptors"
                again = False
            case UnknownHost():
                message = f"{name}'s host {error.host!r} cannot be found; check its base_url"
                kind, code = FailureKind.UPSTREAM, "dns"
            case BadTls() | ProxyRefused() | UnknownCoding():
                message = f"{name} {error}"
                kind, code = FailureKind.UPSTREAM, _CODES[type(error)]
                again = False
            case CannotConnect():
                message = f"{name} refuses connections at {error.host}:{error.port}; is it running?"
                kind, code = FailureKind.UPSTREAM, "connect"
            case Unsendable():  # which text it is, is not told: it may be the key
                message = (
                    f"the key for {name}, or another header for it, has characters that no header can hold"
                )
                kind, code = FailureKind.AUTHENTICATION, "unsendable"
                again = False
            case _:
                message = f"the connection to {name} broke: {type(error).__name__}"
                kind, code = FailureKind.UPSTREAM, "connection"
        return UpstreamFailed(Failed(kind, message, failures.STATUS[kind], code), retryable=again)


async def _error_body(response: Response) -> bytes:
    parts: list[bytes] = []
    left = MAX_ERROR_BODY
    with contextlib.suppress(HttpError, TimeoutError):
        async with asyncio.timeout(_ERROR_PATIENCE):
            while left > 0 and (chunk := await response.chunk()):
                parts.append(chunk[:left])
                left -= len(chunk)
    return b"".join(parts)
