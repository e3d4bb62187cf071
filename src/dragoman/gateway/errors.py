"""Errors as HTTP answers, in the client's own protocol."""

from __future__ import annotations

from collections.abc import Mapping

from ..model.errors import BadRequest
from ..model.events import Failed, FailureKind
from ..protocols.base import ClientProtocol
from ..protocols.common import failures
from ..protocols.registry import detect_protocol, key_headers
from ..transport.server import BodyTooLarge, BodyUnreadable, MethodNotAllowed, Refusal, Request, Response


def client_of(request: Request) -> ClientProtocol:
    """Whose errors a caller understands, by the path it calls and the headers its SDK sends."""
    return detect_protocol(request.path, request.headers)


def error_response(
    client: ClientProtocol, failure: Failed, id: str, headers: Mapping[str, str] | None = None
) -> Response:
    """`failure` with its status, before anything was sent."""
    response = Response(
        client.error_body(failure, id),
        status=failure.status if 400 <= failure.status <= 599 else 502,
        content_type="application/json",
        headers=headers,
    )
    if failure.retry_after is not None:
        response.headers["retry-after"] = str(max(0, round(failure.retry_after)))
    return response


def from_http(request: Request, error: Refusal) -> Failed:
    """What is refused before anybody looks at it: paths and methods there are not, and the like."""
    asked = f"{request.method} {request.path}"
    message = f"{asked} is not served ({error.status.phrase})"
    if isinstance(error, MethodNotAllowed):
        message = f"there is nothing at {asked}; that path takes {', '.join(error.allowed)}"
    elif error.status == 404:
        message = f"there is nothing at {asked}; the paths are in Dragoman's HTTP reference"
    return Failed(failures.by_status(error.status), message, error.status)


def unauthorized() -> Failed:
    first, *others = key_headers()
    hint = f"send one of server.keys as {first}, Authorization: Bearer, or {', '.join(others)}"
    return Failed(FailureKind.AUTHENTICATION, hint, 401, "invalid_api_key")


def forbidden(message: str) -> Failed:
    return Failed(FailureKind.PERMISSION, message, 403)


def body_refused(refusal: Refusal, limit: int) -> Failed:
    """A body that cannot be had."""
    if isinstance(refusal, BodyTooLarge):
        message = f"the request body is larger than {limit} bytes (server.max_body)"
        return Failed(FailureKind.TOO_LARGE, message, 413)
    if isinstance(refusal, BodyUnreadable):
        message = "the body cannot be read: it is not encoded as Content-Encoding or Transfer-Encoding says"
        return failures.from_request_error(BadRequest(message))
    return Failed(failures.by_status(refusal.status), str(refusal), refusal.status)


def busy() -> Failed:
    message = "too many answers are under way (server.max_streams)"
    return Failed(FailureKind.OVERLOADED, message, 529, "busy", retry_after=1)


def our_fault(error: Exception) -> Failed:
    return Failed(FailureKind.SERVER, f"Dragoman failed: {type(error).__name__}; its log says more", 500)
