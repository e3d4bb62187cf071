"""One try at one target: write the request for it, send it, and carry its answer to the client.

Nothing is sent to the client before something worth sending has come, so a try that fails until then
leaves no trace. What the client cannot carry (opaque reasoning, the state of a response) is put back into
the request before, and kept from the answer before its last bytes go out.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from ..config.providers import providers
from ..credentials import CredentialError
from ..credentials.secret import Secret
from ..model.errors import DragomanError
from ..model.events import Event, Failed, FailureKind
from ..model.messages import Notice, Request
from ..observe.tap import ReplaySetup, Track
from ..observe.tracing import AttemptTrace
from ..profiles import Arguments
from ..protocols.base import ClientProtocol, Freeform, Outgoing
from ..protocols.common import failures
from ..protocols.common.collect import Answer, collect
from ..protocols.common.failures import UpstreamFailed
from ..protocols.registry import protocol
from ..routing.model_limits import clamp
from ..routing.router import Choice, merge_params
from ..store import reasoning
from ..store import responses as responses_state
from ..store.memory import Memory
from ..store.reasoning_keys import ReasoningContext
from ..store.responses import Continued, StoredResponse
from ..tools import loop_policy, reask
from ..tools.reask import Rejected
from ..translation.exchange import Exchange, Options
from ..translation.summary import summarising
from ..transport.client import Response
from ..transport.server import Answer as HttpAnswer
from ..transport.server import ClientGone
from .conversation import conversation_of
from .errors import our_fault
from .keyring import NO_BETAS, NOTHING_SENT, Sent
from .reply import StreamReply, whole_reply
from .state import State
from .upstream import Call

log = logging.getLogger("dragoman.gateway")

# An answer is remembered until it is over. None is near as long as this, so it is one that never ends.
MOST_RECEIVED = 256 * 1024 * 1024


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a client wants: the same for every target that is tried."""

    id: str
    client: ClientProtocol
    request: Request
    """As it was read."""
    kept: StoredResponse | None
    """The response it goes on from, where the client named one (`keeps_responses`)."""
    caller: Secret | None
    """The client's own key, for upstreams that want it."""
    track: Track
    betas: Mapping[str, str] = NO_BETAS
    """Features that the client opted into, by the header that says so (`beta_header`)."""
    arguments: Arguments = "live"
    """Does this client get a call's arguments as they come, or in one piece?"""
    freeform: Freeform = "custom"
    scope: str = ""
    """Nobody gets what was kept for somebody else."""
    session: str = ""
    """What the client calls its conversation."""
    memory: Memory | None = None
    """Keeps responses that are not stored, as long as the client's connection lasts."""

    def conversation(self) -> str:
        """See `conversation_of`. A request that goes on from a response does not repeat how it all began."""
        known = self.session or (self.kept.items[0] if self.kept and self.kept.items else "")
        return conversation_of(self.request, known)


