"""The other endpoints of a protocol: embeddings, images, files, batches and the like.

A request passes to an upstream of the same protocol, and its answer passes back, both as they are. Access,
credentials, limits, metrics and receipts are those of every exchange. Only a model's name changes, as a route
says. A body that names a model is read whole (`server.max_body`); a file is sent on while it arrives
(`server.max_upload`).
"""

from __future__ import annotations

from ...access.identity import ModelNotAllowed
from ...access.limiter import LimitReached
from ...credentials import CredentialError
from ...credentials.secret import Secret
from ...model.errors import DragomanError
from ...model.events import Failed, FailureKind
from ...model.messages import Notice
from ...observe.metrics import TargetMetrics
from ...observe.tracing import ExchangeTrace
from ...protocols.base import ClientProtocol
from ...protocols.common import failures
from ...protocols.common.failures import UpstreamFailed
from ...protocols.facts import OtherEndpoint
from ...routing.router import ChosenTarget
from ...transport.client import Response, Upload
from ...transport.server import (
    ClientGone,
    HttpAnswer,
    HttpRequest,
    HttpResponse,
    NotFound,
    RefusedRequest,
    Stream,
)
from ..caller import Caller, CallerIdentity
from ..errors import body_refused, error_response, from_refusal, limit_reached
from ..exchange.accounting import account, count_usage
from ..exchange.attempt import Attempt
from ..exchange.reply import answer_headers
from ..exchange.spending import Spending, refuse_uncounted
from ..exchange.target_health import UNAUTHORIZED, TargetHealth, belongs_to_target
from ..ids import new_id
from ..state import State
from ..upstreams.call import UpstreamCall
from ..upstreams.keyring import NO_OUTGOING_HEADERS, OutgoingHeaders
from .links import gateway_url, to_gateway_url, with_gateway_urls, with_key
from .named_model import model_in
from .ownership import Ownership, shares_account
from .request import passed_body, passed_headers, passed_url
from .routes import NotPassed, choices

_CLIENT_CLOSED_REQUEST = 499
_ANSWERED = (
    "accept-ranges", "cache-control", "content-disposition", "content-range", "content-type", "etag",
    "last-modified", "retry-after",
)  # fmt: skip
"""The upstream's headers that pass to the client."""
_KEPT = 1024 * 1024
"""Bytes of a body that the ring and recordings keep. A longer one is only counted: a file would displace
everything else."""
_LARGEST_READ = 16 * 1024 * 1024
"""Bytes of an answer that is searched for token counts, or for URLs."""
_BYTES_PER_TOKEN = 4  # a rough estimate, which the count in the answer replaces


