"""One exchange: a client's request, from its admission over targets, keys and attempts to its end.

While the client has got nothing, a failed upstream is tried again, and then the next target is tried. After
the first meaningful bytes the exchange stays with its upstream. A later failure becomes an error in the
client's protocol.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from ...access.limiter import LimitReached
from ...config.types import UpstreamConfig
from ...model.errors import DragomanError
from ...model.events import Failed, Usage
from ...model.messages import Request
from ...observe.tracing import AttemptTrace, ExchangeTrace, traced
from ...protocols.base import ClientProtocol
from ...protocols.common import failures
from ...protocols.common.collect import Answer
from ...protocols.common.failures import UpstreamFailed
from ...routing.learned_facts import corrected, new_facts
from ...routing.router import ChosenTarget
from ...store import responses as responses_state
from ...store.responses import PreviousResponseNotFound
from ...transport.server import ClientGone, HttpAnswer, HttpRequest, HttpResponse, RefusedRequest
from ..caller import NOBODY, Caller
from ..errors import busy, error_response, limit_reached
from ..ids import new_id
from ..state import State
from ..upstreams.keyring import OutgoingHeaders
from .accounting import account, count_attempt, count_failure, count_side_question
from .attempt import Attempt
from .searching import CannotSearch
from .spending import Spending
from .target_health import UNAUTHORIZED, TargetHealth, belongs_to_target

log = logging.getLogger("dragoman.gateway")

# nginx's status for a client that closed its connection. Only logs and receipts show it.
_CLIENT_CLOSED_REQUEST = 499


class Job(Protocol):
    """What is done for one kind of request: an answer is translated, or bytes are passed."""

    @property
    def answer(self) -> Answer | None:
        """What the client got of a translated answer."""

    @property
    def retries(self) -> int:
        """How often a target is tried again after a temporary failure."""
        return 0

    @property
    def may_send_again(self) -> bool:
        """Is the request still here, so that another target or key can get it?"""
        return True

    @property
    def conversation(self) -> Callable[[], str] | None:
        """The conversation that decides which of an upstream's keys is used first. None: always the first."""

    async def serve(self) -> HttpAnswer:
        """Read the request, check what its key may do, and serve it: with `Exchange.try_targets`."""
        ...

    def attempt(self, choice: ChosenTarget, trace: AttemptTrace | None) -> Attempt: ...

    def body_refused(self, error: RefusedRequest) -> Failed:
        """The failure for a request that cannot be read."""
        ...

    async def fail(self, failure: Failed) -> HttpAnswer:
        """Send the failure to the client."""
        ...

    def abort(self) -> HttpAnswer | None:
        """Break off an answer that has begun. None: the client has got nothing."""

    def close(self) -> None:
        """The exchange is over, however it ended."""