class Attempt:
    """One try."""

    __slots__ = (
        "_asked", "_called", "_choice", "_config", "_left", "_received", "_said", "_setup", "_state",
        "_trace", "_wire", "body", "exchange", "first_event", "last", "notices", "reply", "sent",
        "track",
    )  # fmt: skip

    def __init__(
        self,
        state: State,
        asked: Asked,
        choice: Choice,
        reply: StreamReply | None,
        trace: AttemptTrace | None,
    ) -> None:
        self.exchange: Exchange | None = None
        self.notices: tuple[Notice, ...] = ()
        self.first_event: float | None = None
        self.reply = reply
        """Where the answer goes, if it is streamed."""
        self.body = b""
        self.last = b""
        """What goes out with the end of the answer."""
        self.sent = NOTHING_SENT
        """The headers of the upstream's request."""
        self._said: list[Event] = []
        """What the client was given, as far as it came."""
        self._called: Call
        self._received = 0
        self._left = b""
        """What is still to be sent, when the exchange is over before the upstream's answer is."""
        self._trace = trace
        self._state = state
        self._config = state.config
        self.track = asked.track
        self._asked = asked
        self._choice = choice
        self._wire = protocol(choice.upstream.protocol)

    @property
    def _summarises(self) -> bool:
        """Must the upstream be asked for a summary, because it cannot compact the conversation itself?"""
        settings, client = self._asked.request.settings, self._asked.client
        return settings.compact and client.compaction is not None and not self._choice.target.compacts

    @property
    def answer(self) -> Answer:
        """What the client was given, put together."""
        return collect(self._said)

    async def run(self, refused: Mapping[str, str] | None = None) -> None:
        """Ask, and give what comes. Raises `UpstreamFailed` as long as the client was told nothing.

        `refused` are the headers that the same upstream would not take just now.
        """
        state, asked, choice, track = self._state, self._asked, self._choice, self.track
        goes_on = asked.client.keeps_responses
        try:
            continued = await self._continued() if goes_on else None
            carriage = state.carriage(
                asked.client.name, choice.upstream, asked.scope, reasoning.asks_for_reasoning(asked.request)
            )
            request, said = asked.request if continued is None else continued.request, ()
            if not reasoning.nothing_kept(request):
                restored = await reasoning.restore(state.store, request, carriage)
                request, said = restored.request, restored.notices
            if self._summarises:
                assert asked.client.compaction is not None
                request = summarising(request, asked.client.compaction.trigger)
            request, held = self._within_limits(request)
            outgoing = self._wire.write_request(request, choice.target)
            self.notices = track.notices = (*said, *held, *outgoing.notices)
            exchange = self._begin(outgoing)
            last = await self._answered(request, outgoing, exchange, refused)
            if left_out := exchange.notices:
                self.notices = track.notices = (*self.notices, *left_out)
            if exchange.failure is not None:
                if self._trace is not None:
                    self._trace.failed(exchange.failure.kind)
            elif goes_on or exchange.receipts or not exchange.text_only:
                await self._keep(continued, carriage, last)
            self.last = last
        finally:
            if self.exchange is not None:
                self.exchange.tap = None  # else the two hold each other

    def finished(self) -> HttpAnswer:
        """The whole answer, once it has run, where it is not streamed."""
        body = self.body + self.last
        self.track.record_client_bytes(body)
        return whole_reply(body, self.track.id, self.notices)

    async def _answered(
        self, request: Request, outgoing: Outgoing, exchange: Exchange, refused: Mapping[str, str] | None
    ) -> bytes:
        """Ask, again while calls are rejected. Gives the bytes that are still to be sent."""
        asked, upstream, keyring = self._asked, self._choice.upstream, self._state.keyring
        again, unforced = False, None
        try:
            while True:
                url = upstream.endpoint.url(outgoing.path)
                sent = keyring.at_hand(upstream, url, asked.caller, asked.betas) if refused is None else None
                self.sent = await self._headers(url, refused) if sent is None else sent
                try:
                    async with self._call(url, outgoing, again=again) as call:
                        self._called = call
                        call.response = await call.ask()
                        last = await self._carry_over(call, call.response, exchange)
                except UpstreamFailed as error:
                    if unforced is None or error.failure.kind is not FailureKind.INVALID_REQUEST:
                        raise
                    # Some models take no forced call (DeepSeek's and Qwen's while they think).
                    outgoing, unforced = unforced, None
                    continue
                if exchange.over or not exchange.rejected:
                    return last
                again, refused = True, None
                rejected = exchange.rejected
                request = exchange.again(request)
                unforced = self._wire.write_request(request, self._choice.target)
                outgoing = self._forced(request, rejected)
        except ClientGone:
            raise
        except Exception as error:
            if self._untold(exchange):
                raise
            failure = _told(error)
            self.track.attempt_failed(failure)
            return exchange.fail(failure)

    def _forced(self, request: Request, rejected: Sequence[Rejected]) -> Outgoing:
        """The question for rejected calls, so that the model has to make them."""
        provider = providers().get(self._choice.upstream.provider or "")
        by_schema = provider is not None and provider.decodes_by_schema
        request, notice = reask.forced(request, rejected, by_schema=by_schema)
        self.notices = self.track.notices = (*self.notices, notice)
        return self._wire.write_request(request, self._choice.target)

    async def _continued(self) -> Continued:
        asked, upstream = self._asked, self._choice.upstream
        return await responses_state.expand(
            self._state.store,
            asked.request,
            asked.kept,
            issuer=upstream.name,
            scope=asked.scope,
            memory=asked.memory,
        )

    def _within_limits(self, request: Request) -> tuple[Request, tuple[Notice, ...]]:
        """Not more tokens than the model gives, and not in circles."""
        said: tuple[Notice, ...] = ()
        if request.settings.max_tokens is not None:
            choice = self._choice
            request, said = clamp(request, self._state.limits.of(choice.upstream, choice.model))
        found = loop_policy.noticed(request)
        if found is not None and found.count > 2:
            loops = self._config.tools.loops
            names = ", ".join(name for name, _, _ in found.turns)
            message = f"{names} gave the same result {found.count} times in a row"
            said = (*said, Notice("going-in-circles", "messages", message))
            request = loop_policy.guarded(
                request, found, note_after=loops.note_after, stop_after=loops.stop_after
            )
        return request, said

    def _begin(self, outgoing: Outgoing) -> Exchange:
        asked, tools = self._asked, self._config.tools
        request = asked.request
        options = Options(
            stream=request.stream,
            mode=asked.arguments,
            freeform=asked.freeform,
            id=asked.id,
            created=int(self._state.clock()),
            model=request.model,
            include_usage=request.include_usage,
            issuer=self._choice.upstream.name,
            stop=outgoing.stop,
            rules_off=tools.off,
            invalid=tools.invalid,
            reask_attempts=tools.reask_attempts,
            compact=self._summarises,
            echo=asked.client.echo(request),
            elapsed=partial(_seconds_since, time.monotonic()),
            clock=time.monotonic,
        )
        exchange = Exchange(
            self._choice.upstream.protocol, asked.client, tools=outgoing.names, options=options
        )
        exchange.tap = self._heard if self._state.tap.event_subscriptions else self._said.extend
        self.exchange = self.track.exchange = exchange
        if self.reply is not None:
            self.reply.begin(self.notices)
        array = self.reply is not None and self.reply.array
        self._setup = ReplaySetup(outgoing.names.rule, options, array)
        return exchange

    def _heard(self, events: list[Event]) -> None:
        self._said += events
        self.track.record_events(events)

    async def _headers(self, url: str, refused: Mapping[str, str] | None) -> Sent:
        asked, upstream = self._asked, self._choice.upstream
        try:
            return await self._state.keyring.headers(
                upstream, url, refused=refused, caller=asked.caller, betas=asked.betas
            )
        except CredentialError as error:
            if error.fault == "client":
                raise
            raise UpstreamFailed(failures.from_exception(error), retryable=False) from None

    def _call(self, url: str, outgoing: Outgoing, *, again: bool) -> Call:
        upstream, params = self._choice.upstream, self._choice.params
        body = msgspec.json.encode(merge_params(outgoing.members, params)) if params else outgoing.encoded()
        known = self.track.secrets
        known += [secret for secret in self.sent.secrets if secret not in known]
        self.track.record_upstream_request(self.sent.url, self.sent.shown, body, self._setup, again=again)
        return Call(
            self._state.pool,
            upstream.name,
            url,
            body,
            self.sent if self._trace is None else {**self.sent, **self._trace.headers},
            upstream.connect_timeout,
            upstream.idle_timeout,
            upstream.network,
        )

    async def _carry_over(self, call: Call, response: Response, exchange: Exchange) -> bytes:
        """The upstream's answer, from its head to its end; gives the bytes that are still to be sent."""
        status = response.status
        self.track.record_upstream_status(status)
        if self._trace is not None:
            self._trace.answered(status)
        if not 200 <= status < 300:
            failure = await call.refusal()
            self.track.record_upstream_bytes(call.refused_with)
            raise UpstreamFailed(failure, retryable=status >= 400)
        self._received, self._left = 0, b""
        while not exchange.over and (chunk := await response.chunk()):
            await self._take(chunk)
        last = self._left
        if not exchange.over:
            last = exchange.close()
            self._look(call, exchange)
        # An error that comes after the first words is told as it is, but for the key in it.
        return last if exchange.failure is None else call.without_secrets(last)

    async def _take(self, chunk: bytes) -> None:
        """A piece of the upstream's answer goes through to the client."""
        exchange = self.exchange
        assert exchange is not None
        self.track.record_upstream_bytes(chunk)
        self._received += len(chunk)
        if self._received > MOST_RECEIVED:
            raise UpstreamFailed(_endless(self._choice.upstream.name), retryable=False)
        data = exchange.feed(chunk)
        if self.first_event is None or exchange.failure is not None:
            self._look(self._called, exchange)
        if exchange.over:
            self._left = data
        elif self.reply is not None:
            await self.reply.write(data, meaningful=exchange.meaningful)
        else:
            self.body += data

    def _look(self, call: Call, exchange: Exchange) -> None:
        """A failure before anything was said is not the answer yet: somebody else may do better."""
        if exchange.failure is not None and self._untold(exchange):
            raise UpstreamFailed(call.redacted(exchange.failure))
        if exchange.meaningful and self.first_event is None:
            self.first_event = self.track.first_content() - self.track.attempts[-1].began

    def _untold(self, exchange: Exchange) -> bool:
        return self.reply is None or not (self.reply.committed or exchange.meaningful)

    async def _keep(self, continued: Continued | None, carriage: ReasoningContext, last: bytes) -> None:
        """What the client's next request will need, before it can possibly send one."""
        store, exchange = self._state.store, self.exchange
        assert exchange is not None
        request = self._asked.request if continued is None else continued.request
        # Most answers have nothing to be kept: they are not even put together.
        parts = self.answer.parts if reasoning.has_reasoning(self._said) else ()
        said = await reasoning.stash(store, request, parts, carriage, exchange.receipts)
        if continued is not None:
            said += await responses_state.record(
                store,
                continued,
                last,
                issuer=carriage.issuer,
                scope=self._asked.scope,
                answer=self.answer,
                memory=self._asked.memory,
            )
        self.notices += said
        self.track.notices = self.notices


def _seconds_since(began: float) -> float:
    return time.monotonic() - began


def _told(error: Exception) -> Failed:
    """What a client that has part of its answer is told."""
    if isinstance(error, UpstreamFailed):
        return error.failure
    if isinstance(error, DragomanError):
        return failures.from_exception(error)
    log.error("an answer broke off through a fault of Dragoman's", exc_info=error)
    return our_fault(error)


def _endless(name: str) -> Failed:
    message = f"{name} sent {MOST_RECEIVED >> 20} MiB and still did not end its answer"
    return Failed(FailureKind.UPSTREAM, message, 502, "endless")
