"""The other endpoints of a protocol: embeddings, images, files, batches and the like.

A request passes to an upstream of the same protocol, and its answer passes back, both as they are. Access,
credentials, limits, metrics and receipts are those of every exchange. Only a model's name changes, as a route
says. A body that names a model is read whole (`server.max_body`); a file is sent on while it arrives
(`server.max_upload`).
"""

from __future__ import annotations

from collections.abc import Callable

from ...access.identity import ModelNotAllowed
from ...model.events import Failed
from ...model.messages import Notice
from ...observe.tracing import AttemptTrace
from ...protocols.facts import OtherEndpoint
from ...routing.router import ChosenTarget
from ...transport.server import HttpAnswer, NotFound, RefusedRequest
from ..errors import body_refused, error_response, from_refusal
from ..exchange.attempt import recordable
from ..exchange.exchange import Exchange, Job
from ..exchange.reply import answer_headers
from .attempt import PassAttempt
from .named_model import model_in
from .ownership import Ownership, shares_account
from .request import PassedRequest
from .routes import NotPassed, choices

_BYTES_PER_TOKEN = 4  # a rough estimate, which the count in the answer replaces


class PassJob(Job):
    """Passes one request to an upstream as it is. `Exchange` runs it.

    There are no retries: SDKs retry by themselves, and an image or a file twice costs twice.
    """

    def __init__(self, exchange: Exchange, endpoint: OtherEndpoint, root: str) -> None:
        """`root` is the part of the path that `endpoint.path` comes after."""
        self._exchange = exchange
        self._endpoint = endpoint
        self._passed = PassedRequest(exchange.http, exchange.client, endpoint, root)
        self._ownership: Ownership | None = None
        """None: the client may see all files and batches of the upstream."""
        self._attempt: PassAttempt | None = None
        """The last one."""

    @property
    def conversation(self) -> Callable[[], str] | None:
        """Files and batches exist in one account only: that of the upstream's first key."""
        return str if self._endpoint.model else None

    @property
    def may_send_again(self) -> bool:
        """Only a body that was read whole can be sent again."""
        return bool(self._endpoint.model) or not self._exchange.http.has_body

    async def serve(self) -> HttpAnswer:
        exchange, endpoint, passed = self._exchange, self._endpoint, self._passed
        http, track = exchange.http, exchange.track
        if any(part in (".", "..") for part in http.path.split("/")):
            raise NotFound  # such a path leads elsewhere at the upstream, with the upstream's key
        if endpoint.model:
            passed.body = await http.read()
        caller = exchange.caller
        track.record_client_request(http.method, caller.target, caller.headers, recordable(passed.body))
        if endpoint.model == "body":
            passed.model = model_in(passed.body, passed.content_type)
        elif endpoint.model == "path":
            passed.model = http.parts["model"]
        track.asked_for(passed.model)
        track.add_notices(
            Notice("passed-through", http.path, "the request and its answer pass as they are", warning=False)
        )
        try:
            targets = choices(exchange.state, exchange.client, endpoint, passed.model)
        except NotPassed as error:
            raise NotPassed(f"{http.method} {http.path}: {error.message}") from None
        await self._admit(targets[0])
        return await exchange.try_targets(self, targets)

    async def _admit(self, choice: ChosenTarget) -> None:
        """Check that the key may do this, and reserve what the request may use of its limits."""
        exchange, endpoint, passed = self._exchange, self._endpoint, self._passed
        identity, http, spending = exchange.identity.identity, exchange.http, exchange.spending
        if identity.models and not passed.model:
            raise ModelNotAllowed(
                f'the key "{identity.name}" may use certain models only, and this request names none'
            )
        identity.check_model(passed.model)
        if (endpoint.names or "id" in http.parts) and shares_account(exchange.identity, choice.upstream):
            self._ownership = Ownership(exchange.state.store, identity.name)
            await self._ownership.check(choice.upstream.name, http.parts)
        if endpoint.paid_later and http.method == "POST":
            spending.refuse_uncounted(endpoint.name)
        written = len(passed.body) if passed.content_type.startswith("application/json") else 0
        await spending.reserve_tokens(choice, written // _BYTES_PER_TOKEN)

    def attempt(self, choice: ChosenTarget, trace: AttemptTrace | None) -> PassAttempt:
        owned = self._ownership if self._endpoint.names else None
        self._attempt = PassAttempt(self._exchange, self._passed, owned, choice, trace)
        return self._attempt

    def body_refused(self, error: RefusedRequest) -> Failed:
        server = self._exchange.state.config.server
        if isinstance(error, NotFound):
            return from_refusal(self._exchange.http, error)
        if self._endpoint.model:
            return body_refused(error, server.max_body)
        return body_refused(error, server.max_upload, "server.max_upload")

    async def fail(self, failure: Failed) -> HttpAnswer:
        """Send the upstream's own error, or one in the client's protocol."""
        track, client = self._exchange.track, self._exchange.client
        track.failed(failure)
        refusal = None if self._attempt is None else self._attempt.refusal
        answer = refusal or error_response(client, failure, track.id, answer_headers(track))
        track.record_client_bytes(answer.body)
        return answer

    def abort(self) -> HttpAnswer | None:
        return None if self._attempt is None else self._attempt.abort()
