"""What a server refuses by itself, before anybody has looked at what is asked."""

from __future__ import annotations

from http import HTTPStatus


class Refusal(Exception):
    """A request that is not served, and the status that says so."""

    status = HTTPStatus.BAD_REQUEST


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


class BodyUnreadable(Refusal):
    """The body is not encoded as its headers say, or did not come to its end."""
