"""Token counting: the upstream counts if it can, else the gateway estimates and says so in a header."""

from __future__ import annotations

import logging

import msgspec

from ..model.errors import DragomanError
from ..model.messages import Request
from ..protocols.base import ClientProtocol
from ..protocols.common import failures
from ..protocols.common.failures import UpstreamFailed
from ..protocols.common.fields import is_object
from ..protocols.facts import Counting
from ..protocols.registry import protocol
from ..routing.router import Choice
from ..routing.token_estimate import prompt_tokens
from ..transport.server import HttpRequest, HttpResponse, Refusal, json_response
from ..wire.surrogates import whole
from .caller import Caller
from .conversation import conversation_of
from .errors import body_refused, error_response
from .ids import new_id
from .state import State
from .upstream import UpstreamCall

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
        request = client.read_request(_request_body(counting, await http.read()), whole(http.target))
        tokens = await _upstream_count(state, request, http)
    except Refusal as refusal:
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
    request = counting.asked(value) if is_object(value) else value
    return body if request is value else msgspec.json.encode(request)


async def _upstream_count(state: State, request: Request, http: HttpRequest) -> int | None:
    """The count of the first target's upstream; None if it cannot count."""
    caller = Caller(http)
    choice = state.choices(request.model, lambda: conversation_of(request, caller.session))[0]
    upstream = choice.upstream
    counting = protocol(upstream.protocol).counting
    if counting is None or upstream.name in state.cannot_count:
        return None
    try:
        return await _ask(state, choice, request, caller, counting)
    except UpstreamFailed as error:
        why = error.failure.message
        if error.failure.status in (404, 405, 501):
            state.cannot_count.add(upstream.name)  # many servers lack this endpoint of their protocol
    except (DragomanError, msgspec.DecodeError, UnicodeDecodeError) as error:
        why = str(error)
    log.warning("token count estimated", extra={"upstream": upstream.name, "why": why})
    return None


async def _ask(
    state: State, choice: Choice, request: Request, caller: Caller, counting: Counting
) -> int | None:
    upstream = choice.upstream
    outgoing = protocol(upstream.protocol).write_request(request, upstream.target(choice.model))
    body = counting.body(outgoing.members, choice.model)
    url = upstream.url(counting.path(outgoing.path))
    key, _ = caller.identify(state.keys)
    headers = await state.keyring.headers(upstream, url, caller=key, betas=caller.betas)
    async with UpstreamCall(
        state.pool,
        upstream.name,
        url,
        msgspec.json.encode(body),
        headers,
        # Short: agents count before each request, and an estimate at once is better than a late number.
        connect_timeout=5.0,
        idle_timeout=15.0,
        network=upstream.network,
    ) as call:
        response = call.response = await call.send()
        if not 200 <= response.status < 300:
            raise UpstreamFailed(await call.read_error())
        answer = msgspec.json.decode(await response.read(_MAX_ANSWER))
    count = answer.get(counting.member) if is_object(answer) else None
    return count if isinstance(count, int) else None
