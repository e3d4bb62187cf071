"""One attempt: write the request for one target, send it, and translate the upstream's answer for the client.

The client gets nothing until the answer holds something meaningful. An attempt that fails before that leaves
no trace at the client, so another attempt can follow.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...credentials import CredentialError
from ...model.errors import BadRequest
from ...model.events import Event, Failed, FailureKind
from ...model.messages import Notice, Request, Search
from ...observe.tap import ReplaySetup
from ...observe.tracing import AttemptTrace
from ...protocols.base import Outgoing, Target
from ...protocols.common import failures
from ...protocols.common.collect import Answer, collect
from ...protocols.common.failures import UpstreamFailed
from ...protocols.registry import upstream_protocol
from ...routing.router import ChosenTarget
from ...store import searches
from ...store.reasoning import has_reasoning
from ...tools.search import free_choice
from ...translation.summary import summarising
from ...translation.translation import Options, Translation
from ...transport.client import Response
from ...transport.server import ClientGone, HttpAnswer
from ..errors import midstream_failure
from ..state import State
from ..upstreams.addressing import build_request, dropped_betas, needed_betas
from ..upstreams.call import UpstreamCall
from ..upstreams.keyring import NO_OUTGOING_HEADERS, OutgoingHeaders
from . import conversation_state, images
from .forced_calls import forced_request
from .incoming_request import IncomingRequest
from .preparing import prepare
from .prompt_fingerprints import fingerprint_prompt
from .reply import StreamReply, whole_reply
from .searching import SearchRunner

log = logging.getLogger("dragoman.gateway")

# The tap keeps an answer in memory until it ends. No real answer is this long: the upstream repeats itself.
MAX_RECEIVED = 256 * 1024 * 1024


class Attempt:
    """One attempt at one target."""

    __slots__ = (
        "_answer", "_call", "_choice", "_config", "_events", "_final", "_incoming", "_received",
        "_responses", "_search", "_setup",
        "_state", "_trace", "_wire", "_written", "body", "exchange", "first_event", "has_no_key", "last",
        "notices", "reply", "sent_headers", "track",
    )  # fmt: skip

    def __init__(
        self,
        state: State,
        incoming: IncomingRequest,
        choice: ChosenTarget,
        reply: StreamReply | None,
        trace: AttemptTrace | None,
    ) -> None:
        self.exchange: Translation | None = None
        self.notices: tuple[Notice, ...] = ()
        self.first_event: float | None = None
        """Seconds from the start of the attempt to the first meaningful event."""
        self.reply = reply
        """None: the client did not ask for a stream."""
        self.body = b""
        """The answer so far, if it is not streamed."""
        self.last = b""
        """The last bytes of the answer. The handler sends them when everything is saved."""
        self.sent_headers = NO_OUTGOING_HEADERS
        self.has_no_key = False
        """The upstream's key could not be read, so nothing was sent."""
        self._answer: Answer | None = None
        self._responses: list[dict[str, Any]] = []
        """Gets the response object that ends the answer, if the client may continue from it."""
        self._events: list[Event] = []
        """The answer so far, as the client gets it."""
        self._search: SearchRunner | None = None
        """Set if Dragoman runs the searches that the model asks for."""
        self._call: UpstreamCall
        self._received = 0
        self._final = b""
        """Output of the exchange that is not sent yet, if the exchange ends before the upstream's body."""
        self._written: tuple[Request, Outgoing] | None = None
        """The request as it was last written for the target."""
        self._trace = trace
        self._state = state
        self._config = state.config
        self.track = incoming.track
        self._incoming = incoming
        self._choice = choice
        self._wire = upstream_protocol(choice.upstream.protocol)

    @property
    def _summarises(self) -> bool:
        """Does the client want compaction from an upstream without it? Then the upstream writes a summary."""
        settings, client = self._incoming.request.settings, self._incoming.client
        # A provider compacts in one of its protocols only: OpenAI does so in Responses, not in Chat.
        native = self._choice.target.compacts and self._wire.compaction is client.compaction
        return settings.compact and client.compaction is not None and not native

    @property
    def answer(self) -> Answer:
        """The answer that the client got, collected from its events. Ask for it when the answer is over."""
        if self._answer is None:
            self._answer = collect(self._events)
        return self._answer

    async def run(self, refused: OutgoingHeaders | None = None) -> None:
        """Ask the upstream and translate its answer.

        Raises `UpstreamFailed` only while the client has got nothing. `refused` are the headers that this
        upstream has just answered with 401 or 403: they make the keyring read the credential again.
        """
        state, incoming, choice, track = self._state, self._incoming, self._choice, self.track
        try:
            restored = await conversation_state.restore(state, incoming, choice)
            request = restored.request
            if self._summarises:
                assert incoming.client.compaction is not None
                request = summarising(request, incoming.client.compaction.trigger)
            ready = await prepare(state, request, choice, incoming)
            request = ready.request
            if ready.search is not None:
                self._search = SearchRunner(
                    self._config.search, ready.search, state.pool, state.env, self._add_notice
                )
            outgoing = self._wire.write_request(request, choice.target)
            self._written = request, outgoing
            dropped = dropped_betas(incoming.betas, outgoing, self._wire.beta_header, choice.target)
            self.notices = track.notices = (*restored.notices, *ready.notices, *outgoing.notices, *dropped)
            exchange = self._begin(outgoing)
            last = await self._ask(request, outgoing, exchange, refused)
            if left_out := exchange.notices:
                self.notices = track.notices = (*self.notices, *left_out)
            if exchange.failure is not None:
                if self._trace is not None:
                    self._trace.failed(exchange.failure.kind)
            elif conversation_state.needs_saving(restored, exchange):
                # Saved before the last bytes are sent: an agent sends its next request as soon as it has
                # them.
                # Most answers hold no reasoning. Collecting their parts would be wasted.
                parts = self.answer.parts if has_reasoning(self._events) else ()
                response = self._responses.pop() if self._responses else None
                self.notices += await conversation_state.save(
                    state, incoming, restored, exchange, parts, response
                )
                track.notices = self.notices
            self.last = last
        finally:
            if self.exchange is not None:
                # The exchange and the attempt refer to each other. Breaking the cycle frees both at once.
                self.exchange.tap = None

    def would_differ(self, target: Target) -> bool:
        """Would the request's bytes be different if it were written for `target`?"""
        if self._written is None:
            return False
        request, outgoing = self._written
        if images.would_be_replaced(request, target):
            return True  # `prepare` replaces them, before the request is written
        client, header = self._incoming.betas, self._wire.beta_header
        betas = [needed_betas(client, outgoing, header, one) for one in (target, self._choice.target)]
        if betas[0] != betas[1]:
            return True
        try:
            return self._wire.write_request(request, target).encoded() != outgoing.encoded()
        except BadRequest:  # `strict` refuses to leave anything out
            return False

    def finished(self) -> HttpAnswer:
        """The response for a client that did not ask for a stream. Call it after `run`."""
        body = self.body + self.last
        self.track.record_client_bytes(body)
        return whole_reply(body, self.track, self.notices)

    async def _ask(
        self, request: Request, outgoing: Outgoing, exchange: Translation, refused: OutgoingHeaders | None
    ) -> bytes:
        """Ask the upstream, turn by turn, until the answer is over. Returns the bytes still to be sent."""
        again, unforced = False, None
        try:
            while True:
                # Not in a variable here: a long answer must not hold a large request in memory.
                prepared = await self._upstream_call(outgoing, refused, again=again)
                try:
                    async with prepared as call:
                        self._call = call
                        call.response = await call.send()
                        last = await self._translate(call, call.response, exchange)
                except UpstreamFailed as error:
                    if unforced is None or error.failure.kind is not FailureKind.INVALID_REQUEST:
                        raise
                    # DeepSeek's and Qwen's models refuse a forced call (`tool_choice`) while they think.
                    outgoing, unforced = unforced, None
                    continue
                turn = await self._next_turn(request, exchange, last)
                if isinstance(turn, bytes):
                    return turn
                request, outgoing, unforced = turn
                again, refused = True, None
        except ClientGone:
            raise
        except Exception as error:  # after the first bytes, only an error in the stream can tell the client
            if self._nothing_sent(exchange):
                raise
            failure = midstream_failure(error)
            self.track.attempt_failed(failure)
            return exchange.fail(failure)

    async def _next_turn(
        self, request: Request, exchange: Translation, last: bytes
    ) -> tuple[Request, Outgoing, Outgoing | None] | bytes:
        """The next turn: its request, how it is sent, and how it is sent if a forced call is refused.

        Returns the bytes still to be sent if the answer has no other turn.
        """
        if exchange.searches:
            found = await self._run_searches(exchange, last)
            if exchange.over:
                return self._final
            request = exchange.again(free_choice(request), found)
            return request, self._wire.write_request(request, self._choice.target), None
        if exchange.over or not exchange.rejected:
            return last
        await self._send(last, exchange)
        rejected = exchange.rejected
        request = exchange.again(request)
        unforced = self._wire.write_request(request, self._choice.target)
        forced, notice = forced_request(request, rejected, self._choice)
        self._add_notice(notice)
        return request, forced, unforced

    async def _run_searches(self, exchange: Translation, last: bytes) -> list[Search]:
        """Run the searches of the upstream's turn, and give the client `last` and the results."""
        assert self._search is not None
        found = await self._search.run(exchange.searches)
        self.track.record_searches(found)
        data = last + exchange.searched(found)
        if not exchange.over:
            await self._send(data, exchange)
            return found
        # The client runs its own calls of this turn now. The results belong into its next request.
        self._final = data
        if not self._incoming.client.carries_searches:
            calls, scope = self.answer.calls(), self._incoming.scope
            for notice in await searches.keep(self._state.store, scope, calls, found):
                self._add_notice(notice)
        return found

    def _add_notice(self, notice: Notice) -> None:
        self.notices = self.track.notices = (*self.notices, notice)

    def _begin(self, outgoing: Outgoing) -> Translation:
        incoming, tools = self._incoming, self._config.tools
        request = incoming.request
        options = Options(
            stream=request.stream,
            mode=incoming.arguments,
            freeform=incoming.freeform,
            id=incoming.id,
            created=int(self._state.clock()),
            model=request.model,
            include_usage=request.include_usage,
            issuer=self._choice.upstream.name,
            stop=outgoing.stop,
            rules_off=tools.off,
            invalid=tools.invalid,
            reask_attempts=tools.reask_attempts,
            search="" if self._search is None else self._search.name,
            compact=self._summarises,
            echo=incoming.client.echo(request),
            elapsed=partial(_seconds_since, time.monotonic()),
            clock=time.monotonic,
            on_response=self._responses.append if incoming.client.keeps_responses else None,
        )
        exchange = Translation(
            self._choice.upstream.protocol, incoming.client, tools=outgoing.names, options=options
        )
        exchange.tap = self._events.extend
        self.exchange = exchange
        self.track.translation_started(exchange)
        if self.reply is not None:
            self.reply.begin(self.notices)
        reframed = self.reply is not None and self.reply.reframed
        self._setup = ReplaySetup(outgoing.names.rule, options, reframed)
        return exchange

    async def _headers(
        self, url: str, body: bytes, refused: OutgoingHeaders | None, betas: Mapping[str, str]
    ) -> OutgoingHeaders:
        upstream, caller, keyring = self._choice.upstream, self._incoming.caller, self._state.keyring
        try:
            return await keyring.headers(
                upstream, url, body=body, refused=refused, caller=caller, betas=betas
            )
        except CredentialError as error:
            if error.fault == "client":
                raise
            self.has_no_key = True
            raise UpstreamFailed(failures.from_exception(error), retryable=False) from None

    async def _upstream_call(
        self, outgoing: Outgoing, refused: OutgoingHeaders | None, *, again: bool
    ) -> UpstreamCall:
        choice, track = self._choice, self.track
        betas = needed_betas(self._incoming.betas, outgoing, self._wire.beta_header, choice.target)
        upstream = choice.upstream
        url, body = build_request(upstream, choice.model, outgoing, choice.params, betas)
        headers = None
        if refused is None:
            headers = self._state.keyring.cached_headers(upstream, url, self._incoming.caller, betas)
        if headers is None:
            headers = await self._headers(url, body, refused, betas)
        self.sent_headers, known = headers, track.secrets
        if headers.credential is not None:
            track.attempts[-1].key = headers.credential.fingerprint
        known += [secret for secret in headers.secrets if secret not in known]
        track.record_upstream_request(headers.redacted_url, headers.redacted, body, self._setup, again=again)
        if not again:
            fingerprint_prompt(track, body, self._wire, choice.model)
        return UpstreamCall(
            self._state.pool,
            upstream.name,
            url,
            body,
            headers if self._trace is None else {**headers, **self._trace.headers},
            upstream.connect_timeout,
            upstream.idle_timeout,
            upstream.network,
        )

    async def _translate(self, call: UpstreamCall, response: Response, exchange: Translation) -> bytes:
        """Translate the upstream's response to its end. Returns the bytes still to be sent."""
        status = response.status
        self.track.record_upstream_status(status)
        if self._trace is not None:
            self._trace.answered(status)
        if not 200 <= status < 300:
            failure = await call.read_error()
            self.track.record_upstream_bytes(call.error_body)
            # A redirect is the same at the next try.
            raise UpstreamFailed(failure, retryable=status >= 400)
        self._received, self._final = 0, b""
        while not exchange.over and (chunk := await response.chunk()):
            await self._feed(chunk)
        last = self._final
        if not exchange.over:
            last = exchange.close()
            self._check(call, exchange)
        # Some upstreams quote the key in an error. The client gets the error without the key.
        return last if exchange.failure is None else call.redact_bytes(last)

    async def _feed(self, chunk: bytes) -> None:
        """Translate one read of the upstream's body, and send the result to the client."""
        exchange = self.exchange
        assert exchange is not None
        self.track.record_upstream_bytes(chunk)
        self._received += len(chunk)
        if self._received > MAX_RECEIVED:
            raise UpstreamFailed(_too_long(self._choice.upstream.name), retryable=False)
        data = exchange.feed(chunk)
        if self.first_event is None or exchange.failure is not None:
            self._check(self._call, exchange)
        if exchange.over:
            self._final = data
        else:
            await self._send(data, exchange)

    async def _send(self, data: bytes, exchange: Translation) -> None:
        """Give the client more of an answer that is not over."""
        if self.reply is not None:
            await self.reply.write(data, meaningful=exchange.meaningful)
        else:
            self.body += data

    def _check(self, call: UpstreamCall, exchange: Translation) -> None:
        """Raise the failure if the client has got nothing yet: another target may still answer."""
        if exchange.failure is not None and self._nothing_sent(exchange):
            raise UpstreamFailed(call.redact(exchange.failure))
        if exchange.meaningful and self.first_event is None:
            self.first_event = self.track.first_content() - self.track.attempts[-1].began

    def _nothing_sent(self, exchange: Translation) -> bool:
        return self.reply is None or not (self.reply.committed or exchange.meaningful)


def _seconds_since(began: float) -> float:
    return time.monotonic() - began


def _too_long(name: str) -> Failed:
    message = f"{name} sent {MAX_RECEIVED >> 20} MiB and still did not end its answer"
    return Failed(FailureKind.UPSTREAM, message, 502, "endless")
