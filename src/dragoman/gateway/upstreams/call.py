"""Streaming HTTP calls to upstreams. This is the only place that maps transport errors to failures."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from types import TracebackType
from urllib.parse import urljoin

import msgspec

from ...config.types import UpstreamConfig
from ...credentials.secret import Secret
from ...model.events import Failed, FailureKind
from ...model.messages import Extras
from ...observe.tap import Redactor, Track, sent_secrets
from ...protocols.common import failures
from ...protocols.common.failures import UpstreamFailed
from ...routing.retry_after import retry_delay
from ...transport.client import (
    BadTls,
    CannotConnect,
    ConnectTimeout,
    HttpError,
    NoDescriptor,
    OpenClient,
    ProxyRefused,
    Response,
    UnknownCoding,
    UnknownHost,
    Unsendable,
    Upload,
    open_client,
)
from ...transport.urls import parse
from .keyring import CALL_HEADERS

# An error body is a sentence or an HTML page. The rest of a longer or slower one is not read.
MAX_ERROR_BODY = 64 * 1024
_ERROR_TIMEOUT = 10.0
# AWS names the error there: `ThrottlingException:http://…`. Its bodies have only a message.
_ERROR_NAME = "x-amzn-errortype"
_CODES: dict[type, str] = {BadTls: "tls", ProxyRefused: "proxy", UnknownCoding: "coding"}
_LIST_HEADERS = {"accept": "application/json", "accept-encoding": "gzip, deflate, br, zstd"}


class Pool:
    """The connections to all upstreams. One pool per process serves every `UpstreamCall`."""

    def __init__(self, client: OpenClient = open_client) -> None:
        self.client = client(CALL_HEADERS)

    async def close(self) -> None:
        await self.client.close()

    async def get(
        self, url: str, headers: Mapping[str, str], upstream: UpstreamConfig, *, max_size: int
    ) -> tuple[int, bytes]:
        """GET `url`. Returns the status and the first `max_size` bytes of the body."""
        response = await self.client.request(
            "GET",
            url,
            {**_LIST_HEADERS, **headers},
            connect_timeout=upstream.connect_timeout,
            network=upstream.network,
        )
        try:
            return response.status, await response.read(max_size)
        finally:
            await response.close()


class UpstreamCall:
    """One request to an upstream, usually a POST.

    Use it with `async with`. The exit releases or closes the connection, and raises a transport error as
    `UpstreamFailed`.
    """

    __slots__ = (
        "_body", "_client", "_headers", "_method", "_track", "_upstream", "_url", "error_body", "response",
    )  # fmt: skip

    def __init__(
        self,
        pool: Pool,
        upstream: UpstreamConfig,
        url: str,
        body: bytes | Upload,
        headers: Mapping[str, str],
        method: str = "POST",
        track: Track | None = None,
    ) -> None:
        """`track` records the answer's status, and the body of an error."""
        self._client = pool.client
        self._upstream = upstream
        self._url = url
        self._body = body
        self._headers = headers
        self._method = method
        self._track = track
        self.response: Response | None = None
        self.error_body = b""
        """The body of an HTTP error, as far as it was read."""

    async def __aenter__(self) -> UpstreamCall:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        response = self.response
        if kind is None:
            if response is not None:
                response.release()
            return
        if response is not None:
            # Closed, not released: a model that still generates must stop, and stop costing money.
            await response.close()
        if isinstance(error, HttpError):
            raise self.failed(error.with_traceback(None)) from None

    async def send(self) -> Response:
        """Send the request, once. Returns when the head of a successful response is here."""
        body, self._body = self._body, b""  # a long answer must not hold a large request in memory
        response = self.response = await self._client.request(
            self._method,
            self._url,
            self._headers,
            body,
            self._upstream.connect_timeout,
            self._upstream.idle_timeout,
            self._upstream.network,
        )
        if self._track is not None:
            self._track.record_upstream_status(response.status)
        if 200 <= response.status < 300:
            return response
        failure = await self._read_error(response)
        if self._track is not None:
            self._track.record_upstream_bytes(self.error_body)
        # A redirect is the same at the next try.
        raise UpstreamFailed(failure, retryable=response.status >= 400)

    async def _read_error(self, response: Response) -> Failed:
        """Read the body of an HTTP error, and turn it into a failure."""
        if 300 <= response.status < 400:
            return self._redirected(response.status, response.headers.get("location", ""))
        self.error_body = await _error_body(response)
        name = response.headers.get(_ERROR_NAME, "")
        failure = failures.from_body(response.status, self.error_body, name)
        wait = retry_delay(response.headers, time.time())
        if wait is not None:
            failure = msgspec.structs.replace(failure, retry_after=wait)
        return self.redact(failure)

    def redact(self, failure: Failed) -> Failed:
        """Remove the key from a failure: some upstreams quote the key that they refuse."""
        message, extras = Redactor().scrub_text(failure.message, self._secrets()), failure.extras
        if extras is not None:
            members = msgspec.json.decode(self.redact_bytes(msgspec.json.encode(extras.members)))
            extras = Extras(extras.protocol, members)
        return msgspec.structs.replace(failure, message=message, extras=extras)

    def redact_bytes(self, data: bytes) -> bytes:
        """The same for an encoded failure."""
        return Redactor().scrub(data, self._secrets())

    def _secrets(self) -> tuple[Secret, ...]:
        return sent_secrets(self._headers, self._url)

    def _redirected(self, status: int, location: str) -> Failed:
        try:
            where = parse(urljoin(self._url, location)).origin
        except ValueError:
            where = "an invalid address"
        message = (
            f"{self._upstream.name} redirects to {where} (HTTP {status}), and Dragoman sends no credential "
            "to another address; set its base_url to the new address"
        )
        return Failed(FailureKind.UPSTREAM, message, 502, "redirect")

    def failed(self, error: Exception) -> UpstreamFailed:
        name = self._upstream.name
        again = True
        match error:
            case ConnectTimeout():
                waited = f"{self._upstream.connect_timeout:g} seconds (connect_timeout)"
                message = f"{name} accepts no connection within {waited}"
                kind, code = FailureKind.TIMEOUT, "timeout"
            case TimeoutError():
                message = f"{name} sent nothing for {self._upstream.idle_timeout:g} seconds (idle_timeout)"
                kind, code = FailureKind.TIMEOUT, "timeout"
                again = False  # the client has waited long: another target is more likely to answer in time
            case NoDescriptor():  # a limit of this machine; a retry needs a descriptor as well
                message = f"{name} {error}"
                kind, code = FailureKind.OVERLOADED, "descriptors"
                again = False
            case UnknownHost():
                message = f"the host {error.host!r} of {name} was not found; check its base_url"
                kind, code = FailureKind.UPSTREAM, "dns"
            case BadTls() | ProxyRefused() | UnknownCoding():
                message = f"{name} {error}"
                kind, code = FailureKind.UPSTREAM, _CODES[type(error)]
                again = False
            case CannotConnect():
                message = f"{name} refuses connections at {error.host}:{error.port}; is it running?"
                kind, code = FailureKind.UPSTREAM, "connect"
            case Unsendable():  # the message does not quote the header: it may be the key
                message = f"the key for {name}, or another header for it, holds characters that HTTP forbids"
                kind, code = FailureKind.AUTHENTICATION, "unsendable"
                again = False
            case _:
                message = f"{name} {error}" if str(error) else f"the connection to {name} broke"
                kind, code = FailureKind.UPSTREAM, "connection"
        return UpstreamFailed(Failed(kind, message, failures.STATUS[kind], code), retryable=again)


async def _error_body(response: Response) -> bytes:
    parts: list[bytes] = []
    left = MAX_ERROR_BODY
    with contextlib.suppress(HttpError, TimeoutError):
        async with asyncio.timeout(_ERROR_TIMEOUT):
            while left > 0 and (chunk := await response.chunk()):
                parts.append(chunk[:left])
                left -= len(chunk)
    return b"".join(parts)
