"""Requests for an answer: read one, let a target answer it, and send the translated answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ...model.events import Failed
from ...model.messages import Request
from ...observe.tap import OK
from ...observe.tracing import AttemptTrace
from ...profiles import Profile
from ...protocols.base import AnswerContext, ClientProtocol
from ...protocols.common.collect import Answer
from ...routing.conditions import RequestTraits
from ...routing.router import ChosenTarget
from ...store import responses as responses_state
from ...transport.server import HttpAnswer, HttpRequest, RefusedRequest
from ...wire.surrogates import replace_lone_surrogates
from ..conversation import conversation_of, opening_words, session_id
from ..errors import body_refused, error_response
from ..state import State
from .answer_attempt import AnswerAttempt
from .exchange import Exchange, Job, run_exchange
from .incoming_request import IncomingRequest
from .prewarm import prewarm
from .reply import Reply, StreamReply, WholeReply, answer_headers
from .sockets import SocketRequest


def answer_request(state: State, client: ClientProtocol, http: HttpRequest) -> Awaitable[HttpAnswer]:
    """Answer a request of the protocol `client`."""
    return run_exchange(state, client, http, AnswerJob)


class AnswerJob(Job):
    """Answers one request of a client. `Exchange` runs it."""

    _incoming: IncomingRequest

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._reply: Reply = WholeReply(exchange.track)
        self._attempt: AnswerAttempt | None = None
        """The last one."""

    @property
    def retries(self) -> int:
        return self._exchange.state.config.server.retries

    @property
    def conversation(self) -> Callable[[], str]:
        return self._incoming.conversation

    @property
    def answer(self) -> Answer | None:
        return None if self._attempt is None else self._attempt.answer

    async def serve(self) -> HttpAnswer:
        exchange, state, http = self._exchange, self._exchange.state, self._exchange.http
        request = self._read(await http.read())
        profile = exchange.caller.profile(request)
        exchange.track.asked_for(request.model, stream=request.stream, profile=profile.name)
        exchange.start_trace(request)
        await self._admit(request, profile)
        incoming = self._incoming = await self._with_history(request, profile)
        if request.stream:
            settings = incoming.settings
            reply = self._reply = StreamReply(
                http, exchange.client, settings, exchange.track, state.keepalive_timer
            )
            reply.keep_alive()
            if isinstance(http, SocketRequest) and not http.generate:
                return await prewarm(state, incoming, reply)
        return await exchange.try_targets(self, state.targets_for(incoming))

    def _read(self, body: bytes) -> Request:
        """The neutral request."""
        exchange, http, caller = self._exchange, self._exchange.http, self._exchange.caller
        try:
            # The target may hold bytes that are no UTF-8, and so lone surrogates.
            return exchange.client.read_request(body, replace_lone_surrogates(http.target))
        finally:
            exchange.track.record_client_request(http.method, caller.target, caller.headers, body)

    async def _admit(self, request: Request, profile: Profile) -> None:
        """Check that the key may use the model, and reserve what the request may use of its limits."""
        exchange, state = self._exchange, self._exchange.state
        exchange.identity.identity.check_model(request.model)
        await exchange.spending.reserve(
            request,
            lambda: state.upstreams.choices(
                request.model,
                lambda: conversation_of(request, exchange.caller.session),
                lambda: RequestTraits(request, profile),
            ),
        )

    async def _with_history(self, request: Request, profile: Profile) -> IncomingRequest:
        """The request, with the stored response that it continues."""
        exchange, state, http = self._exchange, self._exchange.state, self._exchange.http
        scope = exchange.identity.scope
        memory = http.memory if isinstance(http, SocketRequest) else None
        previous = None
        if request.settings.previous_response_id is not None:
            previous = await responses_state.previous(state.store, request, scope, memory)
        settings = state.client_settings.of(profile, exchange.client)
        incoming = IncomingRequest(exchange, request, previous, profile, settings, memory)
        opening = opening_words(request, profile.name) if previous is None else ""
        exchange.track.belongs_to(session_id(scope, incoming.conversation()), opening)
        return incoming

    def attempt(self, choice: ChosenTarget, trace: AttemptTrace | None) -> AnswerAttempt:
        self._attempt = AnswerAttempt(self._incoming, choice, self._reply, trace)
        return self._attempt

    def body_refused(self, error: RefusedRequest) -> Failed:
        return body_refused(error, self._exchange.state.config.server.max_body)

    async def fail(self, failure: Failed) -> HttpAnswer:
        """Send an error response, or an error event if a keepalive has already opened the stream."""
        exchange, track, client = self._exchange, self._exchange.track, self._exchange.client
        track.failed(failure)
        if self._reply.unopened():
            response = error_response(client, failure, track.id, answer_headers(track))
            track.record_client_bytes(response.body)
            return response
        await exchange.spending.settle()
        self._reply.begin()
        context = AnswerContext(id=track.id, created=int(exchange.state.clock()), model=track.model)
        return await self._reply.end(client.stream_encoder(context).encode([failure]))

    def abort(self) -> HttpAnswer | None:
        reply = self._reply
        return None if isinstance(reply, WholeReply) or reply.unopened() else reply.abort()

    def close(self) -> None:
        """Forget the unstored response that a failed request continues, as Open Responses demands."""
        self._reply.stop()
        exchange, http = self._exchange, self._exchange.http
        if isinstance(http, SocketRequest) and http.previous is not None and exchange.track.result != OK:
            responses_state.forget(http.memory, http.previous, exchange.identity.scope)
