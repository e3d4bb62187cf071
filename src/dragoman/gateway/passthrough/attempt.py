"""One attempt to pass a request to one target, and its answer to the client."""

from __future__ import annotations

from ...credentials import CredentialError
from ...model.events import NO_USAGE, Failed, Usage
from ...protocols.base import Target
from ...protocols.common import failures
from ...protocols.common.failures import UpstreamFailed
from ...routing.router import ChosenTarget
from ...transport.client import Response, Upload
from ...transport.server import HttpAnswer, HttpResponse, Stream
from ..exchange.exchange import Exchange
from ..exchange.reply import answer_headers
from ..upstreams.call import UpstreamCall
from ..upstreams.keyring import NO_OUTGOING_HEADERS, OutgoingHeaders
from .links import gateway_url, to_gateway_url, with_gateway_urls, with_key
from .ownership import Ownership
from .request import PassedRequest

_ANSWERED = (
    "accept-ranges", "cache-control", "content-disposition", "content-range", "content-type", "etag",
    "last-modified", "retry-after",
)  # fmt: skip
"""The upstream's headers that pass to the client."""
_KEPT = 1024 * 1024
"""Bytes of a body that the ring and recordings keep. A longer one is only counted: a file would displace
everything else."""
_LARGEST_READ = 16 * 1024 * 1024
"""Bytes of an answer that is searched for token counts, or for URLs."""


class PassAttempt:
    """One attempt at one target."""

    def __init__(
        self, exchange: Exchange, passed: PassedRequest, owned: Ownership | None, choice: ChosenTarget
    ) -> None:
        """`owned`: the answer names files or batches, and the client may see its own only."""
        self.sent_headers = NO_OUTGOING_HEADERS
        self.has_no_key = False
        self.failure: Failed | None = None
        self.refusal: HttpResponse | None = None
        """The upstream's own error, as it is."""
        self._exchange = exchange
        self._passed = passed
        self._owned = owned
        self._choice = choice
        self._answer: HttpAnswer | None = None
        """The answer, as far as the client may have it."""
        self._body: bytes | None = None
        """The whole answer, unless it is too long to search it; None before its end."""

    async def run(self, refused: OutgoingHeaders | None) -> None:
        exchange, upstream, passed = self._exchange, self._choice.upstream, self._passed
        state, track, method = exchange.state, exchange.track, exchange.http.method
        url = passed.url(self._choice)
        body = passed.body_for(self._choice, state.config.server.max_upload)
        headers = self.sent_headers = await self._headers(url, body, refused)
        kept = recordable(body) if isinstance(body, bytes) else b""
        track.record_upstream_request(
            headers.redacted_url,
            headers.redacted,
            kept,
            None,
            again=False,
            key=headers.credential,
            secrets=headers.secrets,
        )
        try:
            async with UpstreamCall(state.pool, upstream, url, body, headers, method) as call:
                response = call.response = await call.send()
                track.record_upstream_status(response.status)
                if not 200 <= response.status < 300:
                    failure = await call.read_error()
                    track.record_upstream_bytes(call.error_body)
                    if response.status >= 400:
                        error, answered = call.redact_bytes(call.error_body), self._answer_headers(response)
                        self.refusal = HttpResponse(error, status=response.status, headers=answered)
                    raise UpstreamFailed(failure)
                self._body = await self._pass(response)
        except UpstreamFailed as error:
            if self.abort() is None:
                raise
            self.failure = error.failure
            track.attempt_failed(error.failure)

    def would_differ(self, target: Target) -> bool:
        return False

    def count(self, *, left: bool) -> Usage:
        endpoint, choice = self._passed.endpoint, self._choice
        if self._body is None or not endpoint.model:
            return NO_USAGE
        usage = endpoint.usage(self._body)
        self._exchange.spending.count_passed(choice.upstream, choice.model, usage)
        if not usage.known:
            self._exchange.track.count_unknown()
        return usage

    async def finish(self) -> HttpAnswer:
        assert self._answer is not None
        if isinstance(self._answer, Stream) and self.failure is None:
            await self._answer.end()
        return self._answer

    def abort(self) -> HttpAnswer | None:
        """Break the connection, so that the client does not take a part of an answer for all of it."""
        if not isinstance(self._answer, Stream):
            return None
        if self._exchange.http.sink is not None:
            self._exchange.http.sink.abort()
        return self._answer

    async def _headers(
        self, url: str, body: bytes | Upload, refused: OutgoingHeaders | None
    ) -> OutgoingHeaders:
        exchange = self._exchange
        try:
            return await exchange.state.keyring.passing_headers(
                self._choice.upstream,
                url,
                method=exchange.http.method,
                body=body if isinstance(body, bytes) else None,
                passed=self._passed.headers(uploads=isinstance(body, Upload)),
                refused=refused,
                caller=exchange.identity.key,
                betas=exchange.caller.betas,
            )
        except CredentialError as error:
            if error.fault == "client":
                raise
            self.has_no_key = True
            raise UpstreamFailed(failures.from_exception(error), retryable=False) from None

    def _answer_headers(self, response: Response) -> dict[str, str]:
        """The upstream's headers that pass to the client."""
        exchange, endpoints, gateway = self._exchange, self._exchange.client.endpoints, self._gateway
        headers = {name: response.headers[name] for name in _ANSWERED if name in response.headers}
        if endpoints.passed_headers:
            passed = response.headers.items()
            headers |= {name: value for name, value in passed if name.startswith(endpoints.passed_headers)}
        for name in endpoints.link_headers:
            if name in headers:
                url = to_gateway_url(headers[name], self._choice.upstream, gateway)
                headers[name] = with_key(url, gateway, exchange.state.keys, exchange.caller.keys)
        return headers | answer_headers(exchange.track)

    @property
    def _gateway(self) -> str:
        return gateway_url(self._exchange.http, secure=self._exchange.state.config.server.tls is not None)

    async def _pass(self, response: Response) -> bytes:
        """Pass the upstream's answer to the client while it arrives. Returns it, unless it is too long."""
        headers, upstream, http = self._answer_headers(response), self._choice.upstream, self._exchange.http
        endpoint = self._passed.endpoint
        if endpoint.links or self._owned is not None:
            body = await response.read(_LARGEST_READ)
            if self._owned is not None:
                body = await self._owned.process_answer(
                    upstream.name, endpoint, http.method, http.parts, body
                )
            body = with_gateway_urls(body, endpoint.links, upstream, self._gateway)
            self._record(body, 0)
            self._answer = HttpResponse(body, status=response.status, headers=headers)
            return body
        if "content-length" in response.headers and "content-encoding" not in response.headers:
            headers["content-length"] = response.headers["content-length"]
        stream = self._answer = Stream(http, response.status, headers)
        read: list[bytes] = []
        size = 0
        while chunk := await response.chunk():
            size = self._record(chunk, size)
            if endpoint.model and size <= _LARGEST_READ:
                read.append(chunk)
            await stream.write(chunk)
        return b"".join(read) if size <= _LARGEST_READ else b""

    def _record(self, chunk: bytes, size: int) -> int:
        """Record a piece of the answer, after `size` bytes. Returns the size with it."""
        track = self._exchange.track
        if size + len(chunk) <= _KEPT:
            track.record_upstream_bytes(chunk)
            track.record_client_bytes(chunk)
        else:
            track.count_unrecorded(len(chunk))
        return size + len(chunk)


def recordable(body: bytes) -> bytes:
    return body if len(body) <= _KEPT else b""
