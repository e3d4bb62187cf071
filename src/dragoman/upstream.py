"""One streaming HTTP call to an upstream, over one pool. Transport errors are mapped here, nowhere else."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from urllib.parse import urljoin

import msgspec

from .events import Failed, FailureKind
from .http.client import (
    BadTls,
    Body,
    CannotConnect,
    Client,
    ConnectTimeout,
    HttpError,
    Response,
    UnknownHost,
)
from .http.urls import parse
from .protocols import failures
from .secret import Secret
from .waits import asked_wait

# An error body is a sentence or a page; nobody needs more of it, nor waits for it long.
MAX_ERROR_BODY = 64 * 1024
_ERROR_PATIENCE = 10.0
_ALWAYS = {"accept": "text/event-stream, application/json", "accept-encoding": "identity"}
_LISTING = {"accept": "application/json", "accept-encoding": "gzip, deflate"}
_NO_SECRETS = frozenset({*_ALWAYS, "content-type", "anthropic-version", "anthropic-beta"})


class UpstreamFailed(Exception):
    """The call failed before its answer began, or while it was running."""

    def __init__(self, failure: Failed, *, again: bool = True) -> None:
        super().__init__(failure.message)
        self.failure = failure
        self.again = again
        """May the same be asked of the same target once more?"""


class Pool:
    """The connections to all upstreams. Made once; never for a request."""

    def __init__(self) -> None:
        self.client = Client(_ALWAYS)

    async def close(self) -> None:
        await self.client.close()

    async def call(
        self,
        name: str,
        url: str,
        body: Body,
        headers: Mapping[str, str],
        *,
        connect_timeout: float,
        idle_timeout: float,
    ) -> Call:
        """A POST to the upstream called `name`, answered so far that its head is there."""
        call = Call(name, url, headers, connect_timeout, idle_timeout)
        try:
            call.response = await self.client.ask(
                "POST", url, call.headers, body, connect_timeout=connect_timeout, idle_timeout=idle_timeout
            )
        except (HttpError, OSError) as error:
            raise call.mapped(error) from None
        except ValueError:
            raise UpstreamFailed(_unsendable(name), again=False) from None
        return call

    async def get(self, url: str, headers: Mapping[str, str], *, largest: int) -> tuple[int, bytes]:
        """Status and body of a small question, the body as far as `largest` bytes."""
        response = await self.client.ask("GET", url, {**_LISTING, **headers})
        try:
            return response.status, await response.read(largest)
        finally:
            response.close()


def _unsendable(name: str) -> Failed:
    """Which text it is, is not told: it may be the key."""
    message = f"the key for {name}, or another header for it, has characters that no header can hold"
    return Failed(FailureKind.AUTHENTICATION, message, 401, "unsendable")


class Call:
    """One call: `with` it, because leaving cancels what is left of it."""

    __slots__ = (
        "_connect_timeout",
        "_idle_timeout",
        "_name",
        "_url",
        "headers",
        "refused_with",
        "response",
    )

    def __init__(
        self, name: str, url: str, headers: Mapping[str, str], connect_timeout: float, idle_timeout: float
    ) -> None:
        self._name = name
        self._url = url
        self.headers = {"content-type": "application/json", **headers}
        """What it is sent with."""
        self._connect_timeout = connect_timeout
        self._idle_timeout = idle_timeout
        self.response: Response | None = None
        """From its head on."""
        self.refused_with = b""
        """The body of an HTTP error, as far as it was read."""

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.response is None:
            return
        if kind is None:
            self.response.leave()
        else:
            # Not kept open: whatever the upstream still sends must stop at once.
            self.response.close()

    @property
    def status(self) -> int:
        assert self.response is not None
        return self.response.status

    async def refusal(self) -> Failed:
        """The upstream's HTTP error, read as far as it matters."""
        assert self.response is not None
        if 300 <= self.status < 400:
            return self._redirected(self.response.headers.get("location", ""))
        self.refused_with = await self._error_body()
        failure = failures.from_body(self.status, self.refused_with)
        wait = asked_wait(self.response.headers, time.time())
        if wait is not None:
            failure = msgspec.structs.replace(failure, retry_after=wait)
        return self.redacted(failure)

    async def chunk(self) -> bytes:
        """More of the answer, as much as has arrived; nothing when it is over.

        Not an iterator: one that is left before its end costs a task to finish it.
        """
        assert self.response is not None
        try:
            return await self.response.chunk()
        except (HttpError, OSError) as error:
            raise self.mapped(error) from None

    async def pour(self, take: Callable[[bytes], bool]) -> bool:
        """Give `take` what arrives, as it does, until it wants no more for now. False: the answer is over."""
        assert self.response is not None
        try:
            return await self.response.pour(take)
        except HttpError as error:
            raise self.mapped(error) from None

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
        for header, value in self.headers.items():
            secret = value.removeprefix("Bearer ")
            if header.lower() not in _NO_SECRETS and len(secret) >= 8:
                yield secret

    async def _error_body(self) -> bytes:
        assert self.response is not None
        parts: list[bytes] = []
        left = MAX_ERROR_BODY
        with contextlib.suppress(HttpError, TimeoutError):
            async with asyncio.timeout(_ERROR_PATIENCE):
                while left > 0 and (chunk := await self.response.chunk()):
                    parts.append(chunk[:left])
                    left -= len(chunk)
        return b"".join(parts)

    def _redirected(self, location: str) -> Failed:
        try:
            where = parse(urljoin(self._url, location)).origin
        except ValueError:
            where = "nowhere"
        message = (
            f"{self._name} redirects to {where} (HTTP {self.status}), and a credential does not follow; "
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
            case UnknownHost():
                message = f"{name}'s host {error.host!r} cannot be found; check its base_url"
                kind, code = FailureKind.UPSTREAM, "dns"
            case BadTls():
                message = f"{name} has no valid TLS certificate, or speaks no TLS"
                kind, code = FailureKind.UPSTREAM, "tls"
                again = False
            case CannotConnect():
                message = f"{name} refuses connections at {error.host}:{error.port}; is it running?"
                kind, code = FailureKind.UPSTREAM, "connect"
            case _:
                message = f"the connection to {name} broke: {type(error).__name__}"
                kind, code = FailureKind.UPSTREAM, "connection"
        return UpstreamFailed(Failed(kind, message, failures.STATUS[kind], code), again=again)
