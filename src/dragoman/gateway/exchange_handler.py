"""One exchange over HTTP: read, route, ask, and give the answer, with honest behaviour under trouble.

Until something worth sending has come, a failed upstream is asked again and then replaced by the next
target. From then on the answer belongs to its upstream, and a failure is told in the client's protocol.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from ..model.errors import DragomanError
from ..model.events import Failed, FailureKind
from ..model.messages import Request as Neutral
from ..observe.metrics import TargetMetrics
from ..observe.tracing import ExchangeTrace, traced
from ..protocols.base import AnswerContext, ClientProtocol
from ..protocols.common import failures
from ..protocols.common.failures import UpstreamFailed
from ..routing.health import backoff
from ..routing.router import Choice
from ..store import responses as responses_state
from ..store.responses import PreviousResponseNotFound
from ..transport.server import Answer, ClientGone, Refusal, Request, Response
from ..wire.surrogates import whole
from .accounting import account, count_tokens
from .attempt import Asked, Attempt
from .caller import Caller
from .errors import body_refused, error_response
from .ids import new_id
from .reply import StreamReply, answer_headers
from .sockets import SocketRequest
from .state import State
from .warming import warm_up

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
# Longer than this, the client's own SDK should do the waiting.
_LONGEST_WAIT = 5.0


class Serving:
    """One request and its answer."""

    __slots__ = (
        "_config", "_http", "_state", "attempt", "choice", "client", "counters", "id", "outcome", "reply",
        "status", "trace", "track",
    )  # fmt: skip

    def __init__(self, state: State, client: ClientProtocol, http: Request) -> None:
        self.id = new_id()
        self.client = client
        self.choice: Choice | None = None
        self.attempt: Attempt | None = None
        self.counters: TargetMetrics | None = None
        """What is counted of `choice`."""
        self.reply: StreamReply | None = None
        self.outcome = "cancelled"
        self.status = 499  # who hung up is told nothing
        self.track = state.tap.begin(self.id, client.name)
        self.trace: ExchangeTrace | None = None
        self._state = state
        self._config = state.config
        self._http = http

    async def run(self) -> Answer:
        """Serve it. Whatever happens, it is accounted for."""
        self._state.running += 1
        self._state.metrics.open.inc()
        try:
            try:
                response = await self._serve()
            except (Refusal, DragomanError) as error:
                response = await self._refuse(self._why(error))
            self.status = response.status
        except ClientGone:
            self.outcome = "cancelled"
            response = Response(status=499)  # nobody reads it
        except Exception:
            self.outcome = FailureKind.SERVER.value
            self.status = 500
            if self.reply is None or self.reply.unopened():
                raise
            log.exception("an answer broke off through a fault of Dragoman's")
            response = self.reply.abort()
        finally:
            if self.reply is not None and self.reply.beating:
                self.reply.stop()
            self._state.running -= 1
            self._state.metrics.open.dec()
            account(self._state, self)
            self.attempt = None  # it knows us: nothing is to be left behind that only the collector can free
        return response

    def _why(self, error: Refusal | DragomanError) -> Failed:
        """What a client is told whose request cannot be served."""
        if isinstance(error, Refusal):
            return body_refused(error, self._config.server.max_body)
        if isinstance(error, PreviousResponseNotFound):
            return responses_state.failure(error)
        return failures.from_request_error(error)

    async def _serve(self) -> Answer:
        state, http, track = self._state, self._http, self.track
        caller = Caller(http)
        track.secrets += caller.keys
        state.redactor.learn(caller.keys)
        request = self._read(await http.read(), caller)
        track.model = request.model
        track.stream = request.stream
        profile = caller.profile(request)
        track.profile = profile.name
        manner = state.manners.of(profile, self.client)
        if state.tracing is not None:
            self.trace = state.tracing.exchange(self.id, self.client.name, request, http.headers, track.at)
        key, scope = caller.who(state.keys)
        memory = http.memory if isinstance(http, SocketRequest) else None
        asked = Asked(
            id=self.id,
            client=self.client,
            request=request,
            kept=None
            if request.settings.previous_response_id is None
            else await responses_state.previous(state.store, request, scope, memory),
            caller=key,
            betas=caller.betas,
            session=caller.session,
            track=track,
            arguments=manner.arguments,
            freeform=manner.freeform,
            scope=scope,
            memory=memory,
        )
        if request.stream:
            self.reply = StreamReply(http, self.client, manner, track, state.beats)
            self.reply.keep_alive()
            if isinstance(http, SocketRequest) and not http.generate:
                response = await warm_up(state, asked, self.reply)
                self.outcome = "ok"
                return response
        failure: Failed | None = None
        for choice in state.choices(request.model, asked.conversation):
            if log.isEnabledFor(logging.DEBUG):
                log.debug("chosen", extra={"exchange": self.id, "target": choice.key, "why": choice.why})
            answer = await self._try(choice, asked)
            # By the type itself: that it is none, `isinstance` takes long to tell.
            if type(answer) is not Failed:
                return answer  # pyright: ignore[reportReturnType]
            failure = answer
            if failure.kind not in _TRANSIENT and failure.kind not in _TARGETS_OWN:
                break
        assert failure is not None  # the router gives at least one choice, or says why not
        return await self._refuse(failure)

    def _read(self, body: bytes, caller: Caller) -> Neutral:
        """What the client asks."""
        http = self._http
        try:
            return self.client.read_request(body, whole(http.target))  # a target may hold any bytes
        finally:
            self.track.record_client_request(http.method, caller.target, caller.headers, body)

    async def _try(self, choice: Choice, asked: Asked) -> Answer | Failed:
        """Ask one target, again while that makes sense."""
        state = self._state
        self.choice = choice
        counters = self.counters = state.metrics.target(self.client.name, choice.upstream.name, choice.model)
        health, now = state.health, state.monotonic
        refused: Mapping[str, str] | None = None
        tries = 0
        while True:
            if health.failing:
                health.began(choice.key, now())
            self.track.attempt_started(choice)
            trace = None if self.trace is None else self.trace.attempt(choice)
            attempt = self.attempt = Attempt(state, asked, choice, self.reply, trace)
            try:
                running = attempt.run(refused)
                await (running if trace is None else traced(running, trace))
            except UpstreamFailed as error:
                failed = error.with_traceback(None)  # that would hold us, and we it
            except BaseException:
                health.abandoned(choice.key)  # the client left, or its request was no good
                raise
            else:
                self._given(choice, attempt)
                return attempt.finished() if self.reply is None else await self.reply.end(attempt.last)
            finally:
                count_tokens(counters, attempt)
            failure = failed.failure
            self.track.attempt_failed(failure)
            state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            if failure.kind in _UNAUTHORIZED and refused is None:
                refused = attempt.sent  # another program may have rotated the token since it was read
                continue
            tries += 1
            wait = self._after(choice, failed, tries)
            if wait is None:
                return failure
            await asyncio.sleep(wait)

    def _given(self, choice: Choice, attempt: Attempt) -> None:
        """The client has its answer, whole or broken off."""
        failure = attempt.exchange.failure if attempt.exchange else None
        if failure is None:
            self.outcome = "ok"
            if self._state.health.failing:
                self._state.health.succeeded(choice.key)
        else:
            self.outcome = failure.kind.value
            self.track.failure = failure
            self._state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            self._blame(choice, failure)

    def _blame(self, choice: Choice, failure: Failed) -> bool:
        """Was it the target's fault? Then it is remembered."""
        if failure.kind in _TRANSIENT or failure.kind in _TARGETS_OWN:
            self._state.health.failed(choice.key, self._state.monotonic(), failure.retry_after)
            return True
        self._state.health.abandoned(choice.key)
        return False

    def _after(self, choice: Choice, failed: UpstreamFailed, tries: int) -> float | None:
        """How long to wait before the same target is tried again, if it is."""
        failure = failed.failure
        if not self._blame(choice, failure) or not failed.retryable:
            return None
        if failure.kind not in _TRANSIENT or tries > self._config.server.retries:
            return None
        wait = failure.retry_after
        if wait is None:
            wait = backoff(tries, self._state.random())
        return wait if wait <= _LONGEST_WAIT else None

    async def _refuse(self, failure: Failed) -> Answer:
        """By a status; in the stream, where the client was told to go on waiting."""
        self.outcome = failure.kind.value
        self.track.failure = failure
        if self.reply is None or self.reply.unopened():
            response = error_response(self.client, failure, self.id, answer_headers(self.id))
            self.track.record_client_bytes(response.body)
            return response
        self.reply.begin()
        context = AnswerContext(id=self.id, created=int(self._state.clock()), model=self.track.model)
        return await self.reply.end(self.client.stream_encoder(context).encode([failure]))
