"""Token counting: the upstream counts if it can, else the gateway estimates and says so in a header."""

from __future__ import annotations

import logging

import msgspec

from ...access.limiter import LimitReached
from ...credentials.secret import Secret
from ...model.errors import DragomanError
from ...model.messages import Request
from ...protocols.base import ClientProtocol
from ...protocols.common import failures
from ...protocols.common.failures import UpstreamFailed
from ...protocols.common.fields import is_object
from ...protocols.facts import Counting
from ...protocols.registry import upstream_protocol
from ...routing.conditions import RequestTraits
from ...routing.router import ChosenTarget
from ...routing.token_estimate import prompt_tokens
from ...transport.server import HttpRequest, HttpResponse, RefusedRequest, json_response
from ...wire.surrogates import replace_lone_surrogates
from ..caller import Caller
from ..conversation import conversation_of
from ..errors import body_refused, error_response, limit_reached
from ..exchange import spending
from ..ids import new_id
from ..state import State
from ..upstreams.addressing import build_count_request, needed_betas
from ..upstreams.call import UpstreamCall
from ..upstreams.keys import first_key

log = logging.getLogger("dragoman.gateway")

ESTIMATE = "count-tokens-estimated: some 15 percent off for prose and code, 30 for data and other scripts"
_MAX_ANSWER = 64 * 1024  # the answer is one number


async def count_tokens(state: State, client: ClientProtocol, http: HttpRequest) -> HttpResponse:
    """Answer in the client's protocol."""
    id = new_id()
    headers = {"x-dragoman-exchange": id}
    counting = client.counting
    assert counting is not None
    try:
        request = client.read_request(
            _request_body(counting, await http.read()), replace_lone_surrogates(http.target)
        )
        caller = Caller(http)
        caller_identity = caller.identify(state.keys)
        caller_identity.identity.check_model(request.model)
        await spending.count_only(state, caller_identity.identity)
        tokens = await _upstream_count(state, request, caller, caller_identity.key)
    except LimitReached as error:
        return error_response(client, limit_reached(error), id, headers)
    except RefusedRequest as refusal:
        return error_response(client, body_refused(refusal, state.config.server.max_body), id, headers)
    except DragomanError as error:
        return error_response(client, failures.from_request_error(error), id, headers)
    if tokens is None:
        tokens = prompt_tokens(request)
        headers["x-dragoman-warnings"] = ESTIMATE
    return json_response({**counting.around, counting.member: tokens}, headers=headers)


def _request_body(counting: Counting, body: bytes) -> bytes:
    """The request to count. Google's SDKs wrap it in `generateContentRequest`."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    request = counting.to_request(value) if is_object(value) else value
    return body if request is value else msgspec.json.encode(request)


async def _upstream_count(state: State, request: Request, caller: Caller, key: Secret | None) -> int | None:
    """The count of the first target's upstream; None if it cannot count. `key` is the client's own."""

    def conversation() -> str:
        return conversation_of(request, caller.session)

    def traits() -> RequestTraits:
        return RequestTraits(request, caller.profile(request))

    choice = state.upstreams.choices(request.model, conversation, traits)[0]
    upstream = choice.upstream
    counting = upstream_protocol(upstream.protocol).counting
    if counting is None or upstream.name in state.upstreams.cannot_count:
        return None
    try:
        upstream = await first_key(state.upstreams, upstream, choice.key, conversation)
        choice = msgspec.structs.replace(choice, upstream=upstream)
        return await _ask(state, choice, request, caller, key, counting)
    except UpstreamFailed as error:
        why = error.failure.message
        if error.failure.status in (404, 405, 501):
            state.upstreams.cannot_count.add(
                upstream.name
            )  # many servers lack this endpoint of their protocol
    except (DragomanError, msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error)
    log.warning("token count estimated", extra={"upstream": upstream.name, "why": why})
    return None


async def _ask(
    state: State,
    choice: ChosenTarget,
    request: Request,
    caller: Caller,
    key: Secret | None,
    counting: Counting,
) -> int | None:
    upstream, wire = choice.upstream, upstream_protocol(choice.upstream.protocol)
    # What cannot be carried over hardly changes the number, so `strict` does not matter here.
    target = msgspec.structs.replace(state.upstreams.learned.applied(choice).target, strict=False)
    outgoing = wire.write_request(request, target)
    asked = build_count_request(upstream, choice.model, outgoing, counting)
    if asked is None:
        return None
    url, body = asked
    betas = needed_betas(caller.betas, outgoing, wire.beta_header, target)
    headers = await state.upstreams.keyring.headers(upstream, url, body=body, caller=key, betas=betas)
    # Short: agents count before each request, and an estimate at once is better than a late number.
    hasty = msgspec.structs.replace(upstream, connect_timeout=5.0, idle_timeout=15.0)
    async with UpstreamCall(state.upstreams.pool, hasty, url, body, headers) as call:
        response = await call.send()
        answer = msgspec.json.decode(await response.read(_MAX_ANSWER))
    count = answer.get(counting.member) if is_object(answer) else None
    return count if isinstance(count, int) else None
