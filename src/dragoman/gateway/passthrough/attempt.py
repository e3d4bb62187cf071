"""One attempt to pass a request to one target, and its answer to the client."""

from __future__ import annotations

from ...model.events import NO_USAGE, Usage
from ...observe.tracing import AttemptTrace
from ...protocols.common.failures import UpstreamFailed
from ...routing.router import ChosenTarget
from ...transport.client import Response, Upload
from ...transport.server import HttpAnswer, HttpResponse, Stream
from ..exchange.attempt import KEPT, Attempt
from ..exchange.exchange import Exchange
from ..exchange.reply import answer_headers
from ..upstreams.call import UpstreamCall
from ..upstreams.keyring import OutgoingHeaders
from .links import gateway_url, to_gateway_url, with_gateway_urls, with_key
from .ownership import Ownership
from .request import PassedRequest

_ANSWERED = (
    "accept-ranges", "cache-control", "content-disposition", "content-range", "content-type", "etag",
    "last-modified", "retry-after",
)  # fmt: skip
"""The upstream's headers that pass to the client."""
_LARGEST_READ = 16 * 1024 * 1024
"""Bytes of an answer that is searched for token counts, or for URLs."""


class PassAttempt(Attempt):
    """One attempt to pass a request to one target."""

    def __init__(
        self,
        exchange: Exchange,
        passed: PassedRequest,
        owned: Ownership | None,
        choice: ChosenTarget,
        trace: AttemptTrace | None,
    ) -> None:
        """`owned`: the answer names files or batches, and the client may see its own only."""
        super().__init__(exchange, choice, trace)
        self.refusal: HttpResponse | None = None
        """The upstream's own error, as it is."""
        self._passed = passed
        self._owned = owned
        self._answer: HttpAnswer | None = None
        """The answer, as far as the client may have it."""
        self._body: bytes | None = None
        """The whole answer, unless it is too long to search it; None before its end."""

    async def run(self, refused: OutgoingHeaders | None) -> None:
        exchange, upstream, passed = self._exchange, self._choice.upstream, self._passed
        url = passed.url(self._choice)
        body = passed.body_for(self._choice, self._state.config.server.max_upload)
        headers = self._state.upstreams.keyring.passing_headers(
            upstream,
            url,
            method=exchange.http.method,
            body=body if isinstance(body, bytes) else None,
            passed=passed.headers(uploads=isinstance(body, Upload)),
            refused=refused,
            caller=exchange.identity.key,
            betas=exchange.caller.betas,
        )
        call = await self._call(url, body, headers)
        try:
            async with call:
                self._body = await self._pass(await call.send())
        except UpstreamFailed as error:
            if self.abort() is None:
                self._keep_refusal(call)
                raise
            self.failure = error.failure
            self._track.attempt_failed(error.failure)

    def _keep_refusal(self, call: UpstreamCall) -> None:
        response = call.response
        if response is not None and response.status >= 400:
            body, headers = call.redact_bytes(call.error_body), self._answer_headers(response)
            self.refusal = HttpResponse(body, status=response.status, headers=headers)

    def count(self, *, left: bool) -> Usage:
        endpoint, choice = self._passed.endpoint, self._choice
        if self._body is None or not endpoint.model:
            return NO_USAGE
        usage = endpoint.usage(self._body)
        self._exchange.spending.count_passed(choice.upstream, choice.model, usage)
        if not usage.known:
            self._track.count_unknown()
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
        return gateway_url(self._exchange.http, secure=self._state.config.server.tls is not None)

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
        if size + len(chunk) <= KEPT:
            self._track.record_upstream_bytes(chunk)
            self._track.record_client_bytes(chunk)
        else:
            self._track.count_unrecorded(len(chunk))
        return size + len(chunk)
