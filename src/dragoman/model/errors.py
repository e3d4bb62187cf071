"""The exceptions of Dragoman. Each one says whose fault it is and which HTTP status the gateway answers.

There are three families: the client sent an invalid request (`BadRequest`), the upstream sent an invalid
answer (`UpstreamError`), or Dragoman broke one of its own laws (`OrderError` with the fault `dragoman`). An
error *inside* an answer is not an exception but the event `events.Failed`. `protocols/common/failures.py`,
`from_exception`, turns an exception into that event.
"""

from __future__ import annotations

from typing import Literal

Fault = Literal["client", "upstream", "dragoman"]


class DragomanError(Exception):
    """The base class of all errors that Dragoman raises on purpose."""

    status = 500
    fault: Fault = "dragoman"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadRequest(DragomanError):
    """The client's request is invalid, or it cannot be translated for the target.

    `path` names the field as the client wrote it: `messages[2].content[0].type`.
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
    """A frame of the upstream's stream is larger than the limit."""


class OrderError(DragomanError):
    """An event came at a point where the tables in `order.py` do not allow it."""

    def __init__(self, message: str, fault: Fault) -> None:
        super().__init__(message)
        self.fault = fault
        self.status = 502 if fault == "upstream" else 500