class Exchange:
    """One request and its answer. `track` is the record of it."""

    __slots__ = ("_health", "caller", "client", "http", "identity", "spending", "state", "trace", "track")

    def __init__(self, state: State, client: ClientProtocol, http: HttpRequest) -> None:
        self.state = state
        self.client = client
        self.http = http
        self.track = state.observed.tap.begin(new_id(), client.name)
        self.caller = Caller(http)
        self.identity = NOBODY
        """Who sends the request. Known when the job serves it."""
        self.spending = Spending(state, self.track)
        self.trace: ExchangeTrace | None = None
        self._health = TargetHealth(state.upstreams)

    async def run(self, job: Job) -> HttpAnswer:
        """Serve the request. Metrics, log and receipt are written however it ends."""
        state, track = self.state, self.track
        state.lifecycle.running += 1
        state.observed.metrics.open.inc()
        status = _CLIENT_CLOSED_REQUEST
        try:
            try:
                self._identify()
                answer = await job.serve()
            except (RefusedRequest, DragomanError) as error:
                answer = await job.fail(_failure_of(error, job))
            await self.spending.settle()
            status = answer.status
        except ClientGone:
            track.client_left()
            answer = HttpResponse(status=status)
        except Exception:  # any bug: the outcome is recorded, and an answer that has begun is broken off
            track.crashed()
            status = 500
            aborted = job.abort()
            if aborted is None:
                raise
            log.exception("an answer broke off because of a bug in Dragoman")
            answer = aborted
        finally:
            job.close()
            self.spending.settle_later()
            state.lifecycle.running -= 1
            state.observed.metrics.open.dec()
            track.ended(status)
            # Without a trace, nobody needs the answer: collecting it takes time.
            account(state, track, self.trace, None if self.trace is None else job.answer)
        return answer

    def _identify(self) -> None:
        self.track.learn(self.caller.keys)
        self.state.observed.redactor.learn(self.caller.keys)
        self.identity = self.caller.identify(self.state.keys)
        self.track.asked_by(self.identity.identity.name, self.identity.identity.team)
        self.spending.limited_by(self.identity.identity)

    async def try_targets(self, job: Job, targets: Sequence[ChosenTarget]) -> HttpAnswer:
        """Try the targets in order, each with its keys, until one answers."""
        failure: Failed | None = None
        unable: CannotSearch | None = None
        for choice in targets:
            if log.isEnabledFor(logging.DEBUG):
                log.debug(
                    "chosen", extra={"exchange": self.track.id, "target": choice.key, "why": choice.why}
                )
            try:
                answer = await self._health.try_keys(
                    choice, job.conversation, lambda choice: self._try_target(job, choice)
                )
            except CannotSearch as error:
                unable = error.with_traceback(None)
                continue  # another target may be able to search
            # `isinstance` is slow when the answer is no, and here it nearly always is.
            if type(answer) is not Failed:
                return answer  # pyright: ignore[reportReturnType]
            failure = answer
            if not job.may_send_again or not belongs_to_target(failure):
                break
        if failure is None and unable is not None:
            raise unable
        assert failure is not None  # the router returns at least one choice, or raises
        return await job.fail(failure)

    async def _try_target(self, job: Job, choice: ChosenTarget) -> HttpAnswer | Failed:
        """Try one target with one key, and retry it as long as a retry may help."""
        state, health = self.state, self._health
        choice = state.upstreams.learned.applied(choice)
        refused: OutgoingHeaders | None = None
        tries = 0
        while True:
            trace = None if self.trace is None else self.trace.attempt(choice)
            attempt = job.attempt(choice, trace)
            failed = await self._run_attempt(attempt, choice, trace, refused)
            if failed is None:
                return await attempt.finish()
            failure = failed.failure
            self.track.attempt_failed(failure)
            count_failure(state, choice, failure)
            if failure.kind in UNAUTHORIZED and refused is None:
                # Another program (Claude Code, Codex) may have refreshed the token since it was read. The
                # next attempt reads it again, and does not count as a retry.
                if job.may_send_again and await health.may_be_renewed(choice, attempt):
                    refused = attempt.sent_headers
                    continue
                if not job.may_send_again:  # the next request has the new token
                    await state.upstreams.keyring.changed_since(choice.upstream, attempt.sent_headers)
            # The upstream named a field that its model does not support. Without the field, the request may
            # succeed. `would_differ` prevents an endless loop of equal requests.
            learned = new_facts(failure, choice.target)
            if learned and attempt.would_differ(corrected(choice, learned).target):
                state.upstreams.learned.remember(choice, learned)
                choice = state.upstreams.learned.applied(choice)
                continue
            tries += 1
            delay = health.retry_delay(choice, failed, attempt, tries, job.retries)
            if delay is None:
                return health.explain_failure(choice, failure)
            await asyncio.sleep(delay)

    async def _run_attempt(
        self,
        attempt: Attempt,
        choice: ChosenTarget,
        trace: AttemptTrace | None,
        refused: OutgoingHeaders | None,
    ) -> UpstreamFailed | None:
        """Make one attempt. Returns why it failed; None if the client gets its answer."""
        track, health = self.track, self._health
        health.began(choice)
        track.attempt_started(choice)
        left = False
        try:
            await (attempt.run(refused) if trace is None else traced(attempt.run(refused), trace))
        except UpstreamFailed as error:
            # The traceback refers to this frame, and this frame to the error: a reference cycle.
            return error.with_traceback(None)
        # Raised again. Also a bug or a cancelled task ends the attempt without saying anything about the
        # target. A target on probation after failures would otherwise count as being tried for ever.
        except BaseException as error:
            health.abandoned(choice)
            left = not isinstance(error, DragomanError)
            raise
        finally:
            # Before the end of the answer is sent: the client may ask again at once.
            answered = track.attempts[-1].first_event is not None
            count_attempt(self.state, track, choice, attempt.count(left=left), answered=answered)
        if (failure := attempt.failure) is None:
            track.succeeded()
            health.succeeded(choice, attempt)
        else:
            track.failed(failure)
            count_failure(self.state, choice, failure)
            health.failed(choice, failure, attempt)
        await self.spending.settle()
        return None

    def start_trace(self, request: Request) -> None:
        """Trace the exchange, if the gateway traces."""
        if self.state.observed.tracing is not None:
            self.trace = self.state.observed.tracing.exchange(
                self.track.id, self.client.name, request, self.http.headers, self.track.at
            )

    def count_side_question(self, upstream: UpstreamConfig, model: str, usage: Usage) -> None:
        """Count a question that Dragoman asked a model itself, to serve this request."""
        count_side_question(self.state, self.track, upstream, model, usage)
        self.spending.count_usage(upstream, model, usage)


def run_exchange(
    state: State, client: ClientProtocol, http: HttpRequest, job: Callable[[Exchange], Job]
) -> Awaitable[HttpAnswer]:
    """Run an exchange, unless the gateway is at its limit."""
    if state.lifecycle.running >= state.config.server.max_streams:
        return _refuse(client)
    exchange = Exchange(state, client, http)
    return exchange.run(job(exchange))


async def _refuse(client: ClientProtocol) -> HttpAnswer:
    return error_response(client, busy(), new_id())


def _failure_of(error: RefusedRequest | DragomanError, job: Job) -> Failed:
    """The failure for a request that cannot be served."""
    if isinstance(error, RefusedRequest):
        return job.body_refused(error)
    if isinstance(error, PreviousResponseNotFound):
        return responses_state.failure(error)
    if isinstance(error, LimitReached):
        return limit_reached(error)
    return failures.from_request_error(error)
