"""One exchange over HTTP: read, route, ask, and give the answer, with honest behaviour under trouble.

Until something worth sending has come, a failed upstream is retried and then replaced by the next target.
From then on the answer belongs to its upstream, and a failure is told in the client's protocol.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time

import msgspec
from aiohttp import web

from ..errors import DragomanError
from ..events import Failed, FailureKind
from ..exchange import Exchange, Options
from ..messages import Notice, Request
from ..protocols import failures
from ..protocols.base import Outgoing, WireProtocol
from ..protocols.registry import protocol
from ..router import Choice, merged
from ..upstream import Call, UpstreamFailed
from .errors import error_response, too_large
from .guard import presented_key
from .reply import StreamReply
from .state import State

log = logging.getLogger("dragoman.gateway")

# The upstream is in trouble: the same again, or another one, may do.
_TRANSIENT = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.SERVER,
        FailureKind.UPSTREAM,
        FailureKind.TIMEOUT,
        FailureKind.OVERLOADED,
    }
)
# This target will not do, whatever is tried; another one may.
_TARGETS_OWN = frozenset(
    {
        FailureKind.AUTHENTICATION,
        FailureKind.PERMISSION,
        FailureKind.BILLING,
        FailureKind.NOT_FOUND,
    }
)
_UNAUTHORIZED = frozenset({FailureKind.AUTHENTICATION, FailureKind.PERMISSION})
_LONGEST_WAIT = 5.0


class Serving:
    """One request and its answer."""

    def __init__(self, state: State, client: WireProtocol, http: web.Request) -> None:
        self.id = secrets.token_hex(8)
        self._state = state
        self._config = state.config
        self._client = client
        self._http = http
        self._started = time.monotonic()
        self._first: float | None = None
        self._notices: tuple[Notice, ...] = ()
        self._model = ""
        self._choice: Choice | None = None
        self._exchange: Exchange | None = None
        self._outcome = "cancelled"
        self._reply: StreamReply | None = None

    async def run(self) -> web.StreamResponse:
        """Serve it. Whatever happens, it is accounted for."""
        self._state.running += 1
        self._state.metrics.open.inc()
        try:
            return await self._serve()
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(too_large(self._config.server.max_body))
        except DragomanError as error:
            return self._refuse(failures.from_exception(error))
        finally:
            if self._reply is not None:
                self._reply.stop()
            self._state.running -= 1
            self._state.metrics.open.dec()
            self._account()

    async def _serve(self) -> web.StreamResponse:
        body = await self._http.read()
        request = self._client.read_request(body, self._http.path_qs)
        self._model = request.model
        failure: Failed | None = None
        for choice in self._state.choices(request.model):
            answer = await self._try(choice, request)
            if isinstance(answer, web.StreamResponse):
                return answer
            failure = answer
            if failure.kind not in _TRANSIENT and failure.kind not in _TARGETS_OWN:
                break
        assert failure is not None  # the router gives at least one choice, or says why not
        return self._refuse(failure)

    async def _try(self, choice: Choice, request: Request) -> web.StreamResponse | Failed:
        """Ask one target, again while that makes sense."""
        self._choice = choice
        server = self._config.server
        renewed = False
        tries = 0
        while True:
            log.debug("trying", extra={"exchange": self.id, "target": choice.key, "try": tries + 1})
            try:
                answer = await self._ask(choice, request, renew=renewed)
            except UpstreamFailed as error:
                failure = error.failure
            else:
                self._state.health.succeeded(choice.key)
                return answer
            self._state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            if failure.kind in _UNAUTHORIZED and not renewed:
                renewed = True  # another program may have rotated the token since it was read
                continue
            self._state.health.failed(choice.key, self._state.clock(), failure.retry_after)
            tries += 1
            if failure.kind not in _TRANSIENT or tries > server.retries:
                return failure
            wait = self._wait(tries, failure)
            if wait is None:
                return failure
            await asyncio.sleep(wait)

    def _wait(self, tries: int, failure: Failed) -> float | None:
        """How long to wait before the next try. None: too long, the client should know instead."""
        if failure.retry_after is not None:
            return failure.retry_after if failure.retry_after <= _LONGEST_WAIT else None
        return min(_LONGEST_WAIT, 0.25 * 2**tries) * (0.5 + self._state.random() / 2)

    async def _ask(self, choice: Choice, request: Request, *, renew: bool) -> web.StreamResponse:
        """One try: raises `UpstreamFailed` as long as nothing was sent to the client."""
        upstream = choice.upstream
        wire = protocol(upstream.protocol)
        target = upstream.target(choice.model, strict=self._config.server.strict)
        outgoing = wire.write_request(request, target)
        self._notices = outgoing.notices
        exchange = self._exchange = Exchange(
            upstream.protocol,
            self._client.name,
            tools=outgoing.names,
            options=self._options(request, outgoing),
        )
        exchange_headers = self._headers()
        reply = StreamReply(self._http, self._client, exchange_headers, self._config.server.keepalive)
        self._reply = reply
        pieces: list[bytes] = []
        while True:
            async with await self._call(choice, outgoing, renew=renew) as call:
                await self._run(call, exchange, reply if request.stream else None, pieces)
            if not exchange.rejected:
                break
            request = exchange.again(request)
            outgoing = wire.write_request(request, target)
        if request.stream:
            return await reply.end()
        return self._body(b"".join(pieces), exchange, exchange_headers)

    async def _call(self, choice: Choice, outgoing: Outgoing, *, renew: bool) -> Call:
        upstream = choice.upstream
        url = upstream.url(outgoing.path)
        caller = presented_key(self._http)
        headers = await self._state.headers(upstream, url, renew=renew, caller=caller)
        body = msgspec.json.encode(merged(outgoing.body, choice.params) if choice.params else outgoing.body)
        return self._state.pool.call(
            upstream.name,
            url,
            body,
            headers,
            connect_timeout=upstream.connect_timeout,
            idle_timeout=upstream.idle_timeout,
        )

    async def _run(
        self, call: Call, exchange: Exchange, reply: StreamReply | None, pieces: list[bytes]
    ) -> None:
        """The upstream's answer, from its head to its end."""
        if call.status != 200:
            raise UpstreamFailed(await call.refusal())
        if reply is not None:
            reply.upstream_is_alive()
        try:
            async for chunk in call.chunks():
                await self._give(exchange.feed(chunk), exchange, reply, pieces)
                if exchange.over:
                    return
            await self._give(exchange.close(), exchange, reply, pieces)
        except UpstreamFailed as error:
            if not self._may_still_change(exchange, reply):
                await self._give(exchange.fail(error.failure), exchange, reply, pieces)
            else:
                raise

    async def _give(
        self, data: bytes, exchange: Exchange, reply: StreamReply | None, pieces: list[bytes]
    ) -> None:
        if exchange.failure is not None and self._may_still_change(exchange, reply):
            raise UpstreamFailed(exchange.failure)
        if exchange.meaningful and self._first is None:
            self._first = time.monotonic() - self._started
        if reply is None:
            pieces.append(data)
        else:
            await reply.write(data, meaningful=exchange.meaningful)

    def _may_still_change(self, exchange: Exchange, reply: StreamReply | None) -> bool:
        """Has the client been told nothing, so that another upstream can still answer?"""
        return reply is None or not (reply.committed or exchange.meaningful)

    def _options(self, request: Request, outgoing: Outgoing) -> Options:
        tools = self._config.tools
        return Options(
            stream=request.stream,
            mode="live",
            id=self.id,
            created=int(self._state.clock()),
            model=request.model,
            include_usage=request.include_usage,
            issuer=self._choice.upstream.name if self._choice else "",
            stop=outgoing.stop,
            rules_off=tools.off,
            invalid=tools.invalid,
            reask_attempts=tools.reask_attempts,
        )

    def _headers(self) -> dict[str, str]:
        headers = {"x-dragoman-exchange": self.id, "request-id": self.id, "x-request-id": self.id}
        if self._notices:
            said = "; ".join(f"{n.rule} {n.path}" for n in self._notices)
            headers["x-dragoman-warnings"] = said.encode("ascii", "replace").decode()[:2000]
        return headers

    def _body(self, data: bytes, exchange: Exchange, headers: dict[str, str]) -> web.Response:
        return web.Response(body=data, content_type="application/json", headers=headers)

    def _refuse(self, failure: Failed) -> web.Response:
        self._outcome = failure.kind.value
        return error_response(self._client, failure, self.id, self._headers())

    def _account(self) -> None:
        """One line in the log and the counters, however it ended."""
        exchange, choice = self._exchange, self._choice
        if self._outcome == "cancelled" and exchange is not None and exchange.over:
            self._outcome = exchange.failure.kind.value if exchange.failure else "ok"
        upstream = choice.upstream.name if choice else ""
        labels = (self._client.name, upstream, self._model)
        metrics = self._state.metrics
        metrics.requests.labels(*labels, self._outcome).inc()
        elapsed = time.monotonic() - self._started
        metrics.duration.labels(*labels).observe(elapsed)
        if self._first is not None:
            metrics.first_event.labels(*labels).observe(self._first)
        usage = exchange.usage if exchange else None
        if usage is not None and usage.known:
            metrics.tokens.labels(*labels, "input").inc(usage.prompt)
            metrics.tokens.labels(*labels, "output").inc(usage.output or 0)
        fixes = [fix.rule for receipt in (exchange.receipts if exchange else []) for fix in receipt.fixes]
        for rule in fixes:
            metrics.rules.labels(rule).inc()
        target = choice.key if choice else "nowhere"
        log.info(
            "%s %s -> %s",
            self._client.name,
            self._model,
            target,
            extra={
                "exchange": self.id,
                "outcome": self._outcome,
                "seconds": round(elapsed, 3),
                "input": usage.prompt if usage and usage.known else None,
                "output": usage.output if usage else None,
                "mended": len(fixes) or None,
            },
        )
