"""One exchange: read the client's request, route it, try targets, and send the answer.

While the client has got nothing, a failed upstream is tried again, and then the next target is tried. After
the first meaningful bytes the exchange stays with its upstream. A later failure becomes an error in the
client's protocol.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from ...access.identity import Identity
from ...access.limiter import LimitReached
from ...config.types import UpstreamConfig
from ...model.errors import DragomanError
from ...model.events import NO_USAGE, Failed, FailureKind, Usage
from ...model.messages import Request
from ...observe.metrics import TargetMetrics
from ...observe.tracing import ExchangeTrace, traced
from ...profiles import Profile
from ...protocols.base import AnswerContext, ClientProtocol
from ...protocols.common import failures
from ...protocols.common.failures import UpstreamFailed
from ...routing.conditions import RequestTraits
from ...routing.learned_facts import corrected, new_facts
from ...routing.router import ChosenTarget
from ...store import responses as responses_state
from ...store.responses import PreviousResponseNotFound
from ...transport.server import ClientGone, HttpAnswer, HttpRequest, HttpResponse, RefusedRequest
from ...wire.surrogates import replace_lone_surrogates
from ..caller import Caller, CallerIdentity
from ..client_settings import ClientSettings
from ..conversation import conversation_of, opening_words, session_id
from ..errors import body_refused, error_response, limit_reached
from ..ids import new_id
from ..state import State
from ..upstreams.keyring import OutgoingHeaders
from .accounting import account, count_side_question, count_usage
from .attempt import Attempt
from .incoming_request import IncomingRequest
from .prewarm import prewarm
from .reply import StreamReply, answer_headers
from .searching import CannotSearch
from .sockets import SocketRequest
from .spending import Spending
from .target_health import UNAUTHORIZED, TargetHealth, belongs_to_target

log = logging.getLogger("dragoman.gateway")

# nginx's status for a client that closed its connection. Only logs and receipts show it.
_CLIENT_CLOSED_REQUEST = 499


class ExchangeHandler:
    """One request and its answer."""

    __slots__ = (
        "_config", "_health", "_http", "_scope", "_spending", "_state", "attempt", "choice", "client",
        "counters", "id", "outcome", "reply", "status", "trace", "track",
    )  # fmt: skip

    def __init__(self, state: State, client: ClientProtocol, http: HttpRequest) -> None:
        self.id = new_id()
        self.client = client
        self.choice: ChosenTarget | None = None
        self.attempt: Attempt | None = None
        self.counters: TargetMetrics | None = None
        """The metrics of `choice`."""
        self.reply: StreamReply | None = None
        self.outcome = "cancelled"
        self.status = _CLIENT_CLOSED_REQUEST
        self.track = state.tap.begin(self.id, client.name)
        self.trace: ExchangeTrace | None = None
        self._health = TargetHealth(state)
        self._scope = ""
        """The scope of this client's stored state."""
        self._spending: Spending | None = None
        """None: the key has no limits."""
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
            except (RefusedRequest, DragomanError) as error:
                response = await self._send_failure(self._failure_of(error))
            await self._settle()
            self.status = response.status
        except ClientGone:
            self.outcome = "cancelled"
            response = HttpResponse(status=_CLIENT_CLOSED_REQUEST)
        except Exception:  # any bug: the outcome is recorded, and an answer that has begun is broken off
            self.outcome = FailureKind.SERVER.value
            self.status = 500
            if self.reply is None or self.reply.unopened():
                raise
            log.exception("an answer broke off because of a bug in Dragoman")
            response = self.reply.abort()
        finally:
            if self.reply is not None and self.reply.needs_keepalive:
                self.reply.stop()
            if self._spending is not None:
                self._spending.settle_later()
            if self.outcome != "ok":
                self._forget_previous()
            self._state.running -= 1
            self._state.metrics.open.dec()
            account(self._state, self)
            self.attempt = None  # breaks a reference cycle, which only the garbage collector could free
        return response

    def _forget_previous(self) -> None:
        """Forget the unstored response that this failed request continues, as Open Responses demands."""
        http = self._http
        if isinstance(http, SocketRequest) and http.previous is not None:
            responses_state.forget(http.memory, http.previous, self._scope)

    def _failure_of(self, error: RefusedRequest | DragomanError) -> Failed:
        """The failure for a request that cannot be served."""
        if isinstance(error, RefusedRequest):
            return body_refused(error, self._config.server.max_body)
        if isinstance(error, PreviousResponseNotFound):
            return responses_state.failure(error)
        if isinstance(error, LimitReached):
            return limit_reached(error)
        return failures.from_request_error(error)

    async def _serve(self) -> HttpAnswer:
        state, http, track = self._state, self._http, self.track
        caller = Caller(http)
        track.secrets += caller.keys
        state.redactor.learn(caller.keys)
        caller_identity = caller.identify(state.keys)
        track.key, track.team = caller_identity.identity.name, caller_identity.identity.team
        self._scope = caller_identity.scope
        request = self._read(await http.read(), caller)
        track.model = request.model
        track.stream = request.stream
        profile = caller.profile(request)
        track.profile = profile.name
        settings = state.client_settings.of(profile, self.client)
        if state.tracing is not None:
            self.trace = state.tracing.exchange(self.id, self.client.name, request, http.headers, track.at)
        await self._admit(request, caller, caller_identity.identity, profile)
        incoming = await self._incoming(request, caller, caller_identity, settings, profile)
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
            return self.client.read_request(body, replace_lone_surrogates(http.target))
        finally:
            self.track.record_client_request(http.method, caller.target, caller.headers, body)

    async def _admit(self, request: Request, caller: Caller, identity: Identity, profile: Profile) -> None:
        """Check that the key may use the model, and reserve what the request may use of its limits."""
        state = self._state
        if identity.models:
            identity.check_model(request.model)
        if limits := state.limiter.meters(identity):
            self._spending = Spending(state, limits, self.track)
            await self._spending.reserve(
                request,
                lambda: state.choices(
                    request.model,
                    lambda: conversation_of(request, caller.session),
                    lambda: RequestTraits(request, profile),
                ),
            )

    async def _incoming(
        self,
        request: Request,
        caller: Caller,
        caller_identity: CallerIdentity,
        settings: ClientSettings,
        profile: Profile,
    ) -> IncomingRequest:
        state, http = self._state, self._http
        scope = caller_identity.scope
        memory = http.memory if isinstance(http, SocketRequest) else None
        previous = None
        if request.settings.previous_response_id is not None:
            previous = await responses_state.previous(state.store, request, scope, memory)
        incoming = IncomingRequest(
            id=self.id,
            client=self.client,
            request=request,
            previous=previous,
            caller=caller_identity.key,
            betas=caller.betas,
            session=caller.session,
            track=self.track,
            arguments=settings.arguments,
            freeform=settings.freeform,
            scope=scope,
            profile=profile,
            count=self._count_side_question,
            memory=memory,
        )
        self.track.session = session_id(scope, incoming.conversation())
        if previous is None:
            self.track.opening = opening_words(request, self.track.profile)
        return incoming

    async def _try_targets(self, incoming: IncomingRequest) -> HttpAnswer:
        """Try the targets of the route in order, until one answers."""
        failure: Failed | None = None
        unable: CannotSearch | None = None
        ask = partial(self._try_target, incoming=incoming)
        for choice in self._state.targets_for(incoming):
            if log.isEnabledFor(logging.DEBUG):
                log.debug("chosen", extra={"exchange": self.id, "target": choice.key, "why": choice.why})
            try:
                answer = await self._health.try_keys(choice, incoming.conversation, ask)
            except CannotSearch as error:
                unable = error.with_traceback(None)
                continue  # another target may be able to search
            # `isinstance` is slow when the answer is no, and here it nearly always is.
            if type(answer) is not Failed:
                return answer  # pyright: ignore[reportReturnType]
            failure = answer
            if not belongs_to_target(failure):
                break
        if failure is None and unable is not None:
            raise unable
        assert failure is not None  # the router returns at least one choice, or raises
        return await self._send_failure(failure)

    async def _try_target(self, choice: ChosenTarget, incoming: IncomingRequest) -> HttpAnswer | Failed:
        """Try one target, and retry it as long as a retry may help."""
        state = self._state
        choice = self.choice = state.learned.applied(choice)
        self.counters = state.metrics.target(self.client.name, choice.upstream.name, choice.model)
        health = self._health
        refused: OutgoingHeaders | None = None
        tries = 0
        while True:
            health.began(choice)
            self.track.attempt_started(choice)
            trace = None if self.trace is None else self.trace.attempt(choice)
            attempt = self.attempt = Attempt(state, incoming, choice, self.reply, trace)
            try:
                running = attempt.run(refused)
                await (running if trace is None else traced(running, trace))
            except UpstreamFailed as error:
                # The traceback refers to this frame, and this frame to the error: a reference cycle.
                failed = error.with_traceback(None)
                self._count_attempt(choice, attempt)
            except BaseException as error:
                health.abandoned(choice)  # the client left, or its request was invalid
                self._count_attempt(choice, attempt, left=not isinstance(error, DragomanError))
                raise
            else:
                self._record_result(choice, attempt)
                return await self._end(choice, attempt)
            finally:
                usage = attempt.exchange.usage if attempt.exchange else NO_USAGE
                count_usage(state, self, usage, answered=attempt.first_event is not None)
            failure = failed.failure
            self.track.attempt_failed(failure)
            state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            if (
                failure.kind in UNAUTHORIZED
                and refused is None
                and await health.may_be_renewed(choice, attempt)
            ):
                # Another program (Claude Code, Codex) may have refreshed the token since it was read. The
                # next attempt reads it again, and does not count as a retry.
                refused = attempt.sent_headers
                continue
            # The upstream named a field that its model does not support. Without the field, the request may
            # succeed. `would_differ` prevents an endless loop of equal requests.
            learned = new_facts(failure, choice.target)
            if learned and attempt.would_differ(corrected(choice, learned).target):
                state.learned.remember(choice, learned)
                choice = self.choice = state.learned.applied(choice)
                continue
            tries += 1
            delay = health.retry_delay(choice, failed, attempt, tries, self._config.server.retries)
            if delay is None:
                return health.explain_failure(choice, failure)
            await asyncio.sleep(delay)

    def _count_attempt(self, choice: ChosenTarget, attempt: Attempt, *, left: bool = False) -> None:
        """Count what an attempt used. `left`: the client did not wait for its end."""
        if self._spending is not None:
            self._spending.count_attempt(choice, attempt, left=left)

    def _count_side_question(self, upstream: UpstreamConfig, model: str, usage: Usage) -> None:
        count_side_question(self._state, self.track, upstream, model, usage)
        if self._spending is not None:
            self._spending.count_usage(upstream, model, usage)

    async def _settle(self) -> None:
        if self._spending is not None:
            await self._spending.settle()

    async def _end(self, choice: ChosenTarget, attempt: Attempt) -> HttpAnswer:
        """Send the end of the answer. What it used is counted first: the client may ask again at once."""
        self._count_attempt(choice, attempt)
        await self._settle()
        return attempt.finished() if self.reply is None else await self.reply.end(attempt.last)

    def _record_result(self, choice: ChosenTarget, attempt: Attempt) -> None:
        """Record the outcome of an answer that the client got, complete or broken off."""
        failure = attempt.exchange.failure if attempt.exchange else None
        if failure is None:
            self.outcome = "ok"
            self._health.succeeded(choice, attempt)
        else:
            self.outcome = failure.kind.value
            self.track.failure = failure
            self._state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            self._health.failed(choice, failure, attempt)

    async def _send_failure(self, failure: Failed) -> HttpAnswer:
        """Send an error response, or an error event if a keepalive has already opened the stream."""
        self.outcome = failure.kind.value
        self.track.failure = failure
        if self.reply is None or self.reply.unopened():
            headers = answer_headers(self.id, (), self.track.limit_warnings)
            response = error_response(self.client, failure, self.id, headers)
            self.track.record_client_bytes(response.body)
            return response
        await self._settle()
        self.reply.begin()
        context = AnswerContext(id=self.id, created=int(self._state.clock()), model=self.track.model)
        return await self.reply.end(self.client.stream_encoder(context).encode([failure]))
