"""One exchange: read the client's request, route it, try targets, and send the answer.

While the client has got nothing, a failed upstream is tried again, and then the next target is tried. After
the first meaningful bytes the exchange stays with its upstream. A later failure becomes an error in the
client's protocol.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from ..model.errors import DragomanError
from ..model.events import Failed, FailureKind
from ..model.messages import Request
from ..observe.metrics import TargetMetrics
from ..observe.tracing import ExchangeTrace, traced
from ..protocols.base import AnswerContext, ClientProtocol
from ..protocols.common import failures
from ..protocols.common.failures import UpstreamFailed
from ..routing.health import backoff
from ..routing.learned_facts import corrected, told_anew
from ..routing.router import Choice
from ..store import responses as responses_state
from ..store.responses import PreviousResponseNotFound
from ..transport.server import ClientGone, HttpAnswer, HttpRequest, HttpResponse, Refusal
from ..wire.surrogates import whole
from .accounting import account, count_tokens
from .attempt import Attempt
from .caller import Caller
from .client_settings import ClientSettings
from .errors import body_refused, error_response
from .ids import new_id
from .incoming_request import IncomingRequest
from .prewarm import prewarm
from .reply import StreamReply, answer_headers
from .searching import CannotSearch
from .sockets import SocketRequest
from .state import State

log = logging.getLogger("dragoman.gateway")

# The upstream has a passing problem: the same target or another one may succeed.
_TRANSIENT = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.SERVER,
        FailureKind.UPSTREAM,
        FailureKind.TIMEOUT,
        FailureKind.OVERLOADED,
    }
)
# This target fails again whenever it is tried. Another target may succeed.
_TARGET_SPECIFIC = frozenset(
    {
        FailureKind.AUTHENTICATION,
        FailureKind.PERMISSION,
        FailureKind.BILLING,
        FailureKind.NOT_FOUND,
    }
)
_UNAUTHORIZED = frozenset({FailureKind.AUTHENTICATION, FailureKind.PERMISSION})
# Seconds. Client SDKs retry by themselves: a longer wait is left to them, with `retry-after`.
_MAX_RETRY_DELAY = 5.0
# nginx's status for a client that closed its connection. Only logs and receipts show it.
_CLIENT_CLOSED_REQUEST = 499


class ExchangeHandler:
    """One request and its answer."""

    __slots__ = (
        "_config", "_http", "_state", "attempt", "choice", "client", "counters", "id", "outcome", "reply",
        "status", "trace", "track",
    )  # fmt: skip

    def __init__(self, state: State, client: ClientProtocol, http: HttpRequest) -> None:
        self.id = new_id()
        self.client = client
        self.choice: Choice | None = None
        self.attempt: Attempt | None = None
        self.counters: TargetMetrics | None = None
        """The metrics of `choice`."""
        self.reply: StreamReply | None = None
        self.outcome = "cancelled"
        self.status = _CLIENT_CLOSED_REQUEST
        self.track = state.tap.begin(self.id, client.name)
        self.trace: ExchangeTrace | None = None
        self._state = state
        self._config = state.config
        self._http = http

    async def run(self) -> HttpAnswer:
        """Serve the request. Metrics, log and receipt are written however it ends."""
        self._state.running += 1
        self._state.metrics.open.inc()
        try:
            try:
                response = await self._serve()
            except (Refusal, DragomanError) as error:
                response = await self._send_failure(self._failure_of(error))
            self.status = response.status
        except ClientGone:
            self.outcome = "cancelled"
            response = HttpResponse(status=_CLIENT_CLOSED_REQUEST)
        except Exception:
            self.outcome = FailureKind.SERVER.value
            self.status = 500
            if self.reply is None or self.reply.unopened():
                raise
            log.exception("an answer broke off because of a bug in Dragoman")
            response = self.reply.abort()
        finally:
            if self.reply is not None and self.reply.needs_keepalive:
                self.reply.stop()
            self._state.running -= 1
            self._state.metrics.open.dec()
            account(self._state, self)
            self.attempt = None  # breaks a reference cycle, which only the garbage collector could free
        return response

    def _failure_of(self, error: Refusal | DragomanError) -> Failed:
        """The failure for a request that cannot be served."""
        if isinstance(error, Refusal):
            return body_refused(error, self._config.server.max_body)
        if isinstance(error, PreviousResponseNotFound):
            return responses_state.failure(error)
        return failures.from_request_error(error)

    async def _serve(self) -> HttpAnswer:
        state, http, track = self._state, self._http, self.track
        caller = Caller(http)
        track.secrets += caller.keys
        state.redactor.learn(caller.keys)
        request = self._read(await http.read(), caller)
        track.model = request.model
        track.stream = request.stream
        profile = caller.profile(request)
        track.profile = profile.name
        settings = state.client_settings.of(profile, self.client)
        if state.tracing is not None:
            self.trace = state.tracing.exchange(self.id, self.client.name, request, http.headers, track.at)
        incoming = await self._incoming(request, caller, settings)
        if request.stream:
            self.reply = StreamReply(http, self.client, settings, track, state.keepalive_timer)
            self.reply.keep_alive()
            if isinstance(http, SocketRequest) and not http.generate:
                response = await prewarm(state, incoming, self.reply)
                self.outcome = "ok"
                return response
        return await self._try_targets(incoming)

    def _read(self, body: bytes, caller: Caller) -> Request:
        """The neutral request."""
        http = self._http
        try:
            # The target may hold bytes that are no UTF-8, and so lone surrogates.
            return self.client.read_request(body, whole(http.target))
        finally:
            self.track.record_client_request(http.method, caller.target, caller.headers, body)

    async def _incoming(self, request: Request, caller: Caller, settings: ClientSettings) -> IncomingRequest:
        state, http = self._state, self._http
        key, scope = caller.identify(state.keys)
        memory = http.memory if isinstance(http, SocketRequest) else None
        previous = None
        if request.settings.previous_response_id is not None:
            previous = await responses_state.previous(state.store, request, scope, memory)
        return IncomingRequest(
            id=self.id,
            client=self.client,
            request=request,
            previous=previous,
            caller=key,
            betas=caller.betas,
            session=caller.session,
            track=self.track,
            arguments=settings.arguments,
            freeform=settings.freeform,
            scope=scope,
            memory=memory,
        )

    async def _try_targets(self, incoming: IncomingRequest) -> HttpAnswer:
        """Try the targets of the route in order, until one answers."""
        failure: Failed | None = None
        unable: CannotSearch | None = None
        for choice in self._state.choices(incoming.request.model, incoming.conversation):
            if log.isEnabledFor(logging.DEBUG):
                log.debug("chosen", extra={"exchange": self.id, "target": choice.key, "why": choice.why})
            try:
                answer = await self._try_target(choice, incoming)
            except CannotSearch as error:
                unable = error.with_traceback(None)
                continue  # another target may be able to search
            # `isinstance` is slow when the answer is no, and here it nearly always is.
            if type(answer) is not Failed:
                return answer  # pyright: ignore[reportReturnType]
            failure = answer
            if failure.kind not in _TRANSIENT and failure.kind not in _TARGET_SPECIFIC:
                break  # the request itself is wrong, so it fails at every target
        if failure is None and unable is not None:
            raise unable
        assert failure is not None  # the router returns at least one choice, or raises
        return await self._send_failure(failure)

    async def _try_target(self, choice: Choice, incoming: IncomingRequest) -> HttpAnswer | Failed:
        """Try one target, and retry it as long as a retry may help."""
        state = self._state
        choice = self.choice = state.learned.applied(choice)
        counters = self.counters = state.metrics.target(self.client.name, choice.upstream.name, choice.model)
        health, now = state.health, state.monotonic
        refused: Mapping[str, str] | None = None
        tries = 0
        while True:
            if health.failing:
                health.began(choice.key, now())
            self.track.attempt_started(choice)
            trace = None if self.trace is None else self.trace.attempt(choice)
            attempt = self.attempt = Attempt(state, incoming, choice, self.reply, trace)
            try:
                running = attempt.run(refused)
                await (running if trace is None else traced(running, trace))
            except UpstreamFailed as error:
                # The traceback refers to this frame, and this frame to the error: a reference cycle.
                failed = error.with_traceback(None)
            except BaseException:
                health.abandoned(choice.key)  # the client left, or its request was invalid
                raise
            else:
                self._record_result(choice, attempt)
                return attempt.finished() if self.reply is None else await self.reply.end(attempt.last)
            finally:
                count_tokens(counters, attempt)
            failure = failed.failure
            self.track.attempt_failed(failure)
            state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            if failure.kind in _UNAUTHORIZED and refused is None:
                # Another program (Claude Code, Codex) may have refreshed the token since it was read. The
                # next attempt reads it again, and does not count as a retry.
                refused = attempt.sent_headers
                continue
            told = told_anew(failure, choice.target)
            if told and attempt.would_differ(corrected(choice, told).target):
                state.learned.remember(choice, told)
                choice = self.choice = state.learned.applied(choice)
                continue
            tries += 1
            delay = self._retry_delay(choice, failed, tries)
            if delay is None:
                return failure
            await asyncio.sleep(delay)

    def _record_result(self, choice: Choice, attempt: Attempt) -> None:
        """Record the outcome of an answer that the client got, complete or broken off."""
        failure = attempt.exchange.failure if attempt.exchange else None
        if failure is None:
            self.outcome = "ok"
            if self._state.health.failing:
                self._state.health.succeeded(choice.key)
        else:
            self.outcome = failure.kind.value
            self.track.failure = failure
            self._state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            self._update_health(choice, failure)

    def _update_health(self, choice: Choice, failure: Failed) -> bool:
        """Tell the health table if the target caused the failure. Returns whether it did."""
        if failure.kind in _TRANSIENT or failure.kind in _TARGET_SPECIFIC:
            self._state.health.failed(choice.key, self._state.monotonic(), failure.retry_after)
            return True
        self._state.health.abandoned(choice.key)
        return False

    def _retry_delay(self, choice: Choice, failed: UpstreamFailed, tries: int) -> float | None:
        """Seconds to wait before the same target is tried again. None: do not retry it."""
        failure = failed.failure
        if not self._update_health(choice, failure) or not failed.retryable:
            return None
        if failure.kind not in _TRANSIENT or tries > self._config.server.retries:
            return None
        delay = failure.retry_after
        if delay is None:
            delay = backoff(tries, self._state.random())
        return delay if delay <= _MAX_RETRY_DELAY else None

    async def _send_failure(self, failure: Failed) -> HttpAnswer:
        """Send an error response, or an error event if a keepalive has already opened the stream."""
        self.outcome = failure.kind.value
        self.track.failure = failure
        if self.reply is None or self.reply.unopened():
            response = error_response(self.client, failure, self.id, answer_headers(self.id))
            self.track.record_client_bytes(response.body)
            return response
        self.reply.begin()
        context = AnswerContext(id=self.id, created=int(self._state.clock()), model=self.track.model)
        return await self.reply.end(self.client.stream_encoder(context).encode([failure]))
