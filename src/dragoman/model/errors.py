"""What can go wrong, and whose fault it is.

Three families: the client sent something unusable (`BadRequest`), the upstream did (`UpstreamError`),
or Dragoman itself broke a law (`OrderError` when it was our own encoder's doing). Each carries the HTTP
status a gateway would answer with. Errors that happen *inside* a response are not exceptions but the
event `dragoman.events.Failed`; `as_failure` turns one into the other.
"""

from __future__ import annotations

from typing import Literal

Fault = Literal["client", "upstream", "dragoman"]


class DragomanError(Exception):
    """Any error Dragoman raises on purpose."""

    status = 500
    fault: Fault = "dragoman"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadRequest(DragomanError):
    """The client's request cannot be understood or cannot be carried to the target.

    `path` names the offending field the way the client wrote it: `messages[2].content[0].type`.
    """

    status = 400
    fault: Fault = "client"

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path


class UpstreamError(DragomanError):
    """The upstream broke its own protocol."""

    status = 502
    fault: Fault = "upstream"


class FrameTooLarge(UpstreamError):
    """One frame of the upstream's stream grew over the bound."""


class OrderError(DragomanError):
    """An event came where the order table does not allow it."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message)
        self.fault = fault
        self.status = 502 if fault == "upstream" else 500
