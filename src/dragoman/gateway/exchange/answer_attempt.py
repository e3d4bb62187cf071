"""One attempt: write the request for one target, send it, and translate the upstream's answer for the client.

The client gets nothing until the answer holds something meaningful. An attempt that fails before that leaves
no trace at the client, so another attempt can follow.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from ...model.errors import BadRequest
from ...model.events import NO_USAGE, Event, Failed, FailureKind, Usage
from ...model.messages import Notice, Request, Search
from ...observe.tap import ReplaySetup
from ...observe.tracing import AttemptTrace
from ...protocols.base import Outgoing, Target
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
from ..upstreams.addressing import build_request, dropped_betas, needed_betas
from ..upstreams.call import UpstreamCall
from ..upstreams.keyring import OutgoingHeaders
from . import conversation_state, images
from .attempt import Attempt
from .forced_calls import forced_request
from .incoming_request import IncomingRequest
from .preparing import prepare
from .prompt_fingerprints import fingerprint_prompt
from .reply import Reply
from .searching import SearchRunner

# The tap keeps an answer in memory until it ends. No real answer is this long: the upstream repeats itself.
MAX_RECEIVED = 256 * 1024 * 1024


class AnswerAttempt(Attempt):
    """One attempt to get an answer from one target."""

    def __init__(
        self, incoming: IncomingRequest, choice: ChosenTarget, reply: Reply, trace: AttemptTrace | None
    ) -> None:
        super().__init__(incoming.exchange, choice, trace)
        self.translation: Translation | None = None
        self._incoming = incoming
        self._reply = reply
        self._wire = upstream_protocol(choice.upstream.protocol)
        self._search: SearchRunner | None = None
        """Set if Dragoman runs the searches that the model asks for."""
        self._written: tuple[Request, Outgoing] | None = None
        """The request as it was last written for the target."""
        self._events: list[Event] = []
        """The answer so far, as the client gets it."""
        self._answer: Answer | None = None
        self._responses: list[dict[str, Any]] = []
        """Gets the response object that ends the answer, if the client may continue from it."""
        self._last = b""
        """The last bytes of the answer. They are sent when everything is saved."""

    @property
    def answer(self) -> Answer:
        """The answer that the client got, collected from its events. Ask for it when the answer is over."""
        if self._answer is None:
            self._answer = collect(self._events)
        return self._answer

    async def run(self, refused: OutgoingHeaders | None) -> None:
        state, incoming, choice, track = self._state, self._incoming, self._choice, self._track
        restored = await conversation_state.restore(state, incoming, choice)
        request = restored.request
        if self._summarises:
            assert incoming.client.compaction is not None
            request = summarising(request, incoming.client.compaction.trigger)
        ready = await prepare(state, request, choice, incoming)
        request = ready.request
        if ready.search is not None:
            self._search = SearchRunner(
                state.config.search, ready.search, state.upstreams.pool, state.env, track.add_notices
            )
        outgoing = self._wire.write_request(request, choice.target)
        self._written = request, outgoing
        betas = self._exchange.caller.betas
        dropped = dropped_betas(betas, outgoing, self._wire.beta_header, choice.target)
        notices = (*restored.notices, *ready.notices, *outgoing.notices, *dropped)
        translation = self._begin(outgoing, notices)
        self._last = await self._ask(request, outgoing, translation, refused)
        track.add_notices(*translation.notices)
        self.failure = translation.failure
        if self.failure is not None:
            if self._trace is not None:
                self._trace.failed(self.failure.kind)
        elif conversation_state.needs_saving(restored, translation):
            # Saved before the last bytes are sent: an agent sends its next request as soon as it has
            # them. Most answers hold no reasoning, so collecting their parts would be wasted.
            parts = self.answer.parts if has_reasoning(self._events) else ()
            response = self._responses.pop() if self._responses else None
            saved = conversation_state.save(state, incoming, restored, translation, parts, response)
            track.add_notices(*await saved)

    def would_differ(self, target: Target) -> bool:
        if self._written is None:
            return False
        request, outgoing = self._written
        if images.would_be_replaced(request, target):
            return True  # `prepare` replaces them, before the request is written
        betas, header = self._exchange.caller.betas, self._wire.beta_header
        one, other = (needed_betas(betas, outgoing, header, at) for at in (target, self._choice.target))
        if one != other:
            return True
        try:
            return self._wire.write_request(request, target).encoded() != outgoing.encoded()
        except BadRequest:  # `strict` refuses to leave anything out
            return False

    def count(self, *, left: bool) -> Usage:
        self._exchange.spending.count_attempt(self._choice, self, left=left)
        return NO_USAGE if self.translation is None else self.translation.usage

    async def finish(self) -> HttpAnswer:
        return await self._reply.end(self._last)

    @property
    def _summarises(self) -> bool:
        """Does the client want compaction from an upstream without it? Then the upstream writes a summary."""
        settings, client = self._incoming.request.settings, self._incoming.client
        # A provider compacts in one of its protocols only: OpenAI does so in Responses, not in Chat.
        native = self._choice.target.compacts and self._wire.compaction is client.compaction
        return settings.compact and client.compaction is not None and not native

    def _begin(self, outgoing: Outgoing, notices: Sequence[Notice]) -> Translation:
        incoming, tools = self._incoming, self._state.config.tools
        request = incoming.request
        options = Options(
            stream=request.stream,
            mode=incoming.settings.arguments,
            freeform=incoming.settings.freeform,
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
        translation = Translation(
            self._choice.upstream.protocol, incoming.client, tools=outgoing.names, options=options
        )
        translation.tap = self._events.extend
        self.translation = translation
        self._track.translation_started(translation, notices)
        self._reply.begin()
        self._setup = ReplaySetup(outgoing.names.rule, options, self._reply.reframed)
        return translation

    async def _ask(
        self, request: Request, outgoing: Outgoing, translation: Translation, refused: OutgoingHeaders | None
    ) -> bytes:
        """Ask the upstream, turn by turn, until the answer is over. Returns the bytes still to be sent."""
        again, unforced = False, None
        try:
            while True:
                # Not in a variable here: a long answer must not hold a large request in memory.
                prepared = await self._upstream_call(outgoing, refused, again=again)
                try:
                    async with prepared as call:
                        last = await self._translate(call, await self._send(call), translation)
                except UpstreamFailed as error:
                    if unforced is None or error.failure.kind is not FailureKind.INVALID_REQUEST:
                        raise
                    # DeepSeek's and Qwen's models refuse a forced call (`tool_choice`) while they think.
                    outgoing, unforced = unforced, None
                    continue
                turn = await self._next_turn(request, translation, last)
                if isinstance(turn, bytes):
                    return turn
                request, outgoing, unforced = turn
                again, refused = True, None
        except ClientGone:
            raise
        except Exception as error:  # after the first bytes, only an error in the stream can tell the client
            if self._reply.replaceable(meaningful=translation.meaningful):
                raise
            failure = midstream_failure(error)
            self._track.attempt_failed(failure)
            return translation.fail(failure)

    async def _upstream_call(
        self, outgoing: Outgoing, refused: OutgoingHeaders | None, *, again: bool
    ) -> UpstreamCall:
        choice, exchange, upstream = self._choice, self._exchange, self._choice.upstream
        betas = needed_betas(exchange.caller.betas, outgoing, self._wire.beta_header, choice.target)
        url, body = build_request(upstream, choice.model, outgoing, choice.params, betas)
        headers = self._state.upstreams.keyring.headers(
            upstream, url, body=body, refused=refused, caller=exchange.identity.key, betas=betas
        )
        call = await self._call(url, body, headers, self._setup, again=again)
        if not again:
            fingerprint_prompt(self._track, body, self._wire, choice.model)
        return call

    async def _send(self, call: UpstreamCall) -> Response:
        try:
            return await call.send()
        finally:
            if self._trace is not None and call.response is not None:
                self._trace.answered(call.response.status)

    async def _translate(self, call: UpstreamCall, response: Response, translation: Translation) -> bytes:
        """Translate the upstream's response to its end. Returns the bytes still to be sent."""
        received = 0
        waiting = not translation.meaningful
        while chunk := await response.chunk():
            self._track.record_upstream_bytes(chunk)
            received += len(chunk)
            if received > MAX_RECEIVED:
                raise UpstreamFailed(_too_long(self._choice.upstream.name), retryable=False)
            data = translation.feed(chunk)
            if waiting or translation.failure is not None:
                waiting = self._check_begin(call, translation)
            if translation.over:
                break
            await self._reply.write(data, meaningful=translation.meaningful)
        else:
            data = translation.close()
            self._check_begin(call, translation)
        # Some upstreams quote the key in an error. The client gets the error without the key.
        return data if translation.failure is None else call.redact_bytes(data)

    def _check_begin(self, call: UpstreamCall, translation: Translation) -> bool:
        """Note the first content. Raise a failure if another target may still answer.

        Returns whether there is still no content.
        """
        if translation.failure is not None and self._reply.replaceable(meaningful=translation.meaningful):
            raise UpstreamFailed(call.redact(translation.failure))
        if translation.meaningful and self._track.attempts[-1].first_event is None:
            self._track.first_content()
        return not translation.meaningful

    async def _next_turn(
        self, request: Request, translation: Translation, last: bytes
    ) -> tuple[Request, Outgoing, Outgoing | None] | bytes:
        """The next turn: its request, how it is sent, and how it is sent if a forced call is refused.

        Returns the bytes still to be sent if the answer has no other turn.
        """
        if translation.searches:
            found, data = await self._run_searches(translation, last)
            if translation.over:
                return data
            request = translation.again(free_choice(request), found)
            return request, self._wire.write_request(request, self._choice.target), None
        if translation.over or not translation.rejected:
            return last
        await self._reply.write(last, meaningful=translation.meaningful)
        rejected = translation.rejected
        request = translation.again(request)
        unforced = self._wire.write_request(request, self._choice.target)
        forced, notice = forced_request(request, rejected, self._choice)
        self._track.add_notices(notice)
        return request, forced, unforced

    async def _run_searches(self, translation: Translation, last: bytes) -> tuple[list[Search], bytes]:
        """Run the searches of the upstream's turn. Returns the results, and the bytes still to be sent."""
        assert self._search is not None
        found = await self._search.run(translation.searches)
        self._track.record_searches(found)
        data = last + translation.searched(found)
        if not translation.over:
            await self._reply.write(data, meaningful=translation.meaningful)
            return found, b""
        # The client runs its own calls of this turn now. The results belong into its next request.
        if not self._incoming.client.carries_searches:
            calls, scope = self.answer.calls(), self._incoming.scope
            self._track.add_notices(*await searches.keep(self._state.store, scope, calls, found))
        return found, data


def _seconds_since(began: float) -> float:
    return time.monotonic() - began


def _too_long(name: str) -> Failed:
    message = f"{name} sent {MAX_RECEIVED >> 20} MiB and still did not end its answer"
    return Failed(FailureKind.UPSTREAM, message, 502, "endless")
