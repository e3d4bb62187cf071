"""Error responses in the client's protocol."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ..access.limiter import LimitReached
from ..model.errors import BadRequest, DragomanError
from ..model.events import Failed, FailureKind
from ..protocols.base import ClientProtocol
from ..protocols.common import failures
from ..protocols.registry import detect_protocol, key_headers
from ..transport.server import (
    BodyTooLarge,
    BodyUnreadable,
    HttpRequest,
    HttpResponse,
    MethodNotAllowed,
    RefusedRequest,
)

log = logging.getLogger("dragoman.gateway")

_LONG_WAIT = 60
"""Seconds after which a client should not wait and retry by itself."""


def client_of(request: HttpRequest) -> ClientProtocol:
    """The protocol of the client, by its path and the headers of its SDK."""
    return detect_protocol(request.path, request.headers)


def error_response(
    client: ClientProtocol, failure: Failed, id: str, headers: Mapping[str, str] | None = None
) -> HttpResponse:
    """The response for `failure`, if nothing was sent yet."""
    # An upstream may name any number as the status of an error, also 200.
    response = HttpResponse(
        client.error_body(failure, id),
        status=failure.status if 400 <= failure.status <= 599 else 502,
        content_type="application/json",
        headers=headers,
    )
    if failure.retry_after is not None:
        response.headers["retry-after"] = str(max(0, round(failure.retry_after)))
        if failure.retry_after > _LONG_WAIT:
            # OpenAI's and Anthropic's SDKs would try twice more within seconds, in vain.
            response.headers["x-should-retry"] = "false"
    return response


def from_refusal(request: HttpRequest, error: RefusedRequest) -> Failed:
    """The failure for a request that no handler gets: unknown path, wrong method."""
    line = f"{request.method} {request.path}"
    message = f"{line} is not served ({error.status.phrase})"
    if isinstance(error, MethodNotAllowed):
        message = f"{line} does not exist; this path takes {', '.join(error.allowed)}"
    elif error.status == 404:
        message = f"{line} does not exist; Dragoman's HTTP reference lists all paths"
    return Failed(failures.by_status(error.status), message, error.status)


def unauthorized(why: str = "") -> Failed:
    """The failure for a request without a valid key. `why`: what is known about the key that it has."""
    first, *others = key_headers()
    hint = (
        f"send a key of this gateway (server.keys, [keys.NAME], `dragoman keys create`) as {first}, "
        f"Authorization: Bearer, or {', '.join(others)}"
    )
    return Failed(FailureKind.AUTHENTICATION, why or hint, 401, "invalid_api_key")


def limit_reached(error: LimitReached) -> Failed:
    return Failed(FailureKind.RATE_LIMIT, error.message, 429, error.code, retry_after=error.retry_after)


def forbidden(message: str) -> Failed:
    return Failed(FailureKind.PERMISSION, message, 403)


def body_refused(refusal: RefusedRequest, limit: int, key: str = "server.max_body") -> Failed:
    """The failure for a request whose body cannot be read. `key` of the config sets the limit."""
    if isinstance(refusal, BodyTooLarge):
        message = f"the request body is larger than {limit} bytes ({key})"
        return Failed(FailureKind.TOO_LARGE, message, 413)
    if isinstance(refusal, BodyUnreadable):
        message = "the body does not match its Content-Encoding or Transfer-Encoding header, or was cut off"
        return failures.from_request_error(BadRequest(message))
    return Failed(failures.by_status(refusal.status), str(refusal), refusal.status)


def busy() -> Failed:
    message = "the gateway is at its limit of concurrent answers (server.max_streams); try again"
    # 529 is Anthropic's status for overload. OpenAI's and Anthropic's SDKs retry every status from 500 on.
    return Failed(FailureKind.OVERLOADED, message, 529, "busy", retry_after=1)


def internal_error() -> Failed:
    message = "Dragoman failed because of a bug; the gateway's log has the details under this exchange's id"
    return Failed(FailureKind.SERVER, message, 500)


def midstream_failure(error: Exception) -> Failed:
    """The failure for a client that already has a part of the answer."""
    if isinstance(error, failures.UpstreamFailed):
        return error.failure
    if isinstance(error, DragomanError):
        return failures.from_exception(error)
    log.error("an answer broke off because of a bug in Dragoman", exc_info=error)
    return internal_error()
