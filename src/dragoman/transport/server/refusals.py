"""Requests that are refused before anybody looks at what they ask."""

from __future__ import annotations

from http import HTTPStatus


class Refusal(Exception):
    """A request that is not served. `status` and the message say why."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, message: str = "", status: HTTPStatus | None = None) -> None:
        super().__init__(message)
        if status is not None:
            self.status = status


class NotFound(Refusal):
    """There is nothing at this path."""

    status = HTTPStatus.NOT_FOUND


class MethodNotAllowed(Refusal):
    """There is something at this path, for other methods."""

    status = HTTPStatus.METHOD_NOT_ALLOWED

    def __init__(self, allowed: list[str]) -> None:
        super().__init__()
        self.allowed = allowed


class BodyTooLarge(Refusal):
    """The body is larger than the server takes."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


class BodyTooSlow(Refusal):
    """The body did not come in time."""

    status = HTTPStatus.REQUEST_TIMEOUT


class BodyUnreadable(Refusal):
    """The body is not encoded as its headers say, or did not come to its end."""
