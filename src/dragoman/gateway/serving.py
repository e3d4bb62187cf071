"""One exchange over HTTP: read, route, ask, and give the answer, with honest behaviour under trouble.

Until something worth sending has come, a failed upstream is asked again and then replaced by the next
target. From then on the answer belongs to its upstream, and a failure is told in the client's protocol.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping

from ..errors import DragomanError
from ..events import Failed, FailureKind
from ..health import backoff
from ..http.server import Answer, BodyTooLarge, ClientGone, Request, Response
from ..messages import Notice
from ..profiles import UNKNOWN, detect
from ..protocols import failures
from ..protocols.base import ClientProtocol, Minted
from ..router import Choice
from ..store import responses as responses_state
from ..store.responses import PreviousResponseNotFound
from ..tracing import NO_EXCHANGE
from ..upstream import UpstreamFailed
from .account import account, count_tokens
from .attempt import Asked, Attempt, finished
from .body import read_body
from .errors import error_response, too_large
from .guard import first_key, presented_keys
from .ids import new_id
from .manners import Manner, manner
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
_UNPRINTABLE = re.compile(r"[^ -~]")
# Longer than this, the client's own SDK should do the waiting.
_LONGEST_WAIT = 5.0


class Serving:
    """One request and its answer."""

    def __init__(self, state: State, client: ClientProtocol, http: Request) -> None:
        self.id = new_id()
        self.client = client
        self.model = ""
        self.profile = UNKNOWN.name
        """Who the client is, by the signs it shows."""
        self.choice: Choice | None = None
        self.attempt: Attempt | None = None
        self.reply: StreamReply | None = None
        self.outcome = "cancelled"
        self.status = 499  # who hung up is told nothing
        self.started = time.monotonic()
        self.track = state.tap.begin(self.id, client.name)
        self.trace = NO_EXCHANGE
        self._began = time.time()
        self._state = state
        self._config = state.config
        self._http = http
        self._manner = Manner()

    async def run(self) -> Answer:
        """Serve it. Whatever happens, it is accounted for."""
        self._state.running += 1
        self._state.metrics.open.inc()
        try:
            response = await self._answer()
            self.status = response.status
        except ClientGone:
            response = Response(status=499)  # nobody reads it
        except Exception:
            self.outcome = FailureKind.SERVER.value
            self.status = 500
            if self.reply is None or self.reply.unopened():
                raise
            log.exception("an answer broke off through a fault of Dragoman's")
            response = self.reply.abort()
        finally:
            if self.reply is not None:
                self.reply.stop()
            self._state.running -= 1
            self._state.metrics.open.dec()
            account(self._state, self)
            self.attempt = None  # it knows us: nothing is to be left behind that only the collector can free
        return response

    async def _answer(self) -> Answer:
        """The answer, or a refusal in the client's own words."""
        try:
            return await self._serve()
        except BodyTooLarge:
            return self._refuse(too_large(self._config.server.max_body))
        except PreviousResponseNotFound as error:
            return self._refuse(responses_state.failure(error))
        except DragomanError as error:
            return self._refuse(failures.of_request(error))

    async def _serve(self) -> Answer:
        http, track = self._http, self.track
        keys = presented_keys(http)
        track.secrets += keys
        self._state.redactor.learn(track.secrets)
        body = await read_body(http)
        track.read(http.method, http.target, http.headers, body)
        request = self.client.read_request(body, http.target)
        self.model = track.model = request.model
        track.stream = request.stream
        profile = detect(http.path, http.headers, request)
        self.profile = track.profile = profile.name
        self._manner = manner(self._config, profile, self.client)
        self.trace = self._state.tracing.exchange(
            self.id, self.client.name, request, http.headers, self._began
        )
        caller = first_key(keys, self._state.keys)
        scope = caller.fingerprint if caller is not None else ""
        kept = await responses_state.previous(self._state.store, request, scope)
        betas = self._http.headers.get("anthropic-beta", "")
        asked = Asked(
            id=self.id,
            client=self.client,
            request=request,
            kept=kept,
            caller=caller,
            betas=betas,
            track=track,
            arguments=self._manner.arguments,
        )
        if request.stream:
            self.reply = StreamReply(http, self.client, self._manner, track)
            self.reply.begin(self._headers())
            self.reply.keep_alive()
        failure: Failed | None = None
        for choice in self._state.choices(request.model):
            if log.isEnabledFor(logging.DEBUG):
                log.debug("chosen", extra={"exchange": self.id, "target": choice.key, "why": choice.why})
            answer = await self._try(choice, asked)
            if not isinstance(answer, Failed):
                return answer
            failure = answer
            if failure.kind not in _TRANSIENT and failure.kind not in _TARGETS_OWN:
                break
        assert failure is not None  # the router gives at least one choice, or says why not
        return self._refuse(failure)

    async def _try(self, choice: Choice, asked: Asked) -> Answer | Failed:
        """Ask one target, again while that makes sense."""
        self.choice = choice
        health, now = self._state.health, self._state.clock
        refused: Mapping[str, str] | None = None
        tries = 0
        while True:
            health.began(choice.key, now())
            self.track.tries_target(choice)
            trace = self.trace.attempt(choice)
            attempt = self.attempt = Attempt(self._state, asked, choice, self._open_reply, trace)
            try:
                await attempt.run(refused)
            except UpstreamFailed as error:
                failed = error.with_traceback(None)  # that would hold us, and we it
            except BaseException:
                health.abandoned(choice.key)  # the client left, or its request was no good
                raise
            else:
                return self._given(choice, attempt)
            finally:
                count_tokens(self._state, self, choice, attempt)
            failure = failed.failure
            self.track.try_failed(failure)
            self._state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            if failure.kind in _UNAUTHORIZED and refused is None:
                refused = attempt.sent  # another program may have rotated the token since it was read
                continue
            tries += 1
            wait = self._after(choice, failed, tries)
            if wait is None:
                return failure
            await asyncio.sleep(wait)

    def _given(self, choice: Choice, attempt: Attempt) -> Answer:
        """The client has its answer, whole or broken off."""
        failure = attempt.exchange.failure if attempt.exchange else None
        if failure is None:
            self.outcome = "ok"
            self._state.health.succeeded(choice.key)
        else:
            self.outcome = failure.kind.value
            self.track.failure = failure
            self._state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            self._blame(choice, failure)
        return finished(attempt, self._headers(attempt.notices))

    def _blame(self, choice: Choice, failure: Failed) -> bool:
        """Was it the target's fault? Then it is remembered."""
        if failure.kind in _TRANSIENT or failure.kind in _TARGETS_OWN:
            self._state.health.failed(choice.key, self._state.clock(), failure.retry_after)
            return True
        self._state.health.abandoned(choice.key)
        return False

    def _after(self, choice: Choice, failed: UpstreamFailed, tries: int) -> float | None:
        """How long to wait before the same target is tried again, if it is."""
        failure = failed.failure
        if not self._blame(choice, failure) or not failed.again:
            return None
        if failure.kind not in _TRANSIENT or tries > self._config.server.retries:
            return None
        wait = failure.retry_after
        if wait is None:
            wait = backoff(tries, self._state.random())
        return wait if wait <= _LONGEST_WAIT else None

    def _open_reply(self, notices: tuple[Notice, ...]) -> StreamReply:
        assert self.reply is not None
        self.reply.begin(self._headers(notices))
        return self.reply

    def _headers(self, notices: tuple[Notice, ...] = ()) -> dict[str, str]:
        headers = {"x-dragoman-exchange": self.id, "request-id": self.id, "x-request-id": self.id}
        if notices:
            said = "; ".join(f"{n.rule} {n.path}" for n in notices)
            # Paths have words of the client's in them: nothing that could end a header goes into one.
            headers["x-dragoman-warnings"] = _UNPRINTABLE.sub("?", said[:2000])
        return headers

    def _refuse(self, failure: Failed) -> Answer:
        """By a status; in the stream, where the client was told to go on waiting."""
        self.outcome = failure.kind.value
        self.track.failure = failure
        if self.reply is None or self.reply.unopened():
            response = error_response(self.client, failure, self.id, self._headers())
            self.track.went(response.body)
            return response
        self.reply.begin({})
        minted = Minted(id=self.id, created=int(self._state.clock()), model=self.model)
        return self.reply.end(self.client.stream_encoder(minted).encode([failure]))
