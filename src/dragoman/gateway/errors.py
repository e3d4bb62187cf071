"""Errors as HTTP answers, in the client's own protocol."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from ..errors import DragomanError
from ..events import Failed, FailureKind
from ..protocols import failures
from ..protocols.base import WireProtocol


def error_response(
    client: WireProtocol, failure: Failed, id: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    """`failure` with its status, before anything was sent."""
    response = web.Response(
        status=failure.status if 400 <= failure.status <= 599 else 502,
        body=client.error_body(failure, id),
        content_type="application/json",
        headers=headers,
    )
    if failure.retry_after is not None:
        response.headers["retry-after"] = str(max(0, round(failure.retry_after)))
    return response


def from_exception(error: DragomanError) -> Failed:
    return failures.from_exception(error)


def unauthorized(hint: str) -> Failed:
    return Failed(FailureKind.AUTHENTICATION, hint, 401, "invalid_api_key")


def too_large(limit: int) -> Failed:
    message = f"the request body is larger than {limit} bytes (server.max_body)"
    return Failed(FailureKind.TOO_LARGE, message, 413)


def busy() -> Failed:
    message = "too many answers are under way (server.max_streams)"
    return Failed(FailureKind.OVERLOADED, message, 529, "busy", retry_after=1)