class PassThrough:
    """One request that passes to an upstream as it is, and its answer."""

    def __init__(
        self, state: State, client: ClientProtocol, endpoint: OtherEndpoint, root: str, http: HttpRequest
    ) -> None:
        """`root` is the part of the path that `endpoint.path` comes after."""
        self.id = new_id()
        self.client = client
        self.choice: ChosenTarget | None = None
        self.attempt: Attempt | None = None
        self.counters: TargetMetrics | None = None
        self.outcome = "cancelled"
        self.status = _CLIENT_CLOSED_REQUEST
        self.track = state.tap.begin(self.id, client.name)
        self.trace: ExchangeTrace | None = None
        self._state = state
        self._endpoint = endpoint
        self._root = root
        self._http = http
        self._caller = Caller(http)
        self._health = TargetHealth(state)
        self._key: Secret | None = None
        """The client's own key, for upstreams whose credential is `client`."""
        self._body = b""
        """Only of a request that names a model. Any other body is sent on while it arrives."""
        self._model = ""
        self.sent_headers = NO_OUTGOING_HEADERS
        self.has_no_key = False
        self._stream: Stream | None = None
        self._spending: Spending | None = None
        """None: the key has no limits."""
        self._ownership: Ownership | None = None
        """None: the client may see all files and batches of the upstream."""
        self._refusal: HttpResponse | None = None
        """The upstream's own error, as it is."""

    async def run(self) -> HttpAnswer:
        """Serve the request. Metrics, log and receipt are written however it ends."""
        self._state.running += 1
        self._state.metrics.open.inc()
        try:
            try:
                answer = await self._serve()
            except RefusedRequest as error:
                answer = self._failed(self._body_refused(error))
            except LimitReached as error:
                answer = self._failed(limit_reached(error))
            except DragomanError as error:
                answer = self._failed(failures.from_request_error(error))
            if self._spending is not None:
                await self._spending.settle()
            self.status = answer.status
        except ClientGone:
            self.outcome = "cancelled"
            answer = HttpResponse(status=_CLIENT_CLOSED_REQUEST)
        except Exception:  # any bug: the outcome is recorded, and `App.answer` answers
            self.outcome, self.status = FailureKind.SERVER.value, 500
            raise
        finally:
            if self._spending is not None:
                self._spending.settle_later()
            self._state.running -= 1
            self._state.metrics.open.dec()
            account(self._state, self)
        return answer

    def _body_refused(self, error: RefusedRequest) -> Failed:
        server = self._state.config.server
        if isinstance(error, NotFound):
            return from_refusal(self._http, error)
        if self._endpoint.model:
            return body_refused(error, server.max_body)
        return body_refused(error, server.max_upload, "server.max_upload")

    async def _serve(self) -> HttpAnswer:
        http, track, endpoint, caller = self._http, self.track, self._endpoint, self._caller
        if any(part in (".", "..") for part in http.path.split("/")):
            raise NotFound  # such a path leads elsewhere at the upstream, with the upstream's key
        track.secrets += caller.keys
        self._state.redactor.learn(caller.keys)
        caller_identity = caller.identify(self._state.keys)
        track.key, track.team, self._key = (
            caller_identity.identity.name,
            caller_identity.identity.team,
            caller_identity.key,
        )
        if endpoint.model:
            self._body = await http.read()
        track.record_client_request(http.method, caller.target, caller.headers, _recordable(self._body))
        track.notices = (
            Notice("passed-through", http.path, "the request and its answer pass as they are", warning=False),
        )
        if endpoint.model == "body":
            self._model = model_in(self._body, self._content_type)
        elif endpoint.model == "path":
            self._model = http.parts["model"]
        track.model = self._model
        try:
            targets = choices(self._state, self.client, endpoint, self._model)
        except NotPassed as error:
            raise NotPassed(f"{http.method} {http.path}: {error.message}") from None
        await self._admit(caller_identity, targets[0])
        return await self._try_targets(targets)

    async def _admit(self, caller_identity: CallerIdentity, choice: ChosenTarget) -> None:
        """Check that the key may do this, and reserve what the request may use of its limits."""
        identity, endpoint, http = caller_identity.identity, self._endpoint, self._http
        if identity.models and not self._model:
            raise ModelNotAllowed(
                f'the key "{identity.name}" may use certain models only, and this request names none'
            )
        identity.check_model(self._model)
        if (endpoint.names or "id" in http.parts) and shares_account(caller_identity, choice.upstream):
            self._ownership = Ownership(self._state.store, identity.name)
            await self._ownership.check(choice.upstream.name, http.parts)
        if limits := self._state.limiter.meters(identity):
            if endpoint.paid_later and http.method == "POST":
                refuse_uncounted(limits, endpoint.name)
            self._spending = Spending(self._state, limits, self.track)
            written = len(self._body) if self._content_type.startswith("application/json") else 0
            await self._spending.reserve_tokens(choice, written // _BYTES_PER_TOKEN)

    @property
    def _content_type(self) -> str:
        return self._http.headers.get("content-type", "")

    async def _try_targets(self, targets: tuple[ChosenTarget, ...]) -> HttpAnswer:
        """Try the targets in order, each with its keys, until one answers."""
        failure: Failed | None = None
        for choice in targets:
            if self._endpoint.model:
                answer = await self._health.try_keys(choice, str, self._try_target)
            else:
                # Files and batches exist in one account only: that of the upstream's first key.
                answer = await self._try_target(choice)
            if not isinstance(answer, Failed):
                return answer
            failure = answer
            if not self._may_send_again or not belongs_to_target(failure):
                break
        assert failure is not None  # `choices` returns at least one target, or raises
        return self._failed(failure)

    @property
    def _may_send_again(self) -> bool:
        """Only a body that was read whole can be sent again."""
        return bool(self._endpoint.model) or not self._http.has_body

    async def _try_target(self, choice: ChosenTarget) -> HttpAnswer | Failed:
        """Try one target with one key. Returns the failure if another one may still answer.

        There are no retries: SDKs retry by themselves, and an image or a file twice costs twice.
        """
        state, health = self._state, self._health
        self.choice, refused = choice, None
        self.counters = state.metrics.target(self.client.name, choice.upstream.name, choice.model)
        while True:
            health.began(choice)
            self.track.attempt_started(choice)
            self.has_no_key = False
            try:
                return await self._ask(choice, refused)
            except UpstreamFailed as error:
                failure = error.failure
            except BaseException:
                health.abandoned(choice)  # the client left, or its request was invalid
                raise
            self.track.attempt_failed(failure)
            state.metrics.failures.labels(choice.upstream.name, failure.kind.value).inc()
            if self._stream is not None:
                health.failed(choice, failure, self)
                return self._broken_off(self._stream, failure)
            if failure.kind in UNAUTHORIZED and refused is None:
                # Another program may have refreshed the token since it was read.
                if self._may_send_again and await health.may_be_renewed(choice, self):
                    refused = self.sent_headers
                    continue
                if not self._may_send_again:  # the next request has the new token
                    await state.keyring.changed_since(choice.upstream, self.sent_headers)
            health.failed(choice, failure, self)
            return failure

    async def _ask(self, choice: ChosenTarget, refused: OutgoingHeaders | None) -> HttpAnswer:
        """Send the request to one target, and pass its answer on."""
        http, upstream, track = self._http, choice.upstream, self.track
        self._refusal = None
        endpoint, model, most = self._endpoint, self._model, self._state.config.server.max_upload
        url = passed_url(http, self.client, endpoint, self._root, choice)
        body = passed_body(http, self.client, endpoint, choice, self._body, model, most)
        headers = self.sent_headers = await self._outgoing(choice, url, body, refused)
        if headers.credential is not None:
            track.attempts[-1].key = headers.credential.fingerprint
        track.secrets += [secret for secret in headers.secrets if secret not in track.secrets]
        kept = _recordable(body) if isinstance(body, bytes) else b""
        track.record_upstream_request(headers.redacted_url, headers.redacted, kept, None, again=False)
        async with UpstreamCall(
            self._state.pool,
            upstream.name,
            url,
            body,
            headers,
            upstream.connect_timeout,
            upstream.idle_timeout,
            upstream.network,
            http.method,
        ) as call:
            response = call.response = await call.send()
            track.record_upstream_status(response.status)
            if not 200 <= response.status < 300:
                failure = await call.read_error()
                track.record_upstream_bytes(call.error_body)
                if response.status >= 400:
                    answered = self._answer_headers(response, choice)
                    error = call.redact_bytes(call.error_body)
                    self._refusal = HttpResponse(error, status=response.status, headers=answered)
                raise UpstreamFailed(failure)
            return await self._pass(response, choice)

    async def _outgoing(
        self, choice: ChosenTarget, url: str, body: bytes | Upload, refused: OutgoingHeaders | None
    ) -> OutgoingHeaders:
        try:
            return await self._state.keyring.passing_headers(
                choice.upstream,
                url,
                method=self._http.method,
                body=body if isinstance(body, bytes) else None,
                passed=passed_headers(self._http, self.client, uploads=isinstance(body, Upload)),
                refused=refused,
                caller=self._key,
                betas=self._caller.betas,
            )
        except CredentialError as error:
            if error.fault == "client":
                raise
            self.has_no_key = True
            raise UpstreamFailed(failures.from_exception(error), retryable=False) from None

    def _answer_headers(self, response: Response, choice: ChosenTarget) -> dict[str, str]:
        """The upstream's headers that pass to the client."""
        endpoints = self.client.endpoints
        headers = {name: response.headers[name] for name in _ANSWERED if name in response.headers}
        if endpoints.passed_headers:
            passed = response.headers.items()
            headers |= {name: value for name, value in passed if name.startswith(endpoints.passed_headers)}
        for name in endpoints.link_headers:
            if name in headers:
                url = to_gateway_url(headers[name], choice.upstream, self._gateway())
                headers[name] = with_key(url, self._gateway(), self._state.keys, self._caller.keys)
        return headers | answer_headers(self.id, (), self.track.limit_warnings)

    def _gateway(self) -> str:
        return gateway_url(self._http, secure=self._state.config.server.tls is not None)

    async def _pass(self, response: Response, choice: ChosenTarget) -> HttpAnswer:
        """Pass the upstream's answer to the client while it arrives."""
        headers, endpoint, http = self._answer_headers(response, choice), self._endpoint, self._http
        owned = self._ownership if endpoint.names else None
        if endpoint.links or owned is not None:
            body = await response.read(_LARGEST_READ)
            if owned is not None:
                body = await owned.process_answer(
                    choice.upstream.name, endpoint, http.method, http.parts, body
                )
            body = with_gateway_urls(body, endpoint.links, choice.upstream, self._gateway())
            self._record(body, 0)
            self._succeeded(choice, body)
            return HttpResponse(body, status=response.status, headers=headers)
        if "content-length" in response.headers and "content-encoding" not in response.headers:
            headers["content-length"] = response.headers["content-length"]
        stream = self._stream = Stream(http, response.status, headers)
        read: list[bytes] = []
        size = 0
        while chunk := await response.chunk():
            size = self._record(chunk, size)
            if endpoint.model and size <= _LARGEST_READ:
                read.append(chunk)
            await stream.write(chunk)
        await stream.end()
        self._succeeded(choice, b"".join(read) if size <= _LARGEST_READ else b"")
        return stream

    def _record(self, chunk: bytes, size: int) -> int:
        """Record a piece of the answer, after `size` bytes. Returns the size with it."""
        track = self.track
        if size + len(chunk) <= _KEPT:
            track.record_upstream_bytes(chunk)
            track.record_client_bytes(chunk)
        else:
            track.bytes_in += len(chunk)
            track.bytes_out += len(chunk)
        return size + len(chunk)

    def _succeeded(self, choice: ChosenTarget, body: bytes) -> None:
        self.outcome = "ok"
        self._health.succeeded(choice, self)
        if self._endpoint.model:
            usage = self._endpoint.usage(body)
            count_usage(self._state, self, usage, answered=True)
            if self._spending is not None:
                self._spending.count_passed(choice.upstream, choice.model, usage)

    def _failed(self, failure: Failed) -> HttpResponse:
        """The upstream's own error, or one in the client's protocol."""
        self.outcome, self.track.failure = failure.kind.value, failure
        headers = answer_headers(self.id, (), self.track.limit_warnings)
        answer = self._refusal or error_response(self.client, failure, self.id, headers)
        self.track.record_client_bytes(answer.body)
        return answer

    def _broken_off(self, stream: Stream, failure: Failed) -> Stream:
        """Break the connection, so that the client does not take a part of an answer for all of it."""
        self.outcome, self.track.failure = failure.kind.value, failure
        if self._http.sink is not None:
            self._http.sink.abort()
        return stream


def _recordable(body: bytes) -> bytes:
    return body if len(body) <= _KEPT else b""
