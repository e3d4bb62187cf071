"""Requests that the server refuses before a handler runs, or while it reads the body."""

from __future__ import annotations

from http import HTTPStatus


class RefusedRequest(Exception):
    """The request is not served. `status` and the message say why."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, message: str = "", status: HTTPStatus | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status


class NotFound(RefusedRequest):
    """No route has this path."""

    status = HTTPStatus.NOT_FOUND


class MethodNotAllowed(RefusedRequest):
    """The path exists for other methods."""

    status = HTTPStatus.METHOD_NOT_ALLOWED

    def __init__(self, allowed: list[str]) -> None:
        super().__init__()
        self.allowed = allowed


class BodyTooLarge(RefusedRequest):
    """The body is larger than `Limits.body`."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class BodyTooSlow(RefusedRequest):
    """The body did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT


class BodyUnreadable(RefusedRequest):
    """The body does not match its encoding headers, or was cut off."""
